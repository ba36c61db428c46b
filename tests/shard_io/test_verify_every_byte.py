"""`verify` accounts for every byte of a folder; `--regenerate` for what no digest can tell."""

import itertools
import os
import random
import shutil

import pytest

from prior_gen.generator import generate_shards
from prior_gen.regenerate import regenerate_parts
from puicl_config import load_config
from shard_io import (
    PartId,
    ShardError,
    absent_parts,
    open_shards,
    problems_of,
    publish_part,
    refresh_manifest,
    sweep_staging,
)

SMALLEST = [
    *("prior.stages=2", "prior.steps_per_stage=2", "prior.tail_steps=0"),
    *("prior.microbatches_per_step=2", "prior.tasks_per_microbatch=1"),
    *("shards.parts_per_stage=2",),
]


@pytest.fixture(scope="module", params=["zarr", "webdataset"])
def whole(tiny_yaml, tmp_path_factory, request):
    config = load_config(tiny_yaml, [*SMALLEST, f"shards.format={request.param}"])
    folder = tmp_path_factory.mktemp("smallest") / "shards"
    generate_shards(config, folder, [1, 2], jobs=1)
    return folder


@pytest.fixture
def folder(whole, tmp_path):
    return shutil.copytree(whole, tmp_path / "shards")


def files_of(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file())


def found(folder):
    try:
        return list(problems_of(folder))
    except ShardError as error:
        return [str(error)]


def flip(path, place, bit):
    content = bytearray(path.read_bytes())
    content[place] ^= 1 << bit
    path.write_bytes(content)


def test_a_whole_folder_has_no_problems_and_bystanders_are_none(folder):
    (folder / "README.md").write_text("about")
    (folder / ".gitignore").write_text("*")
    (folder / ".staging" / "abc").mkdir(parents=True)
    (folder / ".staging" / "abc" / "half").write_text("half")
    assert found(folder) == []


def test_a_flipped_bit_in_any_file_is_found(folder):
    rng = random.Random(0)
    files = files_of(folder)
    assert len(files) in (25, 9)  # zarr: five files a part; webdataset: one
    for path in files:
        content = path.read_bytes()
        small = len(content) < 20_000 and path.suffix == ".json" and path.name != "zarr.json"
        places = {0, len(content) - 1, *rng.sample(range(len(content)), 12 if small else 1)}
        for place in sorted(places):
            flip(path, place, rng.randrange(8))
            assert found(folder), f"byte {place} of {path.relative_to(folder)}"
            path.write_bytes(content)
    assert found(folder) == []


def test_a_removed_truncated_or_lengthened_file_is_found_whichever_it_is(folder):
    for path in files_of(folder):
        content = path.read_bytes()
        path.unlink()
        assert found(folder), f"{path} removed"
        for changed in (b"", content[:-1], content + b"\0", content + b"\n"):
            path.write_bytes(changed)
            assert found(folder), f"{path} with {len(changed)} bytes instead of {len(content)}"
        path.write_bytes(content)
    assert found(folder) == []


def test_any_two_swapped_files_are_found(folder):
    files = files_of(folder)
    for one, two in itertools.pairwise(files):
        first, second = one.read_bytes(), two.read_bytes()
        if first == second:
            continue  # two groups may have equal metadata; to swap them changes nothing
        one.write_bytes(second)
        two.write_bytes(first)
        assert found(folder), f"{one} and {two} swapped"
        one.write_bytes(first)
        two.write_bytes(second)


@pytest.mark.parametrize(
    "name",
    [
        *("x", "entries/x.json", "parts/x", "parts/deep/x", "parts/manifest.json", ".hidden"),
        "other/shards/manifest.json",  # `other` has no manifest of its own
    ],
)
def test_an_extra_file_or_link_is_found_wherever_it_lies(folder, name):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("")
    assert found(folder) == [f"{path} belongs to no published part"]
    path.unlink()
    path.symlink_to("nowhere")
    assert found(folder) == [f"{path} belongs to no published part"]


def test_a_whole_stage_that_vanished_is_missed_because_the_manifest_names_it(folder):
    for path in files_of(folder):
        if "stage-0002" in path.as_posix():
            path.unlink()
    problems = found(folder)
    assert "stage-0002-part-000 is missing" in problems
    assert "stage-0002-part-001 is missing" in problems


def test_a_manifest_that_a_killed_writer_left_behind_is_told_and_merged(folder):
    manifest = open_shards(folder).manifest
    before = (folder / "manifest.json").read_bytes()
    (folder / "manifest.json").write_bytes(manifest.to_bytes({}))
    (problem,) = found(folder)
    assert "lacks the entry of stage-0001-part-000 and 3 more" in problem
    refresh_manifest(folder)
    assert (folder / "manifest.json").read_bytes() == before


