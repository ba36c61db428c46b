"""What lies in a folder that is sliced into again is kept, unless it is the same slice, smaller."""

import shutil

import pytest
from folders import folder_bytes

from prior_gen.generator import generate_shards
from puicl_config import load_config
from shard_io import ShardError, slice_shards

SMALLEST = [
    *("prior.stages=2", "prior.steps_per_stage=1", "prior.tail_steps=0"),
    *("prior.microbatches_per_step=2", "prior.tasks_per_microbatch=1"),
    *("prior.hidden_layers=[2, 2]", "shards.parts_per_stage=2"),
]


@pytest.fixture(scope="module")
def folders(tiny_yaml, tmp_path_factory):
    """Folders of two plans, and of the first one's slice; not to be written to."""
    here = tmp_path_factory.mktemp("plans")
    for seed in (0, 1):
        config = load_config(tiny_yaml, [*SMALLEST, f"prior.seed={seed}"])
        generate_shards(config, here / f"seed{seed}", [1, 2], jobs=1)
    slice_shards(here / "seed0", "d > 0", here / "slice")
    return here


@pytest.fixture
def out(folders, tmp_path):
    return shutil.copytree(folders / "slice", tmp_path / "out")


def test_another_plans_slice_of_the_same_survivors_is_refused(folders, out):
    before = folder_bytes(out)
    with pytest.raises(ShardError, match=r"holds other shards: prior.seed is 0 there, 1 wanted"):
        slice_shards(folders / "seed1", "d > 0", out)
    assert folder_bytes(out) == before


def test_a_source_that_lost_a_stage_takes_none_from_the_slice(folders, out, tmp_path):
    source, before = shutil.copytree(folders / "seed0", tmp_path / "source"), folder_bytes(out)
    for path in source.glob("entries/stage-0002*"):
        path.unlink()
    with pytest.raises(ShardError, match="the slice's survivors differ"):
        slice_shards(source, "d > 0", out)
    assert folder_bytes(out) == before


def test_what_a_killed_slicing_left_behind_is_swept(folders, out):
    before, dead = folder_bytes(out), out / ".staging" / "dead"
    dead.mkdir(parents=True)
    for name in ("lock", "half"):
        (dead / name).touch()
    slice_shards(folders / "seed0", "d > 0", out)
    assert folder_bytes(out) == before
    assert not (out / ".staging").exists()


def test_another_expression_is_refused_though_the_same_tasks_survive_it(folders, out):
    before = folder_bytes(out)
    with pytest.raises(ShardError, match="holds other shards"):
        slice_shards(folders / "seed0", "d >= 1", out)
    assert folder_bytes(out) == before
