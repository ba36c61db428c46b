"""What `prior-gen` says of a run: its options, what it made, and the numbers of a dry run."""

import dataclasses
from types import SimpleNamespace

import pytest

import prior_gen.cli
import prior_gen.estimate
from prior_gen.cli import _show_result
from prior_gen.estimate import Cost, Estimate, compressed, estimate, measure
from prior_gen.generator import GenerationResult, generate_shards
from prior_gen.microbatch import generate_microbatch
from puicl_config import load_config, volume
from shard_io import Layout, open_shards, publish_part

# Every microbatch is as large as every other.
EQUAL = (
    *("n_features=[3,3]", "n_labeled=[10,10]", "eta_first=[1.0,1.0]", "eta_final=[1.0,1.0]"),
    "extensions.share=0",
)


def parts_of(config, stages):
    layout = Layout(config.prior, config.shards.parts_per_stage)
    return [part for stage in stages for part in layout.parts_of_stage(stage)]


@pytest.fixture
def told(prior_gen_command, tiny_yaml, tmp_path):
    """Run `prior-gen --config tiny.yaml`, which must exit with 0; what it says."""

    def run(*words, out=None):
        where = ("--out", tmp_path / "shards" if out is None else out)
        status, said, complaint = prior_gen_command("--config", tiny_yaml, *where, *words)
        assert status == 0, complaint
        return said

    return run


def test_the_format_of_the_command_goes_before_the_configs(told, tmp_path):
    told("--stages", 1, "--part-range", "1/3", "--format", "webdataset", "--jobs", 1)
    assert open_shards(tmp_path / "shards").manifest.storage.format == "webdataset"


def test_the_split_is_that_of_the_folder_whose_manifest_is_the_config(
    tiny, tmp_path, prior_gen_command
):
    folder = tmp_path / "heldout"
    generate_shards(tiny, folder, [1], "heldout", jobs=1)
    there = ("--config", folder / "manifest.json", "--stages", 1, "--out", folder, "--dry-run")
    status, said, _ = prior_gen_command(*there)
    assert (status, "3 more parts exist already" in said) == (0, True)
    assert prior_gen_command(*there, "--split", "train")[0] == 2


def test_a_dry_run_of_stages_and_the_tail_is_of_both_and_notes_what_is_idle(told):
    said = told("--stages", 2, "--tail", "--dry-run", "--set", "prior.extensions.discrete=0.5")
    assert "stages 2, 4-5, 9 parts, " in said
    assert said.startswith("note: prior.extensions.share is 0, so that no task is extended")


def test_an_override_of_two_lines_is_told_to_be_one_of_the_config(prior_gen_command):
    code, _, said = prior_gen_command("train.where=d < 3\nand d > 1")
    assert code == 2
    assert "is not a command; to override the config, give --set train.where=d < 3\n" in said


def test_what_was_made_is_told_in_parts_tasks_bytes_and_tasks_a_second(all_shards, capsys):
    reader = open_shards(all_shards)
    entries = [reader.entry(part) for part in reader.published_parts()]
    size = sum(entry.n_bytes for entry in entries)
    _show_result("there", GenerationResult(written=entries, skipped=0, seconds=54.0))
    said = f"there: wrote 15 parts with 216 tasks, {volume(size)}, in 54s (4 tasks/s)"
    assert capsys.readouterr().out == f"{said}\n"
    _show_result("there", GenerationResult(written=entries, skipped=7, seconds=54.0))
    assert capsys.readouterr().out == f"{said}, 7 parts there already\n"


@pytest.fixture
def cost(monkeypatch):
    """What a dry run is told that its sample cost."""

    def give(found):
        monkeypatch.setattr(prior_gen.cli, "measure", lambda *_: found)
        monkeypatch.setattr(prior_gen.cli, "check_backend", lambda *_: None)

    return give


@pytest.mark.parametrize(
    ("options", "who"),
    [
        (("--jobs", 1), "1m40s with 1 worker,"),
        (("--jobs", 4), "25s with 4 workers,"),
        (("--jobs", 4, "--backend", "dask", "--address", "tcp://x:1"), "1m40s with one worker,"),
    ],
)
def test_a_dry_runs_time_is_shared_by_the_workers_it_knows_of(told, cost, options, who):
    cost(Cost(16, 100.0, 5.25e6))
    said = told("--stages", "1-5", "--dry-run", *options)
    assert f"from 16 microbatches made here: about {who} about 5.25 MB on disk as zarr" in said


