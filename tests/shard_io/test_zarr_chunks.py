"""Slices of a part's arrays read without zarr are zarr's, whatever packed them and whoever asks."""

import json
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import zarr
from zarr.codecs import BloscCodec, BytesCodec, GzipCodec

from prior_gen.generator import generate_shards
from puicl_config import ShardsConfig, load_config
from shard_io import PartId, ShardError, open_shards, read_entry
from shard_io.checked import CheckedFiles, seal_of
from shard_io.manifest import read_manifest
from shard_io.microbatch import Microbatch
from shard_io.zarr_chunks import _KEPT, ZarrChunks
from shard_io.zarr_format import ZarrPart, write_zarr

CELLS = 1000


def make(path, values, compressor, **changed):
    shards = -(-len(values) // CELLS) * CELLS
    options = {"chunks": (CELLS,), "shards": (shards,), "compressors": compressor, "fill_value": 0}
    options.update(changed)
    array = zarr.create_array(path, shape=values.shape, dtype=values.dtype, **options)
    array[:] = values
    return path


def some_values(dtype, n=5300):
    values = (20 * np.random.default_rng(0).standard_normal(n)).astype(dtype)
    values[2000:3000] = 0  # a chunk that zarr does not store
    return values


@pytest.mark.parametrize("dtype", ["float16", "float32", "uint8"])
@pytest.mark.parametrize("compressor", [("zstd", "shuffle"), ("zstd", "bitshuffle"), ("lz4", None)])
def test_any_slice_is_what_zarr_reads(dtype, compressor, tmp_path):
    name, shuffle = compressor
    codec = BloscCodec(cname=name, clevel=3, shuffle=shuffle or "noshuffle")
    values = some_values(dtype)
    flat = ZarrChunks(make(tmp_path / "x", values, codec))
    assert len(flat) == len(values)
    rng = np.random.default_rng(1)
    ends = [*np.sort(rng.integers(0, 5301, size=(40, 2))), (0, 5300), (999, 1001), (1000, 2000)]
    for start, stop in [*ends, (7, 7), (5299, 5300), (2100, 2200)]:
        part = flat[start:stop]
        assert part.dtype == np.dtype(dtype)
        np.testing.assert_array_equal(part, values[start:stop])


def test_several_threads_read_the_right_slices_and_few_chunks_are_kept(tmp_path):
    values = some_values("float32", 20_000)
    flat = ZarrChunks(make(tmp_path / "x", values, BloscCodec()))
    starts = np.random.default_rng(2).integers(0, 18_000, size=600).tolist()
    with ThreadPoolExecutor(8) as pool:
        read = list(pool.map(lambda start: flat[start : start + 1500], starts))
    for start, part in zip(starts, read, strict=True):
        np.testing.assert_array_equal(part, values[start : start + 1500])
    assert len(flat._kept) <= _KEPT


def test_what_is_read_may_be_written_to_without_harm(tmp_path):
    values = some_values("float32")
    flat = ZarrChunks(make(tmp_path / "x", values, BloscCodec()))
    flat[0:1000][:] = 7
    np.testing.assert_array_equal(flat[0:1000], values[:1000])


@pytest.mark.parametrize(
    "changed",
    [
        {"compressors": GzipCodec()},
        {"shards": None},
        {"shards": (2 * CELLS,)},
        {"fill_value": 3},
        {"shards": {"shape": (6 * CELLS,), "index_location": "start"}},
        {"serializer": BytesCodec(endian="big")},
    ],
    ids=str,
)
def test_an_array_of_another_kind_is_left_to_zarr_and_read_all_the_same(changed, tmp_path):
    values = some_values("float32")
    zarr.create_group(
        tmp_path,
        zarr_format=3,
        attributes={
            "microbatches": [
                {
                    "x_offset": 0,
                    "x_shape": [1, 100, 53],
                    "y_offset": 0,
                    "y_shape": [1, 53],
                    "tags": {},
                }
            ]
        },
    )
    for name in ("x", "y"):
        make(tmp_path / name, values, BloscCodec(), **changed)
        with pytest.raises(ValueError, match="as write_zarr makes"):
            ZarrChunks(tmp_path / name)
    part = ZarrPart(tmp_path)
    np.testing.assert_array_equal(part[0].x.ravel(), values)
    names = [path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file()]
    sealed = CheckedFiles(tmp_path, {name.as_posix(): seal_of(tmp_path / name) for name in names})
    np.testing.assert_array_equal(ZarrPart(tmp_path, sealed)[0].x.ravel(), values)
    victim = tmp_path / next(name for name in names if name.match("x/c/*"))
    victim.write_bytes(b"x" + victim.read_bytes()[1:])
    with pytest.raises(ShardError, match="was altered since"):
        ZarrPart(tmp_path, sealed)[0]


def old_folder(config, folder):
    """A folder as it was written before `shuffle` was a setting."""
    generate_shards(config, folder, [1], jobs=1)
    storage = json.loads((folder / "manifest.json").read_text())["storage"]
    assert "shuffle" not in storage
    return folder


def test_a_folder_from_before_the_setting_keeps_its_packing_when_it_grows(tiny_yaml, tmp_path):
    before = load_config(tiny_yaml, ["shards.shuffle=bits", "shards.zstd_level=5"])
    now = load_config(tiny_yaml)
    assert (now.shards.shuffle, now.shards.zstd_level) == ("bytes", 1)
    folder = old_folder(before, tmp_path / "old")
    generate_shards(now, folder, [1, 2], jobs=1)
    generate_shards(before, tmp_path / "whole", [1, 2], jobs=1)
    storage = read_manifest(folder).storage
    assert (storage.shuffle, storage.zstd_level) == ("bits", 5)
    for part in [PartId(1, 0), PartId(2, 2)]:
        assert read_entry(folder, part) == read_entry(tmp_path / "whole", part)
    assert (folder / "manifest.json").read_bytes() == (
        tmp_path / "whole" / "manifest.json"
    ).read_bytes()


def test_the_packing_changes_bytes_on_disk_and_no_content(tiny_yaml, all_shards, tmp_path):
    config = load_config(tiny_yaml, ["shards.shuffle=bits", "shards.zstd_level=9"])
    generate_shards(config, tmp_path / "bits", [1], jobs=1)
    ours, theirs = open_shards(tmp_path / "bits"), open_shards(all_shards)
    assert ours.manifest.plan_digest == theirs.manifest.plan_digest
    for number in range(3):
        part = PartId(1, number)
        assert ours.entry(part).content_digest == theirs.entry(part).content_digest
        assert ours.entry(part).files != theirs.entry(part).files
    np.testing.assert_array_equal(ours[1, 0, 0].x, theirs[1, 0, 0].x)


def test_an_index_that_is_cut_off_is_an_error_not_another_array(all_shards, tmp_path):
    source = all_shards / "parts" / "stage-0001-part-000.zarr" / "x"
    for name in ("zarr.json", "c/0"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes((source / name).read_bytes())
    whole = ZarrChunks(tmp_path)
    expected = whole[0 : len(whole)]
    np.testing.assert_array_equal(ZarrChunks(source)[0 : len(whole)], expected)
    (tmp_path / "c/0").write_bytes(b"\0" * 8)
    with pytest.raises((ValueError, OSError)):
        ZarrChunks(tmp_path)


@pytest.mark.parametrize(("shuffle", "packed"), [("bytes", "shuffle"), ("bits", "bitshuffle")])
def test_x_is_packed_as_asked_y_by_bits_and_tags_are_sorted(shuffle, packed, tmp_path):
    x, y = np.ones((1, 4, 3), np.float16), np.ones((1, 2), np.uint8)
    storage = ShardsConfig(shuffle=shuffle, zstd_level=7, chunk_cells=1024)
    write_zarr(tmp_path / "part", [Microbatch(x, y, {"step": 0, "index": 1})], storage)
    of = {}
    for name in ("x", "y"):
        about = json.loads((tmp_path / "part" / name / "zarr.json").read_text())
        of[name] = about["codecs"][0]["configuration"]["codecs"][1]["configuration"]
    whole = 0 if shuffle == "bits" else 2048  # one block a chunk
    same = {"cname": "zstd", "clevel": 7}
    assert of["x"] == {**same, "shuffle": packed, "typesize": 2, "blocksize": whole}
    assert of["y"] == {**same, "shuffle": "bitshuffle", "typesize": 1, "blocksize": 0}
    about = json.loads((tmp_path / "part" / "zarr.json").read_text())
    assert list(about["attributes"]["microbatches"][0]["tags"]) == ["index", "step"]
