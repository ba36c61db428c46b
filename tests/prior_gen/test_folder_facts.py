"""What `prior-gen` says of a folder that is there: info, verify, repair, slice."""

import json
import re
import shutil
from collections import Counter

import pytest
from sealed import change_manifest

from prior_gen import folder_commands
from prior_gen.generator import generate_shards
from prior_gen.info import describe_shards
from puicl_config import InputError, load_config, volume
from shard_io import PartId, open_shards, slice_shards
from shard_io.files import LOCK


@pytest.fixture
def told(prior_gen_command, monkeypatch):
    """Run `prior-gen` on a wide terminal, which must exit with 0 unless another code is given;
    its stdout, or what it complains of."""
    monkeypatch.setenv("COLUMNS", "400")

    def run(*words, code=0):
        status, out, err = prior_gen_command(*words)
        assert status == code, err
        return out or err

    return run


def rows_of(table):
    """A table without a head, as first to second column."""
    lines = [re.split(r"[│|┃]", line)[1:3] for line in table.splitlines() if "│" in line]
    return {name.strip(): value.strip() for name, value in lines}


def test_the_table_of_a_folder_says_what_its_numbers_say(own_shards, told):
    for path in [*own_shards.glob("entries/stage-0005*"), own_shards / PartId(2, 1).entry_path]:
        path.unlink()
    facts = json.loads(told("info", own_shards, "--json"))
    rows = rows_of(told("info", own_shards))
    assert rows["plan"] == facts["plan_digest"][:16]
    assert (rows["stages"], rows["stages not begun"]) == ("1-4", "5")
    assert rows["missing parts of these"] == "stage-0002-part-001"
    assert rows["tasks"] == f"{facts['tasks']:,}"
    assert rows["bytes on disk"] == volume(facts["bytes"])
    eta = facts["tags"]["eta"]
    assert rows["eta"] == f"min {eta['min']:.3g}, mean {eta['mean']:.3g}, max {eta['max']:.3g}"
    causal = facts["tags"]["causal"]
    assert rows["causal"] == ", ".join(f"{key} {count}" for key, count in causal.items())
    assert "slice of this plan" not in rows


def test_the_numbers_of_a_folder_are_those_of_its_microbatches(all_shards):
    reader, facts = open_shards(all_shards), describe_shards(all_shards)
    parts = [reader.part(part) for part in reader.published_parts()]
    batches = [part[position] for part in parts for position in range(len(part))]
    shapes = [batch.x.shape for batch in batches]
    assert (facts["parts"], facts["microbatches"]) == (len(parts), len(batches))
    assert facts["tasks"] == sum(tasks for tasks, _, _ in shapes)
    assert facts["rows"] == sum(tasks * rows for tasks, rows, _ in shapes)
    assert facts["cells"] == sum(batch.x.size for batch in batches)
    files = [path for path in (all_shards / "parts").rglob("*") if path.is_file()]
    assert facts["bytes"] == sum(path.stat().st_size for path in files)
    for name, values in {
        "n_features": [columns for _, _, columns in shapes],
        "n_labeled": [batch.n_labeled for batch in batches],
        "n_unlabeled": [batch.y.shape[1] for batch in batches],
        "eta": [batch.tags["eta"] for batch in batches],
        "pi": [pi for batch in batches for pi in batch.tags["pi"]],
    }.items():
        mean = pytest.approx(sum(values) / len(values))
        assert facts["tags"][name] == {"min": min(values), "mean": mean, "max": max(values)}
    names = [name for batch in batches for name in batch.tags["activations"]]
    assert facts["tags"]["activations"] == Counter(names)
    for name in ("source", "sigma_noise", "hidden_width", "label_position"):
        assert facts["tags"][name] == Counter(str(batch.tags[name]) for batch in batches)