def test_of_a_stage_begun_all_parts_are_wanted_and_of_one_not_begun_none(folder):
    for name in ("stage-0001", "stage-0002-part-001"):
        for path in folder.glob(f"entries/{name}*"):
            path.unlink()
    manifest = open_shards(folder).manifest
    (folder / "manifest.json").write_bytes(manifest.to_bytes({}))
    refresh_manifest(folder)
    assert absent_parts(folder) == [PartId(2, 1)]


def test_a_manifest_merged_while_another_writer_publishes_leaves_nothing_out(folder, monkeypatch):
    import shard_io.store

    late = folder / PartId(2, 1).entry_path
    content, real = late.read_bytes(), shard_io.store.replace_whole
    late.unlink()

    def published_meanwhile(*arguments):
        late.write_bytes(content)
        real(*arguments)

    monkeypatch.setattr(shard_io.store, "replace_whole", published_meanwhile)
    refresh_manifest(folder)
    assert found(folder) == []


def test_an_entry_that_points_outside_its_part_is_refused(folder):
    path = folder / PartId(1, 0).entry_path
    name = open_shards(folder).entry(PartId(1, 0)).files[0]["path"]
    home = "/".join(name.split("/")[:2])
    inside = ("parts/../" + name, home + "/../../manifest.json", home + "//etc/hostname")
    for wrong in ("../" * 2 + name, "/etc/hostname", "manifest.json", *inside):
        content = path.read_text()
        path.write_text(content.replace(name, wrong))
        with pytest.raises(ShardError, match="is not a file of this part"):
            open_shards(folder).entry(PartId(1, 0))
        path.write_text(content)


def test_a_forged_part_with_digests_of_its_own_is_found_by_regenerating(folder):
    victim = PartId(2, 1)
    reader = open_shards(folder)
    part = reader.part(victim)
    forged = [part[position] for position in range(len(part))]
    forged[0].y[0, 0] ^= 1
    manifest = reader.manifest
    publish_part(folder, victim, forged, manifest.storage, manifest.plan_id)
    refresh_manifest(folder, [victim])
    assert found(folder) == []
    chosen, unlike = regenerate_parts(folder, count=100, seed=0, jobs=1)
    assert chosen == reader.published_parts()
    assert unlike == [victim]


def test_a_part_whose_entry_is_damaged_is_not_said_to_differ_from_its_seeds(folder):
    (folder / PartId(2, 1).entry_path).write_text("{}")
    chosen, unlike = regenerate_parts(folder, count=100, seed=0, jobs=1)
    assert (PartId(2, 1) in chosen, unlike) == (True, [])


def test_which_parts_are_regenerated_is_a_function_of_the_seed_alone(folder):
    state = random.getstate()
    picks = [regenerate_parts(folder, 2, seed, jobs=1)[0] for seed in (0, 0, 1, 2, 3)]
    assert picks[0] == picks[1]
    assert len({tuple(pick) for pick in picks}) > 1
    assert all(len(set(pick)) == 2 for pick in picks)
    assert random.getstate() == state


def test_the_command_says_what_it_made_again_and_exits_with_1_on_a_problem(folder, command):
    code, out = command("verify", folder, "--regenerate", "3", "--jobs", "1")
    assert code == 0
    said = "4 parts are whole and match their digests; 3 of them, made again from their seeds, are"
    assert said in out
    os.truncate(folder / "manifest.json", 100)
    assert command("verify", folder)[0] == 2
    shutil.copy(folder / PartId(1, 1).entry_path, folder / "copy")
    assert command("verify", folder)[0] == 2


def test_what_a_killed_writer_of_the_manifest_leaves_is_swept(folder):
    (folder / ".staging" / "dead").mkdir(parents=True)
    (folder / ".staging" / "dead" / "lock").touch()
    (folder / ".staging" / "dead" / "content").write_text("half")
    sweep_staging(folder)
    assert not (folder / ".staging").exists()


def test_of_one_part_the_command_says_so_in_the_singular(tiny_yaml, tmp_path, command):
    words = ("--config", tiny_yaml, "--set", "shards.parts_per_stage=1", "--stages", "1")
    command(*words, "--out", tmp_path / "one", "--jobs", "1")
    _, out = command("verify", tmp_path / "one", "--regenerate", "1", "--jobs", "1")
    said = "1 part is whole and matches its digests; 1 of them, made again from its seeds, is the"
    assert said in out
