"""`prior-gen repair` makes a lost manifest again where the parts' entries name one plan."""

import json
import re
import shutil

import pytest
from folders import folder_bytes

import prior_gen.generator
import prior_gen.rebuild
from prior_gen.convert import convert_shards
from prior_gen.generator import generate_shards, write_part
from prior_gen.rebuild import rebuild_manifest
from puicl_config import canonical_json, load_config
from shard_io import PartId, ShardError, entries_of, open_shards, problems_of, slice_shards


def truncate(path):
    path.write_bytes(path.read_bytes()[:-40])


def alter(path, before, after):
    text = path.read_text()
    assert text.count(before) == 1
    path.write_text(text.replace(before, after))


@pytest.fixture
def repair(prior_gen_command):
    """Exit status of `prior-gen repair`, and what it said."""

    def run(folder, *arguments):
        code, out, err = prior_gen_command("repair", folder, "--jobs", 1, *arguments)
        return code, err if code else out

    return run


@pytest.mark.parametrize("damage", [truncate, lambda path: path.unlink()], ids=["cut", "gone"])
@pytest.mark.parametrize("storage", ["zarr", "webdataset"])
def test_a_lost_manifest_is_made_again_to_the_same_bytes_by_the_config(
    tiny_yaml, own_shards, tmp_path, repair, damage, storage
):
    folder = own_shards
    if storage == "webdataset":
        folder = tmp_path / "tars"
        convert_shards(own_shards, folder, storage, jobs=1)
    whole = folder_bytes(folder)
    damage(folder / "manifest.json")
    code, told = repair(folder, "--config", tiny_yaml)
    assert code == 0
    assert "rebuilt the manifest, of plan" in told
    assert told.endswith("made 0 parts again\n")
    assert folder_bytes(folder) == whole


@pytest.mark.parametrize(
    ("before", "after"),
    [('"header_digest": "', '"header_digest": "0'), ('"split": "train",', '"split": "trane",')],
)
def test_what_a_damaged_manifest_still_says_of_the_plan_is_enough(
    own_shards, repair, before, after
):
    whole = folder_bytes(own_shards)
    path = own_shards / "manifest.json"
    manifest = json.loads(path.read_text())
    path.write_text(json.dumps({**manifest, "parts": {}}, indent=1, sort_keys=True))
    alter(path, before, after)
    assert repair(own_shards)[0] == 0
    assert folder_bytes(own_shards) == whole


def test_a_damaged_manifest_from_before_a_setting_says_enough_too(tiny_yaml, tmp_path, repair):
    folder = tmp_path / "old"
    generate_shards(load_config(tiny_yaml, ["shards.shuffle=bits"]), folder, [1], jobs=1)
    assert "shuffle" not in json.loads((folder / "manifest.json").read_text())["storage"]
    whole = folder_bytes(folder)
    alter(folder / "manifest.json", '"header_digest": "', '"header_digest": "0')
    assert repair(folder)[0] == 0
    assert folder_bytes(folder) == whole


def test_the_packing_of_parts_to_come_is_the_configs(tiny_yaml, own_shards, repair):
    (own_shards / "manifest.json").unlink()
    code, told = repair(own_shards, "--config", tiny_yaml, "--set", "shards.zstd_level=7")
    assert (code, told.splitlines()[-1]) == (0, f"{own_shards}: made 0 parts again")
    assert open_shards(own_shards).manifest.storage.zstd_level == 7
    assert list(problems_of(own_shards)) == []


def test_the_split_is_the_entries(tiny, tiny_yaml, tmp_path, repair):
    folder = tmp_path / "heldout"
    generate_shards(tiny, folder, [1], "heldout", jobs=1)
    whole = folder_bytes(folder)
    truncate(folder / "manifest.json")
    assert repair(folder, "--config", tiny_yaml)[0] == 0
    assert folder_bytes(folder) == whole


def test_bad_parts_are_made_again_once_the_manifest_is_there(own_shards, tiny_yaml, repair):
    whole = folder_bytes(own_shards)
    (own_shards / "manifest.json").unlink()
    truncate(own_shards / PartId(2, 0).entry_path)
    (own_shards / PartId(3, 1).entry_path).unlink()
    code, told = repair(own_shards, "--config", tiny_yaml)
    assert (code, told.splitlines()[-1]) == (0, f"{own_shards}: made 2 parts again")
    assert folder_bytes(own_shards) == whole


@pytest.mark.parametrize(
    ("override", "sentence"),
    [
        ("prior.seed=1", "the config is of plan .*, and the parts of .* are of plan"),
        ("shards.parts_per_stage=2", "does not exist with shards.parts_per_stage=2"),
        ("shards.parts_per_stage=4", "does not exist with shards.parts_per_stage=4"),
        ("shards.x_dtype=float32", "is not what its seeds give here"),
    ],
)
def test_a_config_that_the_parts_contradict_is_refused(
    own_shards, tiny_yaml, repair, override, sentence
):
    truncate(own_shards / "manifest.json")
    before = folder_bytes(own_shards)
    code, told = repair(own_shards, "--config", tiny_yaml, "--set", override)
    assert code == 2
    assert re.search(sentence, told)
    assert folder_bytes(own_shards) == before