def test_a_whole_folder_lacks_none_and_a_slice_is_told_as_one(all_shards, tmp_path, told):
    rows = rows_of(told("info", all_shards))
    assert (rows["stages not begun"], rows["missing parts of these"]) == ("none", "none")
    slice_shards(all_shards, "d <= 3", tmp_path / "slice")
    assert rows_of(told("info", tmp_path / "slice"))["slice of this plan"] == "d <= 3"


def test_what_a_folder_is_called_and_says_of_itself_gives_no_orders(all_shards, tmp_path, told):
    folder = tmp_path / "a[red]b[/x] :bug:"
    slice_shards(all_shards, "d <= 3", folder)
    change_manifest(folder, lambda m: m["slice"].update(where="\x1b[2J[bold]d[/bold]"))
    out = told("info", folder)
    assert "a[red]b[/x] :bug:" in out
    assert rows_of(out)["slice of this plan"] == r"\x1b[2J[bold]d[/bold]"
    assert "\x1b" not in out
    assert "\x1b" not in told("slice", folder, "--where", "d > 0", "--out", tmp_path / "again")


@pytest.mark.parametrize(("parts", "more"), [(13, ""), (15, " and 2 more (--json lists all)")])
def test_twelve_missing_parts_are_named_and_others_counted(tiny_yaml, tmp_path, told, parts, more):
    config = load_config(tiny_yaml, [f"shards.parts_per_stage={parts}"])
    generate_shards(config, tmp_path / "shards", [1], jobs=1, share=(1, parts))
    lacking = rows_of(told("info", tmp_path / "shards"))["missing parts of these"]
    names = ", ".join(PartId(1, number).name for number in range(1, 13))
    assert lacking == names + more


def test_of_a_folder_without_parts_no_tags_are_missed(own_shards, told):
    shutil.rmtree(own_shards / "entries")
    said = told("info", own_shards)
    assert rows_of(said)["tasks"] == "0"
    assert "tars" not in said


@pytest.mark.parametrize("one", [("--stages", "1-3"), ("--shares", "2")])
def test_stages_and_shares_of_an_array_go_together(own_shards, told, one):
    said = told("info", own_shards, *one, code=2)
    assert said.startswith("error: --stages and --shares go together")


def test_parts_are_chosen_by_the_seed_and_mended_by_the_same(own_shards, told, monkeypatch):
    asked, unlike = [], []

    def regenerate(folder, count, seed, jobs):
        asked.append((count, seed, jobs))
        return [PartId(1, 0), PartId(2, 0)], unlike

    monkeypatch.setattr(folder_commands, "regenerate_parts", regenerate)
    which = ("--regenerate", 2, "--seed", 7, "--jobs", 1)
    told("repair", own_shards, *which)
    assert "; 2 of them, made again from their seeds, are the same" in (
        told("verify", own_shards, *which)
    )
    assert asked == [(2, 7, 1)] * 2
    # What the seeds have no part in is mended without them.
    entry = own_shards / PartId(3, 0).entry_path
    entry.write_text(entry.read_text() + " ")
    said = told("verify", own_shards, *which, code=1)
    assert said.endswith(f" problems; `prior-gen repair {own_shards}` mends bad parts\n")
    unlike.append(PartId(2, 0))
    said = told("verify", own_shards, *which, code=1)
    assert f" problems; `prior-gen repair {own_shards} --regenerate 2 --seed 7` mends" in said


@pytest.mark.parametrize("command", ["verify", "repair"])
def test_that_parts_are_made_again_is_told_before(own_shards, prior_gen_command, command):
    said = prior_gen_command(command, own_shards, "--regenerate", 1, "--jobs", 1)[2]
    assert "making up to 1 part again from their seeds\n" in said


