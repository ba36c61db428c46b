"""Folders of one plan that are stored in two ways and put together are never read as one."""

import shutil

import pytest
from folders import folder_bytes

from prior_gen.convert import convert_shards
from prior_gen.generator import generate_shards
from prior_gen.info import describe_shards
from puicl_config import load_config
from shard_io import (
    PartId,
    ShardError,
    bad_parts,
    open_shards,
    problems_of,
    slice_shards,
    verify_part,
)

STRANGER = PartId(1, 1)
# Otherwise than the tiny plan's folder is stored, and how that is told.
OTHERWISE = {
    "shards.format=webdataset": "lists .*stage-0001-part-001.tar, and .* is stored as zarr",
    "shards.x_dtype=float32": "holds x as float32, and shards.x_dtype of .* is float16",
    "shards.parts_per_stage=2": "is of 8 microbatches, and with shards.parts_per_stage=3 .* has 5",
    "shards.parts_per_stage=4": "is of 4 microbatches, and with shards.parts_per_stage=3 .* has 5",
}


@pytest.fixture(scope="module")
def stored(tiny_yaml, tmp_path_factory):
    """Called with overrides: a folder of the first stage, not to be written to."""
    made = {}

    def folder_of(*overrides):
        if overrides not in made:
            made[overrides] = tmp_path_factory.mktemp("stored") / "shards"
            generate_shards(load_config(tiny_yaml, overrides), made[overrides], [1], jobs=1)
        return made[overrides]

    return folder_of


def put_in(folder, source, part, names=("entries", "parts")):
    """Copy what `source` holds of a part over what `folder` holds of it."""
    for name in names:
        for path in (source / name).glob(f"{part.name}.*"):
            target = folder / name / path.name
            if path.is_dir():
                shutil.rmtree(target, ignore_errors=True)
            (shutil.copytree if path.is_dir() else shutil.copy)(path, target)


@pytest.mark.parametrize("override", OTHERWISE)
def test_a_part_that_is_stored_otherwise_is_read_by_nobody_and_made_again_by_repair(
    override, stored, own_shards, tmp_path, command
):
    whole = folder_bytes(own_shards)
    put_in(own_shards, stored(override), STRANGER)
    for act in (
        lambda: open_shards(own_shards).part(STRANGER),
        lambda: open_shards(own_shards).tags(STRANGER),
        lambda: describe_shards(own_shards),
        lambda: slice_shards(own_shards, "d <= 4", tmp_path / "slice"),
        lambda: convert_shards(own_shards, tmp_path / "tars", "webdataset", jobs=1),
    ):
        with pytest.raises(ShardError, match=OTHERWISE[override]):
            act()
    assert "were put together" in verify_part(own_shards, STRANGER)
    assert bad_parts(own_shards) == [STRANGER]
    assert command("verify", own_shards)[0] == 1
    assert command("repair", own_shards, "--jobs", 1)[1].endswith("made 1 part again\n")
    # The other format's file is nobody's now, and left alone.
    (own_shards / STRANGER.data_path("webdataset")).unlink(missing_ok=True)
    assert folder_bytes(own_shards) == whole


def test_data_that_its_entry_does_not_hash_is_never_read(stored, own_shards, command):
    """The other format's entry and file are whole; what lies in the folder's own is another's."""
    first = open_shards(own_shards)[1, 0, 0].digest()
    for number in range(3):
        put_in(own_shards, stored("shards.format=webdataset"), PartId(1, number))
        put_in(own_shards, stored("prior.seed=7"), PartId(1, number), names=["parts"])
    with pytest.raises(ShardError, match="folders of two formats were put together"):
        open_shards(own_shards)[1, 0, 0]
    assert command("repair", own_shards, "--jobs", 1)[1].endswith("made 3 parts again\n")
    assert open_shards(own_shards)[1, 0, 0].digest() == first
    assert {problem.rpartition(" belongs to ")[2] for problem in problems_of(own_shards)} == {
        "no published part"  # the tars
    }


def test_a_tar_of_another_dtype_is_refused_too(stored, tmp_path):
    folder = shutil.copytree(stored("shards.format=webdataset"), tmp_path / "tars")
    put_in(folder, stored("shards.format=webdataset", "shards.x_dtype=float32"), STRANGER)
    with pytest.raises(ShardError, match="holds x as float32"):
        open_shards(folder).part(STRANGER)
    assert bad_parts(folder) == [STRANGER]


def test_tags_of_as_many_microbatches_from_another_place_are_not_taken_for_a_parts_own(
    stored, tmp_path
):
    # Of 16 microbatches this is 3 to 5 where there are five parts, and 2 to 4 where six.
    folder = shutil.copytree(stored("shards.parts_per_stage=5"), tmp_path / "five")
    put_in(folder, stored("shards.parts_per_stage=6"), STRANGER)
    for act in (
        lambda: describe_shards(folder),
        lambda: slice_shards(folder, "d <= 4", tmp_path / "slice"),
    ):
        with pytest.raises(ShardError, match=r"holds \[1, 0, 2\] where \[1, 0, 3\] belongs"):
            act()
    assert "does not hold the microbatches" in verify_part(folder, STRANGER)
