"""The commands that look after a folder, on a bucket and behind a web server."""

import json

import pytest
from folders import bytes_under, folder_bytes, objects

from prior_gen.generator import generate_shards
from puicl_config import load_config
from shard_io import PartId, folder_of, open_shards, problems_of

pytestmark = pytest.mark.usefixtures("cache")
pytest.importorskip("fsspec")
pytest.importorskip("aiohttp")


@pytest.fixture(scope="module")
def plan(tiny_yaml, tmp_path_factory):
    """The tiny plan in a part a stage: each file more is several requests more."""
    path = tmp_path_factory.mktemp("config") / "plan.yaml"
    tiny = tiny_yaml.read_text(encoding="utf-8")
    path.write_text(tiny.replace("parts_per_stage: 3", "parts_per_stage: 1"), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def all_shards(plan, tmp_path_factory):
    folder = tmp_path_factory.mktemp("shards") / "all"
    generate_shards(load_config(plan), folder, range(1, 6), jobs=1)
    return folder


@pytest.fixture
def remote(bucket, own_shards):
    bucket[1].put(f"{own_shards}/", f"{bucket[0]}/shards/", recursive=True)
    return f"s3://{bucket[0]}/shards"


def damage(bucket, part):
    """Flip a bit of the part's first array; returns the object's path."""
    path = f"{bucket[0]}/shards/parts/{part.name}.zarr/x/c/0"
    content = bytearray(bucket[1].cat_file(path))
    content[len(content) // 2] ^= 1
    bucket[1].pipe_file(path, bytes(content))
    return path


def test_info_tells_the_same_of_a_bucket_and_of_a_web_server_as_of_a_folder(
    remote, own_shards, serve, command, cache
):
    url, asked = serve(own_shards)
    facts = [json.loads(command("info", place, "--json")[1]) for place in (own_shards, remote, url)]
    assert facts[0]["tasks"] == 216
    assert sum(facts[0]["tags"]["causal"].values()) == 72
    assert facts[1] == facts[0]
    assert facts[2] == facts[0]
    data = [path for path in asked if "/c/0" in path]
    assert data == []  # tags are read, arrays are not
    assert not list(cache.rglob("c/0"))


def test_info_does_not_download_tars_for_their_tags(own_shards, serve, command, tmp_path, cache):
    command("convert", own_shards, tmp_path / "tar", "--format", "webdataset", "--jobs", "1")
    url, asked = serve(tmp_path / "tar")
    code, told = command("info", url)
    assert code == 0
    assert "not read: the tars behind this URL" in told
    assert "216" in told
    assert not [path for path in asked if path.endswith(".tar")]


def test_verify_of_a_bucket_finds_flipped_missing_and_extra_objects_even_if_cached(
    remote, bucket, command
):
    assert command("verify", remote) == (
        0,
        f"{remote}: 5 parts are whole and match their digests\n",
    )
    reader = open_shards(remote)
    for part in (PartId(1, 0), PartId(2, 0)):
        reader.part(part)  # whole in the cache, which must not be what is verified
    damage(bucket, PartId(1, 0))
    bucket[1].rm_file(f"{bucket[0]}/shards/parts/stage-0002-part-000.zarr/y/zarr.json")
    bucket[1].rm_file(f"{bucket[0]}/shards/{PartId(3, 0).entry_path}")
    bucket[1].pipe_file(f"{bucket[0]}/shards/parts/stranger", b"x")
    code, told = command("verify", remote)
    assert code == 1
    assert "stage-0001-part-000.zarr/x/c/0 does not match its SHA-256" in told
    assert "stage-0002-part-000.zarr/y/zarr.json is missing" in told
    assert "stage-0003-part-000 is missing" in told
    assert f"{remote}/parts/stranger belongs to no published part" in told
    assert f"`prior-gen repair {remote}` mends" in told


def test_verify_leaves_the_cache_alone_and_regenerates(remote, command, cache):
    code, told = command("verify", remote, "--regenerate", "2", "--jobs", "1")
    assert code == 0
    assert "2 of them, made again from their seeds, are the same" in told
    assert not cache.exists()


def test_repair_of_a_bucket_makes_exactly_the_bad_parts_to_the_same_bytes(
    remote, bucket, command, all_shards
):
    damage(bucket, PartId(1, 0))
    bucket[1].rm_file(f"{bucket[0]}/shards/{PartId(3, 0).entry_path}")
    code, told = command("repair", remote, "--jobs", "1")
    assert (code, told) == (0, f"{remote}: made 2 parts again\n")
    assert objects(bucket) == bytes_under(all_shards, "shards/")
    assert command("repair", remote)[1] == f"{remote}: made 0 parts again\n"


def test_repair_of_a_bucket_rebuilds_its_manifest(remote, bucket, command, all_shards, plan):
    bucket[1].pipe_file(f"{bucket[0]}/shards/manifest.json", b"{")
    code, told = command("repair", remote, "--jobs", "1", "--config", str(plan))
    assert code == 0
    assert f"{remote}: rebuilt the manifest, of plan" in told
    assert objects(bucket) == bytes_under(all_shards, "shards/")


def test_verify_of_a_web_server_says_that_extra_files_are_unseen(own_shards, serve, command):
    url, _ = serve(own_shards)
    (own_shards / "parts" / "stranger").write_text("")
    code, told = command("verify", url)
    assert code == 0
    assert "5 parts are whole" in told
    assert "extra files were not looked for, as a web server does not list" in told
    path = own_shards / "parts" / "stage-0001-part-000.zarr" / "y" / "c" / "0"
    path.write_bytes(path.read_bytes()[:-1])
    (own_shards / PartId(5, 0).entry_path).unlink()
    code, told = command("verify", url)
    assert code == 1
    assert "stage-0001-part-000.zarr/y/c/0 does not match its SHA-256" in told
    assert "stage-0005-part-000 is missing" in told
    assert "repair" not in told.splitlines()[-1]
    _, told = command("info", url, "--stages", "1-5", "--shares", "2")
    assert "stages 1-5 lack 1 part, of 1 share: --array=1" in told
    assert "prior-gen" not in told  # nobody can write there


def test_shards_are_converted_from_the_web_and_into_a_bucket(
    own_shards, serve, bucket, command, tmp_path
):
    url, _ = serve(own_shards)
    assert (
        command("convert", url, tmp_path / "tar", "--format", "webdataset", "--jobs", "1")[0] == 0
    )
    assert list(problems_of(tmp_path / "tar")) == []
    there = f"s3://{bucket[0]}/back"
    code, told = command("convert", tmp_path / "tar", there, "--format", "zarr", "--jobs", "1")
    assert code == 0
    assert "stored 5 parts" in told
    assert objects(bucket) == bytes_under(own_shards, "back/")


def test_a_slice_of_a_bucket_has_the_bytes_of_a_slice_of_a_folder(
    remote, own_shards, command, tmp_path
):
    for source, out in ((remote, "far"), (own_shards, "near")):
        assert command("slice", source, "--where", "d <= 3", "--out", tmp_path / out)[0] == 0
    assert folder_bytes(tmp_path / "far") == folder_bytes(tmp_path / "near")
    assert list(problems_of(tmp_path / "far")) == []


def test_a_dry_run_into_a_bucket_knows_what_is_there_and_writes_nothing(
    remote, bucket, plan, command
):
    bucket[1].rm_file(f"{bucket[0]}/shards/{PartId(3, 0).entry_path}")
    before = objects(bucket)
    code, told = command("--config", plan, "--stages", "1-5", "--out", remote, "--dry-run")
    assert code == 0
    assert "1 part, " in told
    assert "4 more parts exist already" in told
    assert "free space cannot be checked behind a URL" in told
    assert objects(bucket) == before
    assert folder_of(remote).listing() == sorted(path.removeprefix("shards/") for path in before)