def test_what_a_preview_left_out_is_told_and_its_seed_is_the_commands(tmp_path, told, monkeypatch):
    asked = []
    numbers = {"missing_parts": ["a", "b"], "stages_sampled": [1, 4], "plan_digest": "f" * 64}
    numbers |= {"microbatches_sampled": 1234, "tasks_scored": 5}
    monkeypatch.setattr("prior_gen.preview.write_preview", lambda *a: asked.append(a) or numbers)
    words = ("preview", tmp_path / "x", "--out", tmp_path / "y", "--tasks", 5, "--seed", 3)
    said = f"{tmp_path}/y/index.html: 2 stages of plan {'f' * 16}, 1,234 microbatches sampled, 5 "
    said += "tasks scored"
    assert told(*words) == f"{said}; the stages begun lack 2 parts\n"
    assert asked == [(tmp_path / "x", tmp_path / "y", 5, 3)]
    numbers |= {"missing_parts": ["a"], "microbatches_sampled": 1}
    assert told(*words).endswith(
        "1 microbatch sampled, 5 tasks scored; the stages begun lack 1 part\n"
    )
    numbers |= {"missing_parts": [], "microbatches_sampled": 1234}
    assert told(*words) == f"{said}\n"


def test_repair_says_that_it_put_the_manifest_right(own_shards, told):
    path = own_shards / "manifest.json"
    whole = path.read_text(encoding="utf-8")
    path.write_text(whole.replace('"n_tasks": ', '"n_tasks": 1', 1), encoding="utf-8")
    said = told("repair", own_shards, "--jobs", 1).splitlines()
    assert said == [
        f"{own_shards}: the manifest says again what the parts' own entries say",
        f"{own_shards}: made 0 parts again",
    ]
    assert path.read_text(encoding="utf-8") == whole


def test_repair_checks_that_seeds_give_the_same_here_if_there_is_anything_to_make(
    own_shards, told, monkeypatch
):
    def differs(manifest):
        raise InputError("other numbers")

    (own_shards / "notes.txt").write_text("mine")
    with monkeypatch.context() as patch:
        patch.setattr(folder_commands, "check_canary", differs)
        left, made = told("repair", own_shards, "--jobs", 1).splitlines()
        assert left.startswith("left alone: ")
        assert "notes.txt" in left
        assert made == f"{own_shards}: made 0 parts again"
        entry = own_shards / PartId(3, 0).entry_path
        entry.unlink()
        assert told("repair", own_shards, "--jobs", 1, code=2).endswith("error: other numbers\n")
        assert not entry.exists()
    assert told("repair", own_shards, "--jobs", 1).splitlines() == [
        left,
        f"{own_shards}: made 1 part again",
    ]
    assert f"{own_shards}: 1 problem; remove what " in told("verify", own_shards, code=1)


def test_what_is_stored_in_another_format_is_told_with_its_size_and_what_was_there(
    own_shards, tmp_path, told
):
    out = tmp_path / "tars"
    words = ("convert", own_shards, out, "--format", "webdataset", "--jobs", 1)
    said = told(*words)
    size = sum(path.stat().st_size for path in out.rglob("*.tar"))
    parts = len(open_shards(own_shards).published_parts())
    assert said == f"{out}: stored {parts} parts, {volume(size)}\n"
    assert told(*words) == f"{out}: stored 0 parts, 0 bytes, {parts} parts there already\n"
    array = ("--stages", "1-3", "--shares", 2)
    assert told("info", own_shards, *array) == f"{own_shards}: nothing is missing of stages 1-3\n"


def test_repair_sweeps_what_a_killed_writer_left_though_no_part_is_bad(own_shards, told):
    dead = own_shards / ".staging" / "dead"
    dead.mkdir(parents=True)
    (dead / LOCK).write_text("")
    (dead / "half").write_text("half")
    assert told("repair", own_shards, "--jobs", 1) == f"{own_shards}: made 0 parts again\n"
    assert not dead.exists()


def test_a_slices_stages_have_their_own_numbers_of_microbatches(all_shards, tmp_path, told):
    said = told("slice", all_shards, "--where", "step == 0", "--out", tmp_path / "slice")
    assert "stage 1: 4 of 16 microbatches, each read 4 times\n" in said
    assert "stage 5: 4 of 8 microbatches, each read 2 times\n" in said
    assert open_shards(tmp_path / "slice").manifest.slice.where == "step == 0"
