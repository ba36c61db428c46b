"""One content in both formats, readable by the formats' own tools alone."""

import hashlib
import io
import json
import tarfile

import numpy as np
import pytest
import zarr

from prior_gen import generate_microbatch
from prior_gen.generator import generate_shards
from puicl_config import load_config
from shard_io import PartId, content_digest, open_shards, read_entry
from shard_io.microbatch import Microbatch
from shard_io.parts import describe_part
from shard_io.webdataset_format import WebdatasetPart, write_webdataset


@pytest.fixture(scope="module")
def tar_shards(tiny_yaml, tmp_path_factory):
    config = load_config(tiny_yaml, ["shards.format=webdataset"])
    folder = tmp_path_factory.mktemp("tar") / "shards"
    generate_shards(config, folder, range(1, 6), jobs=1)
    return folder


def addresses(prior):
    return [
        (stage, step, index)
        for stage in range(1, prior.total_stages + 1)
        for step in range(prior.steps_in_stage(stage))
        for index in range(prior.microbatches_per_step)
    ]


@pytest.mark.parametrize("kind", ["zarr", "webdataset"])
def test_what_is_read_is_what_was_generated(kind, tiny, all_shards, tar_shards):
    reader = open_shards(all_shards if kind == "zarr" else tar_shards)
    for address in addresses(tiny.prior):
        stored, made = reader[address], generate_microbatch(tiny, *address)
        assert stored.x.dtype == np.float16
        np.testing.assert_array_equal(stored.x, made.x)
        np.testing.assert_array_equal(stored.y, made.y)
        assert stored.tags == made.tags
        assert stored.n_labeled == made.tags["n_labeled"]


def test_of_the_parts_that_are_open_the_one_read_longest_ago_is_closed(all_shards, monkeypatch):
    monkeypatch.setattr("shard_io.reader._OPEN_PARTS", 2)
    reader = open_shards(all_shards)
    one, two, three = reader.layout.parts_of_stage(1)
    first, second = reader.part(one), reader.part(two)
    assert reader.part(one) is first
    reader.part(three)
    assert reader.part(one) is first
    assert reader.part(two) is not second


def test_both_formats_have_the_same_content_digests(all_shards, tar_shards):
    for stage in range(1, 6):
        for number in range(3):
            part = PartId(stage, number)
            ours, theirs = read_entry(all_shards, part), read_entry(tar_shards, part)
            assert ours.content_digest == theirs.content_digest
            assert ours.files != theirs.files


def test_a_zarr_part_is_read_with_zarr_alone(tiny, all_shards):
    group = zarr.open_group(all_shards / "parts" / "stage-0002-part-001.zarr", mode="r")
    record = group.attrs["microbatches"][0]
    start, shape = record["x_offset"], record["x_shape"]
    x = group["x"][start : start + int(np.prod(shape))].reshape(shape)
    tags = record["tags"]
    made = generate_microbatch(tiny, tags["stage"], tags["step"], tags["index"])
    np.testing.assert_array_equal(x, made.x)
    assert group["x"].metadata.zarr_format == 3


def test_a_webdataset_part_is_read_with_tar_alone(tiny, tar_shards):
    with tarfile.open(tar_shards / "parts" / "stage-0002-part-001.tar") as tar:
        members = tar.getmembers()
        assert {member.mtime for member in members} == {0}
        owners = {(member.uname, member.gname, member.mode) for member in members}
        assert owners == {("puicl", "puicl", 0o444)}
        tags = json.loads(tar.extractfile(members[0]).read())
        x = np.load(io.BytesIO(tar.extractfile(members[1]).read()))
    made = generate_microbatch(tiny, tags["stage"], tags["step"], tags["index"])
    np.testing.assert_array_equal(x, made.x)


def test_a_webdataset_part_is_read_with_webdataset(tar_shards):
    import webdataset

    path = tar_shards / "parts" / "stage-0001-part-000.tar"
    samples = list(webdataset.WebDataset(str(path), shardshuffle=False).decode())
    assert len(samples) == read_entry(tar_shards, PartId(1, 0)).n_microbatches
    assert samples[0]["x.npy"].shape[0] == samples[0]["json"]["pi"].__len__()


def test_a_webdataset_part_is_in_the_plans_order_beyond_a_thousand_microbatches(tiny, tmp_path):
    made = generate_microbatch(tiny, 1, 0, 0)
    written = [
        Microbatch(made.x, made.y, {**made.tags, "step": step, "index": index})
        for step, index in ((0, 999), (0, 1000), (0, 1001), (1, 0))
    ]
    write_webdataset(tmp_path / "part.tar", written, tiny.shards)
    part = WebdatasetPart(tmp_path / "part.tar")
    assert [part[n].address for n in range(len(part))] == [batch.address for batch in written]


def test_float32_shards_hold_more_digits_and_have_other_digests(tiny_yaml, all_shards, tmp_path):
    config = load_config(tiny_yaml, ["shards.x_dtype=float32"])
    generate_shards(config, tmp_path / "wide", [1], jobs=1)
    wide, narrow = open_shards(tmp_path / "wide"), open_shards(all_shards)
    assert wide.manifest.plan_digest == narrow.manifest.plan_digest
    assert wide[1, 0, 0].x.dtype == np.float32
    np.testing.assert_array_equal(wide[1, 0, 0].x.astype(np.float16), narrow[1, 0, 0].x)
    part = PartId(1, 0)
    assert wide.entry(part).content_digest != narrow.entry(part).content_digest


def test_digests_are_of_all_that_microbatches_hold_in_their_order():
    x, y = np.zeros((2, 3, 1), np.float16), np.zeros((2, 2), np.uint8)
    tags = {"stage": 1, "step": 0, "index": 0}
    other_x, other_y = x.copy(), y.copy()
    other_x[1, 2], other_y[0, 1] = 1, 1
    unlike = [Microbatch(x, y, tags), Microbatch(other_x, y, tags), Microbatch(x, other_y, tags)]
    unlike += [Microbatch(x, y, {**tags, "index": 1}), Microbatch(x.astype(np.float32), y, tags)]
    unlike += [Microbatch(x.reshape(1, 6, 1), y, tags), Microbatch(x, y.reshape(1, 4), tags)]
    digests = [microbatch.digest() for microbatch in unlike]
    assert len(set(digests)) == len(digests)
    assert content_digest(unlike) == hashlib.sha256(b"".join(digests)).hexdigest()


def test_an_entry_counts_tasks_rows_and_cells_over_all_its_microbatches():
    shapes = ((2, 5, 3), (4, 7, 1))
    batches = [
        Microbatch(np.zeros(shape, np.float16), np.zeros((shape[0], 2), np.uint8), {"index": n})
        for n, shape in enumerate(shapes)
    ]
    files = ({"path": "a", "bytes": 70, "sha256": ""}, {"path": "b", "bytes": 5, "sha256": ""})
    entry = describe_part(PartId(3, 1), batches, files, None)
    assert (entry.stage, entry.part, entry.n_microbatches) == (3, 1, 2)
    assert (entry.n_tasks, entry.n_rows, entry.n_cells) == (6, 2 * 5 + 4 * 7, 30 + 28)
    assert entry.n_bytes == 75