def test_a_dry_runs_sizes_are_the_estimates(told, cost, tiny, monkeypatch):
    asked = []
    monkeypatch.setattr(prior_gen.cli, "check_space", lambda folder, size: asked.append(size))
    size = estimate(tiny, parts_of(tiny, [1, 2]), "train")
    for found in (Cost(16, 100.0, size.bytes / 2), None):
        cost(found)
        said = told("--stages", "1-2", "--dry-run")
        assert f" cells, {volume(size.bytes)} uncompressed\n" in said
    assert asked == [pytest.approx(1.1 * size.bytes / 2), size.bytes]
    each = size.cells / size.microbatches
    assert f"a microbatch holds about {each:.3g} cells: too many to make some" in said


def test_no_more_is_asked_of_a_disk_than_what_is_not_compressed():
    size = Estimate(parts=1, microbatches=1, tasks=1, rows=1, cells=1, bytes=100.0)
    assert compressed(size, Cost(1, 1.0, 99.0)) == 100.0
    assert compressed(size, Cost(1, 1.0, 50.0)) == pytest.approx(55.0)


def test_of_many_microbatches_the_sample_is_from_all_stages(tiny_yaml):
    grows = ("eta_final=[4.0,4.0]", "n_labeled=[10,10]", "steps_per_stage=200", "tail_steps=0")
    config = load_config(tiny_yaml, [f"prior.{override}" for override in grows])
    stages = [estimate(config, parts_of(config, [stage]), "train").rows for stage in (1, 2, 3)]
    assert stages[0] < 0.7 * stages[2]
    whole = estimate(config, parts_of(config, [1, 2, 3]), "train")
    assert whole.rows == pytest.approx(sum(stages), rel=0.01)


def test_what_is_made_for_an_estimate_is_from_all_stages_and_ends_in_time(tiny, monkeypatch):
    made, now = [], [0.0]

    def slow(config, *address):
        made.append(address)
        now[0] += 3.0
        return generate_microbatch(config, *address)

    monkeypatch.setattr(prior_gen.estimate, "generate_microbatch", slow)
    parts = parts_of(tiny, range(1, 6))
    size = estimate(tiny, parts, "train")
    measure(tiny, parts, "train", size)
    assert {address[0] for address in made} == {1, 2, 3, 4, 5}
    assert {address[-1] for address in made} == {"train"}
    monkeypatch.setattr(prior_gen.estimate.time, "perf_counter", lambda: now[0])
    assert measure(tiny, parts, "train", size).sampled == 4  # after 12 seconds


def test_of_equal_microbatches_time_is_told_exactly(tiny_yaml, monkeypatch):
    """Half a second to make one; to publish, a second a part and a tenth a microbatch.

    The first of either takes a minute, for what is compiled or loaded once.
    """
    config = load_config(tiny_yaml, [f"prior.{override}" for override in EQUAL])
    now, compiling, loading = [0.0], iter([60.0]), iter([60.0])

    def made(*address):
        now[0] += next(compiling, 0.5)
        return generate_microbatch(*address)

    def published(folder, part, microbatches, *rest, **more):
        now[0] += next(loading, 1.0) + 0.1 * len(microbatches)
        return publish_part(folder, part, microbatches, *rest, **more)

    monkeypatch.setattr(prior_gen.estimate.time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(prior_gen.estimate, "generate_microbatch", made)
    monkeypatch.setattr(prior_gen.estimate, "publish_part", published)
    parts = parts_of(config, range(1, 6))
    size = estimate(config, parts, "train")
    cost = measure(config, parts, "train", size)
    assert cost.sampled == 16
    assert cost.seconds == pytest.approx(15 * 1.0 + 72 * (0.5 + 0.1))
    # Were they twice as large as those that are made here, all but a part's own time would be.
    larger = measure(config, parts, "train", dataclasses.replace(size, cells=2 * size.cells))
    assert larger.seconds == pytest.approx(15 * 1.0 + 2 * 72 * (0.5 + 0.1))
    assert larger.bytes == pytest.approx(2 * cost.bytes)


def test_a_part_takes_no_less_than_no_time_although_the_disk_was_held_up(tiny, monkeypatch):
    """Of the three parts that are published, the last and largest waits for the disk."""
    now, entry = [0.0], SimpleNamespace(n_cells=1, n_bytes=1)

    def published(folder, part, microbatches, *rest, **more):
        now[0] += 16.0 if len(microbatches) > 1 else 0.25
        return entry

    monkeypatch.setattr(prior_gen.estimate.time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(prior_gen.estimate, "publish_part", published)
    parts = parts_of(tiny, range(1, 6))
    size = dataclasses.replace(estimate(tiny, parts, "train"), cells=1.0)
    assert measure(tiny, parts, "train", size).seconds == (16.0 - 0.25) / 15 * 16