def refused(folder, sentence, config=None):
    before = folder_bytes(folder)
    with pytest.raises(ShardError, match=sentence):
        rebuild_manifest(folder, config)
    assert folder_bytes(folder) == before


def test_storage_that_a_damaged_manifest_says_is_not_believed_where_files_differ(own_shards, tiny):
    alter(own_shards / "manifest.json", '"chunk_cells": 1024', '"chunk_cells": 2048')
    refused(own_shards, "is not stored as .* says: give the config")
    rebuild_manifest(own_shards, tiny)
    assert open_shards(own_shards).manifest.storage == tiny.shards


def test_without_a_plan_or_parts_there_is_nothing_to_make_it_from(own_shards, tiny, tmp_path):
    truncate(own_shards / "manifest.json")
    refused(own_shards, "no longer says its plan: give the config")
    shutil.rmtree(own_shards / "entries")
    refused(own_shards, "holds no shards: there is neither a manifest nor any entry", tiny)
    refused(tmp_path / "nowhere", "holds no shards", tiny)


def test_whoever_reads_parts_without_a_manifest_is_told_how_to_rebuild_it(own_shards):
    (own_shards / "manifest.json").unlink()
    told = r"holds parts \(stage-0001-part-000, ...\) and no manifest: rebuild it with `prior-gen"
    with pytest.raises(ShardError, match=told):
        open_shards(own_shards)


def test_entries_that_name_no_plan_or_several_are_adopted_by_none(own_shards, tiny, tmp_path):
    (own_shards / "manifest.json").unlink()
    path = own_shards / PartId(2, 1).entry_path
    whole = path.read_text()
    fields = json.loads(whole)
    del fields["plan"]
    path.write_text(canonical_json(fields) + "\n")
    refused(own_shards, "entry of stage-0002-part-001 .* did not record plans", tiny)
    path.write_text(whole)
    generate_shards(tiny, tmp_path / "heldout", [2], "heldout", jobs=1)
    shutil.copytree(tmp_path / "heldout" / "entries", own_shards / "entries", dirs_exist_ok=True)
    refused(own_shards, "holds parts of several plans .*split train.*split heldout", tiny)


def test_parts_that_another_machine_made_are_not_spoken_for(own_shards, tiny, monkeypatch):
    """Whatever makes the same task differ here: its bits are not those that lie there."""
    real = prior_gen.generator.generate_microbatch

    def other_bits(*address):
        batch = real(*address)
        batch.x[0, 0, 0] += 1
        return batch

    (own_shards / "manifest.json").unlink()
    monkeypatch.setattr(prior_gen.generator, "generate_microbatch", other_bits)
    refused(own_shards, "is not what its seeds give here: another machine or software", tiny)


def test_a_part_of_a_stage_that_the_plan_does_not_have_is_named(own_shards, tiny):
    (own_shards / "manifest.json").unlink()
    text = (own_shards / PartId(1, 0).entry_path).read_text()
    for stage in (0, tiny.prior.total_stages + 1):
        stranger = own_shards / PartId(stage, 0).entry_path
        text_of_it = text.replace(PartId(1, 0).name, PartId(stage, 0).name)
        stranger.write_text(text_of_it.replace('"stage":1', f'"stage":{stage}'))
        refused(own_shards, f"stage-000{stage}-part-000 .* does not exist with", tiny)
        stranger.unlink()


def test_the_smallest_part_speaks_for_the_others(own_shards, tiny, monkeypatch):
    made = []

    def spy(manifest, folder, part):
        made.append(part)
        return write_part(manifest, folder, part)

    (own_shards / "manifest.json").unlink()
    monkeypatch.setattr(prior_gen.rebuild, "write_part", spy)
    rebuild_manifest(own_shards, tiny)
    cells = {entry.id: entry.n_cells for entry in entries_of(own_shards)}
    assert len({*cells.values()}) > 1
    assert made == [min(cells, key=lambda part: (cells[part], part))]


def test_a_slice_is_to_be_sliced_again(all_shards, tmp_path):
    out = tmp_path / "slice"
    slice_shards(all_shards, "d <= 3", out)
    alter(out / "manifest.json", '"split": "train",', '"split": "trane",')
    refused(out, "is a slice, and its parts do not tell which: slice it again")


def test_a_whole_manifest_is_left_alone_and_no_other_plan_is_put_in_its_place(
    own_shards, tiny_yaml, repair
):
    whole = folder_bytes(own_shards)
    assert repair(own_shards, "--config", tiny_yaml)[0] == 0
    code, told = repair(own_shards, "--config", tiny_yaml, "--set", "prior.seed=1")
    assert code == 2
    assert "has a whole manifest" in told
    code, told = repair(own_shards, "--set", "prior.seed=1")
    assert code == 2
    assert "--set overrides a --config" in told
    assert folder_bytes(own_shards) == whole
    assert list(problems_of(own_shards)) == []
