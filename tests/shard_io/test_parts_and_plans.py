"""Every part names its plan and split: parts of two plans in one folder are never taken for one."""

import json
import shutil

import pytest
from folders import folder_bytes

from prior_gen.convert import convert_shards
from prior_gen.generator import generate_shards
from puicl_config import canonical_json
from shard_io import (
    PartId,
    PlanId,
    ShardError,
    bad_parts,
    open_shards,
    problems_of,
    publish_part,
    refresh_manifest,
    slice_shards,
)
from trainer.data import last_trainable_step

FIELDS_BEFORE = {"stage", "part", "n_microbatches", "n_tasks", "n_rows", "n_cells"} | {
    "content_digest",
    "files",
}


def reseeded(config, seed=1):
    return config.model_copy(update={"prior": config.prior.model_copy(update={"seed": seed})})


@pytest.fixture(scope="module")
def other_shards(tiny, tmp_path_factory):
    """Stages 1 and 2 of a plan with another seed; not to be written to."""
    folder = tmp_path_factory.mktemp("other") / "shards"
    generate_shards(reseeded(tiny), folder, [1, 2], jobs=1)
    return folder


@pytest.fixture
def mixed(own_shards, other_shards):
    """The other plan's folder copied over the tiny plan's: stages 3-5 are of the tiny plan."""
    shutil.copytree(other_shards, own_shards, dirs_exist_ok=True)
    return own_shards


def entry_files(folder):
    return sorted((folder / "entries").iterdir())


def make_older(folder):
    """Rewrite a folder's entries and manifest as they were before parts named their plan."""
    for path in entry_files(folder):
        fields = json.loads(path.read_text())
        del fields["plan"]
        assert fields.keys() == FIELDS_BEFORE
        path.write_text(canonical_json(fields) + "\n")
    manifest = json.loads((folder / "manifest.json").read_text())
    for entry in manifest["parts"].values():
        del entry["plan"]
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=1, sort_keys=True) + "\n")


def named_plans(folder):
    return {
        canonical_json(json.loads(path.read_text()).get("plan")) for path in entry_files(folder)
    }


def test_generated_sliced_and_converted_parts_name_the_plan_and_the_split(all_shards, tmp_path):
    manifest = open_shards(all_shards).manifest
    wanted = {canonical_json({"digest": manifest.plan_digest, "split": "train"})}
    slice_shards(all_shards, "d <= 3", tmp_path / "slice")
    convert_shards(all_shards, tmp_path / "tars", "webdataset", jobs=1)
    for folder in (all_shards, tmp_path / "slice", tmp_path / "tars"):
        assert named_plans(folder) == wanted
        merged = json.loads((folder / "manifest.json").read_text())["parts"]
        assert {canonical_json(entry["plan"]) for entry in merged.values()} == wanted


def test_parts_of_another_plan_are_read_by_nobody_and_merged_by_nobody(mixed, tiny, command):
    config = reseeded(tiny)
    reader = open_shards(mixed)
    assert reader[2, 0, 0].address == (2, 0, 0)
    before = (mixed / "manifest.json").read_bytes()
    theirs = open_shards(mixed).manifest.plan_digest
    refused = rf"stage-0003-part-000.json is of plan .*, and .* holds plan {theirs[:16]}"
    for act in (
        lambda: open_shards(mixed)[3, 0, 0],
        lambda: open_shards(mixed).tags(PartId(3, 0)),
        lambda: last_trainable_step(config, open_shards(mixed), 0, config.prior.total_steps),
        lambda: refresh_manifest(mixed),
        lambda: generate_shards(config, mixed, [3], jobs=1),
        lambda: slice_shards(mixed, "d <= 3", mixed.parent / "slice"),
        lambda: convert_shards(mixed, mixed.parent / "tars", "webdataset", jobs=1),
    ):
        with pytest.raises(ShardError, match=refused):
            act()
    assert (mixed / "manifest.json").read_bytes() == before
    code, told = command("verify", mixed)
    assert code == 1
    assert told.count("folders of two plans were put together") == 9  # the parts of stages 3-5


def test_repair_makes_parts_of_another_plan_again_by_the_folders_own(
    mixed, tiny, tmp_path, command
):
    code, told = command("repair", mixed, "--jobs", 1)
    assert (code, told.splitlines()[-1]) == (0, f"{mixed}: made 9 parts again")
    generate_shards(reseeded(tiny), tmp_path / "whole", [1, 2, 3, 4, 5], jobs=1)
    assert folder_bytes(mixed) == folder_bytes(tmp_path / "whole")


def test_parts_of_the_other_split_are_refused(own_shards, tiny, tmp_path):
    heldout = tmp_path / "heldout"
    generate_shards(tiny, heldout, [1], "heldout", jobs=1)
    for name in ("entries", "parts"):
        shutil.copytree(heldout / name, own_shards / name, dirs_exist_ok=True)
    with pytest.raises(ShardError, match=r"split heldout, and .* holds plan .*, split train"):
        open_shards(own_shards)[1, 0, 0]


