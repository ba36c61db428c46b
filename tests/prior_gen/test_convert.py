"""Converting: the same tasks in the other format, byte for byte as if generated so."""

import json
import shutil
from collections import namedtuple

import pytest
from folders import folder_bytes
from sealed import change_manifest

import prior_gen.generator
import prior_gen.microbatch
from prior_gen.convert import convert_shards
from prior_gen.generator import generate_shards
from puicl_config import canonical_json, load_config
from shard_io import PartId, ShardError, entries_of, open_shards, problems_of

CODE = "from prior_gen.cli import main; main()"
OTHER = {"zarr": "webdataset", "webdataset": "zarr"}


@pytest.fixture(scope="module")
def generated(tiny_yaml, all_shards, tmp_path_factory):
    config = load_config(tiny_yaml, ["shards.format=webdataset"])
    folder = tmp_path_factory.mktemp("tar") / "shards"
    generate_shards(config, folder, range(1, 6), jobs=1)
    return {"zarr": all_shards, "webdataset": folder}


@pytest.fixture
def no_generation(monkeypatch):
    def fail(*_, **__):
        raise AssertionError("a task was computed")

    monkeypatch.setattr(prior_gen.generator, "generate_microbatch", fail)
    monkeypatch.setattr(prior_gen.microbatch, "generate_task", fail)


@pytest.mark.parametrize("target", ["zarr", "webdataset"])
def test_a_converted_folder_is_the_generated_one_byte_for_byte(
    target, generated, tmp_path, no_generation
):
    convert_shards(generated[OTHER[target]], tmp_path / "new", target, jobs=1)
    assert folder_bytes(tmp_path / "new") == folder_bytes(generated[target])
    convert_shards(generated[target], tmp_path / "same", target, jobs=1)
    assert folder_bytes(tmp_path / "same") == folder_bytes(generated[target])


def test_conversion_goes_on_part_by_part_and_follows_a_growing_folder(
    tiny, generated, tmp_path, no_generation, monkeypatch
):
    import prior_gen.convert

    real, calls = prior_gen.convert.publish_part, []

    def stopped_after_four(*arguments):
        if len(calls) == 4:
            raise KeyboardInterrupt
        calls.append(arguments)
        return real(*arguments)

    monkeypatch.setattr(prior_gen.convert, "publish_part", stopped_after_four)
    with pytest.raises(KeyboardInterrupt):
        convert_shards(generated["zarr"], tmp_path / "new", "webdataset", jobs=1)
    assert len(open_shards(tmp_path / "new").published_parts()) == 4
    monkeypatch.setattr(prior_gen.convert, "publish_part", real)
    result = convert_shards(generated["zarr"], tmp_path / "new", "webdataset", jobs=1)
    assert (len(result.written), result.skipped) == (11, 4)
    assert folder_bytes(tmp_path / "new") == folder_bytes(generated["webdataset"])


def test_what_the_source_lacks_the_result_lacks_too(own_shards, tmp_path):
    (own_shards / PartId(2, 1).entry_path).unlink()
    convert_shards(own_shards, tmp_path / "new", "webdataset", jobs=1)
    lacking = open_shards(tmp_path / "new").missing_parts(range(1, 6))
    assert lacking == [PartId(2, 1)]


def test_another_plans_folder_and_the_source_itself_are_refused(
    tiny_yaml, generated, own_shards, tmp_path
):
    config = load_config(tiny_yaml, ["prior.seed=5", "shards.format=webdataset"])
    generate_shards(config, tmp_path / "other", [1], jobs=1)
    before = folder_bytes(tmp_path / "other")
    with pytest.raises(ShardError, match="seed is 5 there, 0 wanted"):
        convert_shards(generated["zarr"], tmp_path / "other", "webdataset", jobs=1)
    assert folder_bytes(tmp_path / "other") == before
    with pytest.raises(ShardError, match=r"shards\.format is zarr there, webdataset wanted"):
        convert_shards(generated["webdataset"], own_shards, "webdataset", jobs=1)
    with pytest.raises(ShardError, match="cannot be converted into itself"):
        convert_shards(own_shards, own_shards, "zarr", jobs=1)
    (tmp_path / "link").symlink_to(own_shards)
    with pytest.raises(ShardError, match="cannot be converted into itself"):
        convert_shards(own_shards, tmp_path / "link", "webdataset", jobs=1)


def test_too_little_room_is_told_before_anything_is_written(own_shards, tmp_path, monkeypatch):
    usage = namedtuple("usage", "total used free")(100, 99, 1)
    convert_shards(own_shards, tmp_path / "whole", "webdataset", jobs=1)
    monkeypatch.setattr(prior_gen.generator.shutil, "disk_usage", lambda path: usage)
    with pytest.raises(ShardError, match=r"need about .* and the disk of .* has .* free"):
        convert_shards(own_shards, tmp_path / "tars", "webdataset", jobs=1)
    assert not (tmp_path / "tars").exists()
    # What is stored already needs no room.
    assert convert_shards(own_shards, tmp_path / "whole", "webdataset", jobs=1).written == ()


def test_what_a_killed_conversion_left_behind_is_swept(generated, tmp_path):
    dead = tmp_path / "tars" / ".staging" / "dead"
    dead.mkdir(parents=True)
    for name in ("lock", "half"):
        (dead / name).touch()
    convert_shards(generated["zarr"], tmp_path / "tars", "webdataset", jobs=1)
    assert not dead.parent.exists()


@pytest.mark.parametrize("differs", ["canary", "sample"])
def test_what_another_machine_began_is_not_added_to(own_shards, tmp_path, differs):
    folder = tmp_path / "tars"
    convert_shards(own_shards, folder, "webdataset", jobs=1)
    shutil.rmtree(folder / "entries")
    other = {"canary": lambda header: header, "sample": lambda header: header["software"]}[differs]
    change_manifest(own_shards, lambda header: other(header).update({differs: "0" * 64}))
    before = folder_bytes(folder)
    with pytest.raises(ShardError, match=r"begun on a machine that produces different bits from"):
        convert_shards(own_shards, folder, "webdataset", jobs=1)
    assert folder_bytes(folder) == before


def test_a_source_from_before_samples_were_recorded_is_added_to_what_was_begun_since(
    own_shards, tmp_path
):
    folder = tmp_path / "tars"
    convert_shards(own_shards, folder, "webdataset", jobs=1)
    (folder / PartId(2, 1).entry_path).unlink()
    change_manifest(own_shards, lambda header: header["software"].pop("sample"))
    assert len(convert_shards(own_shards, folder, "webdataset", jobs=1).written) == 1


def test_an_entry_that_names_no_plan_names_none_after_conversion(own_shards, tmp_path):
    path = own_shards / PartId(2, 1).entry_path
    fields = json.loads(path.read_text())
    del fields["plan"]
    path.write_text(canonical_json(fields) + "\n")
    convert_shards(own_shards, tmp_path / "tars", "webdataset", jobs=1)
    entries = entries_of(tmp_path / "tars")
    assert len(entries) == 15
    assert [entry.id for entry in entries if entry.plan is None] == [PartId(2, 1)]


def test_a_damaged_source_is_never_converted(own_shards, tmp_path):
    victim = own_shards / open_shards(own_shards).entry(PartId(1, 0)).files[0]["path"]
    victim.write_bytes(victim.read_bytes()[:-1] + b"?")
    with pytest.raises(ShardError, match="does not match its SHA-256"):
        convert_shards(own_shards, tmp_path / "new", "webdataset", jobs=1)
    assert open_shards(tmp_path / "new").published_parts() == []


def test_a_source_whose_entry_lies_about_its_content_is_never_converted(own_shards, tmp_path):
    path = own_shards / PartId(1, 0).entry_path
    fields = json.loads(path.read_text())
    fields["content_digest"] = "0" * 64
    path.write_text(json.dumps(fields, sort_keys=True, separators=(",", ":")) + "\n")
    with pytest.raises(ShardError, match="does not match its content digest"):
        convert_shards(own_shards, tmp_path / "new", "webdataset", jobs=1)


def test_a_source_that_was_cut_otherwise_is_never_converted(tiny_yaml, tmp_path):
    # The parts' second is 3 to 5 of 16 microbatches where there are five, 2 to 4 where six.
    second = PartId(1, 1)
    for count in (5, 6):
        config = load_config(tiny_yaml, [f"shards.parts_per_stage={count}"])
        generate_shards(config, tmp_path / str(count), [1], jobs=1)
    for path in (second.entry_path, second.data_path("zarr")):
        target = tmp_path / "5" / path
        shutil.rmtree(target, ignore_errors=True)
        (tmp_path / "6" / path).replace(target)
    with pytest.raises(ShardError, match="does not hold the microbatches of its place in the plan"):
        convert_shards(tmp_path / "5", tmp_path / "new", "webdataset", jobs=1)
    assert second not in open_shards(tmp_path / "new").published_parts()


def test_the_command_converts_and_says_so(own_shards, tmp_path, run_command):
    shutil.rmtree(tmp_path / "new", ignore_errors=True)
    arguments = ["convert", own_shards, tmp_path / "new", "--format", "webdataset", "--jobs", "2"]
    done = run_command("-c", CODE, *arguments)
    assert "stored 15 parts" in done.stdout
    assert list(problems_of(tmp_path / "new")) == []
    assert (
        "stored 0 parts, 0 bytes, 15 parts there already"
        in run_command("-c", CODE, *arguments).stdout
    )