def test_stages_of_one_plan_made_apart_may_be_put_together(tiny, all_shards, tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    generate_shards(tiny, one, [1, 4], jobs=1)
    generate_shards(tiny, two, [2, 3, 5], jobs=2)
    shutil.copytree(two, one, dirs_exist_ok=True)
    refresh_manifest(one)
    assert folder_bytes(one) == folder_bytes(all_shards)


def test_an_older_folder_reads_verifies_and_grows_and_its_entries_keep_their_bytes(
    tiny, all_shards, tmp_path, command
):
    folder = tmp_path / "older"
    generate_shards(tiny, folder, [1, 2], jobs=1)
    make_older(folder)
    before = folder_bytes(folder)
    assert command("verify", folder, "--regenerate", 2, "--jobs", 1)[0] == 0
    refresh_manifest(folder)
    assert folder_bytes(folder) == before
    theirs, ours = open_shards(folder), open_shards(all_shards)
    assert theirs[2, 3, 1].digest() == ours[2, 3, 1].digest()
    generate_shards(tiny, folder, [1, 2, 3, 4, 5], jobs=1)
    assert list(problems_of(folder)) == []
    assert last_trainable_step(tiny, open_shards(folder), 0, 18) == 18
    assert named_plans(folder) == {"null", *named_plans(all_shards)}
    kept = {path: content for path, content in before.items() if path != "manifest.json"}
    assert kept.items() <= folder_bytes(folder).items()


def test_no_copy_of_an_older_part_claims_a_plan(own_shards, tmp_path):
    make_older(own_shards)
    slice_shards(own_shards, "d <= 3", tmp_path / "slice")
    convert_shards(own_shards, tmp_path / "tars", "webdataset", jobs=1)
    assert named_plans(tmp_path / "slice") == named_plans(tmp_path / "tars") == {"null"}
    assert list(problems_of(tmp_path / "tars")) == []


def test_a_record_of_the_manifest_that_an_older_entry_contradicts_stays_until_seeds_decide(
    own_shards, other_shards, tmp_path, command
):
    whole = folder_bytes(own_shards)
    make_older(own_shards)
    theirs = shutil.copytree(other_shards, tmp_path / "theirs")
    make_older(theirs)
    before = (own_shards / "manifest.json").read_bytes()
    for name in ("entries", "parts"):
        shutil.copytree(theirs / name, own_shards / name, dirs_exist_ok=True)
    refresh_manifest(own_shards)
    assert (own_shards / "manifest.json").read_bytes() == before
    assert len(list(problems_of(own_shards))) == 6  # stages 1 and 2, three parts each
    assert command("repair", own_shards, "--jobs", 1)[1].endswith("made 6 parts again\n")
    assert list(problems_of(own_shards)) == []
    repaired = folder_bytes(own_shards)
    assert all(repaired[path] == whole[path] for path in whole if path.startswith("parts/"))


def test_a_part_that_was_packed_again_is_no_contradiction(own_shards):
    part, reader = PartId(2, 1), open_shards(own_shards)
    batches = [reader.part(part)[position] for position in reader.positions(part)]
    smaller = reader.manifest.storage.model_copy(update={"zstd_level": 9})
    packed = publish_part(own_shards, part, batches, smaller, reader.manifest.plan_id)
    assert packed.files != reader.entry(part).files
    assert bad_parts(own_shards) == []
    refresh_manifest(own_shards)
    assert list(problems_of(own_shards)) == []


def test_what_verify_finds_by_the_seeds_the_repair_that_it_names_mends(own_shards, command):
    whole, victim = folder_bytes(own_shards), PartId(2, 1)
    reader = open_shards(own_shards)
    part = reader.part(victim)
    forged = [part[position] for position in range(len(part))]
    forged[0].y[0, 0] ^= 1
    manifest = reader.manifest
    publish_part(own_shards, victim, forged, manifest.storage, manifest.plan_id)
    refresh_manifest(own_shards, [victim])
    code, told = command("verify", own_shards, "--regenerate", 50, "--seed", 3, "--jobs", 1)
    assert code == 1
    assert "stage-0002-part-001 differs from what its seeds give" in told
    advice = f"prior-gen repair {own_shards} --regenerate 50 --seed 3"
    assert f"`{advice}` mends bad parts" in told
    assert command("repair", own_shards)[1].endswith("made 0 parts again\n")
    assert command(*advice.split()[1:], "--jobs", 1)[1].endswith("made 1 part again\n")
    assert folder_bytes(own_shards) == whole


@pytest.mark.parametrize(
    "wrong",
    [
        *(None, "a text", {"digest": "0"}),
        *({"digest": 1, "split": "train"}, {"digest": "1", "split": 2}),
    ],
)
def test_an_entry_whose_plan_is_none_is_damaged(own_shards, wrong):
    path = own_shards / PartId(1, 0).entry_path
    path.write_text(canonical_json({**json.loads(path.read_text()), "plan": wrong}) + "\n")
    with pytest.raises(ShardError, match="is damaged"):
        open_shards(own_shards).entry(PartId(1, 0))


def test_a_plan_is_told_by_its_digest_and_split():
    assert str(PlanId("0123456789abcdef0123", "heldout")) == "plan 0123456789abcdef, split heldout"
