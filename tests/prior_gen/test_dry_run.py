"""What a dry run says of time and bytes, and what a run says while it works."""

import errno
import re
import time

import pytest
from folders import folder_bytes

import prior_gen.estimate
import prior_gen.generator
from prior_gen import generate_microbatch
from prior_gen.estimate import estimate, measure, room, worker_count
from puicl_config import load_config
from shard_io import Layout, PartId, open_shards, publish_part

CODE = "from prior_gen.cli import main; main()"


def parts_of(config, stages):
    layout = Layout(config.prior, config.shards.parts_per_stage)
    return [part for stage in stages for part in layout.parts_of_stage(stage)]


@pytest.mark.parametrize("split", ["train", "heldout"])
@pytest.mark.parametrize("x_dtype", ["float16", "float32"])
def test_of_few_microbatches_rows_cells_and_bytes_are_those_that_will_be_made(
    tiny_yaml, x_dtype, split
):
    config = load_config(tiny_yaml, [f"shards.x_dtype={x_dtype}"])
    parts = parts_of(config, [1])
    layout = Layout(config.prior, config.shards.parts_per_stage)
    addresses = [address for part in parts for address in layout.addresses(part)]
    made = [generate_microbatch(config, *address, split) for address in addresses]
    size = estimate(config, parts, split)
    assert (size.microbatches, size.tasks) == (len(made), sum(len(batch.x) for batch in made))
    assert size.rows == pytest.approx(sum(batch.x[:, :, 0].size for batch in made))
    assert size.cells == pytest.approx(sum(batch.x.size for batch in made))
    arrays = sum(batch.x.nbytes + batch.y.nbytes for batch in made)
    assert size.bytes == pytest.approx(arrays + 2500 * len(made))  # with their tags


def test_the_bytes_of_a_dry_run_are_near_those_of_the_run(tiny, all_shards):
    parts = parts_of(tiny, range(1, 6))
    cost = measure(tiny, parts, "train", estimate(tiny, parts, "train"))
    reader = open_shards(all_shards)
    actual = sum(reader.entry(part).n_bytes for part in parts)
    assert 0.6 < cost.bytes / actual < 1.4
    assert cost.sampled == 16


def test_time_and_bytes_grow_with_what_is_wanted(tiny):
    few, many = parts_of(tiny, [1]), parts_of(tiny, range(1, 6))
    one = measure(tiny, few, "train", estimate(tiny, few, "train"))
    all_of_it = measure(tiny, many, "train", estimate(tiny, many, "train"))
    assert all_of_it.bytes > 3 * one.bytes
    assert one.seconds > 0


def test_room_is_what_is_compressed_where_what_is_not_has_none(tiny, monkeypatch):
    parts = parts_of(tiny, range(1, 6))
    size = estimate(tiny, parts, "train")
    assert room(tiny, parts, "train", size.bytes) == size.bytes
    packed = room(tiny, parts, "train", size.bytes - 1)
    cost = measure(tiny, parts, "train", size)
    assert packed == pytest.approx(1.1 * cost.bytes)
    assert packed < size.bytes

    def full(*_, **more):
        raise OSError(errno.ENOSPC, "no space")

    monkeypatch.setattr(prior_gen.estimate, "publish_part", full)
    assert room(tiny, parts, "train", 0.0) == size.bytes


def test_each_part_takes_its_time_whatever_it_holds(tiny, monkeypatch):
    """A second a part and a tenth a microbatch: what 16 of them took is not all of that."""
    now = [0.0]

    def published(folder, part, microbatches, *rest, **more):
        now[0] += 1.0 + 0.1 * len(microbatches)
        return publish_part(folder, part, microbatches, *rest, **more)

    monkeypatch.setattr(prior_gen.estimate.time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(prior_gen.estimate, "publish_part", published)
    parts = parts_of(tiny, range(1, 6))
    size = estimate(tiny, parts, "train")
    cost = measure(tiny, parts, "train", size)
    # Microbatches by their cells, of which the sample is some share.
    assert cost.seconds == pytest.approx(size.parts + 0.1 * size.microbatches, rel=0.3)


def test_the_command_prints_time_and_bytes_for_its_share_and_writes_nothing(
    tiny_yaml, run_command, tmp_path
):
    arguments = ["--config", tiny_yaml, "--stages", "1-5", "--dry-run", "--part-range", "2/5"]
    done = run_command("-c", CODE, *arguments, "--jobs", "2", cwd=tmp_path)
    assert "3 parts, " in done.stdout
    # Of what a sample says, three digits.
    counts = re.search(r"about ([\d,]+) rows, ([\d,]+) cells", done.stdout).groups()
    assert all(re.fullmatch(r"\d{1,3}0*", count.replace(",", "")) for count in counts), counts
    assert re.search(
        r"from \d+ microbatches made here: about \S+ with 2 workers, about \S+ [kM]B on disk as ",
        done.stdout,
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("jobs", "parts", "tasks", "workers"),
    [
        (None, 15, 216, 1),
        (None, 15, 1300, 3),
        (None, 2, 1300, 2),
        (None, 500, 10**8, 8),
        (None, 0, 0, 1),
        (4, 15, 10, 4),
        (12, 500, 10**8, 12),
        (12, 3, 10, 3),
    ],
)
def test_no_worker_is_started_that_has_little_to_do_unless_it_was_asked_for(
    monkeypatch, jobs, parts, tasks, workers
):
    monkeypatch.setattr("joblib.cpu_count", lambda: 8)
    assert worker_count(jobs, parts, tasks) == workers


def test_the_sample_of_a_dry_run_is_stored_as_the_run_would_store_it(tiny_yaml):
    sizes = {}
    for shard_format in ("zarr", "webdataset"):
        config = load_config(tiny_yaml, [f"shards.format={shard_format}"])
        parts = parts_of(config, [1])
        sizes[shard_format] = measure(config, parts, "train", estimate(config, parts, "train"))
    assert sizes["webdataset"].bytes > 1.5 * sizes["zarr"].bytes


@pytest.fixture
def dry_run(prior_gen_command, tiny_yaml):
    def run(*arguments):
        code, out, err = prior_gen_command("--config", tiny_yaml, "--dry-run", *arguments)
        return code, out + err

    return run


def test_what_is_there_already_is_not_counted_again(dry_run, own_shards, tmp_path):
    for number in (0, 2):
        (own_shards / PartId(4, number).entry_path).unlink()
    before = folder_bytes(own_shards)
    there = ("--out", own_shards)
    code, told = dry_run("--stages", "1-5", *there)
    assert code == 0
    assert "stages 1-5, 2 parts, " in told
    assert f"{own_shards}: 13 more parts exist already and would be kept" in told
    _, told = dry_run("--tail", *there, "--part-range", "1/2")
    assert "stages 4-5, 2 parts, " in told
    assert "1 more part exists already" in told
    _, told = dry_run("--stages", "1-3", *there)
    assert "0 parts, 0 microbatches, 0 tasks" in told
    assert "9 more parts" in told
    code, told = dry_run("--stages", "1", *there, "--set", "prior.seed=9")
    assert code == 2
    assert "seed is 0 there, 9 wanted" in told
    assert folder_bytes(own_shards) == before


def test_the_room_is_compared_with_what_is_free(dry_run, monkeypatch, tmp_path):
    out = tmp_path / "deep" / "shards"
    code, told = dry_run("--stages", "1", "--out", out)
    assert code == 0
    assert f"{out}: " in told
    assert told.rstrip().endswith("GB are free there")
    monkeypatch.setattr(prior_gen.generator, "free_space", lambda folder: 10)
    code, told = dry_run("--stages", "1", "--out", out)
    assert code == 2  # as the run would
    assert f"and the disk of {out} has 10 bytes free; make room" in told
    assert list(tmp_path.iterdir()) == []


def test_plans_that_nobody_can_make_are_estimated_at_once_and_refused(dry_run, tmp_path):
    start = time.monotonic()
    there = ("--stages", "1", "--out", tmp_path / "x", "--set")
    many = (*there, "prior.steps_per_stage=1000000000")
    code, told = dry_run(*many)
    assert code == 2
    assert "microbatches made here: about" in told
    assert "make room, or generate fewer stages" in told
    large = (*there, "prior.n_labeled=[1000000,100000000]")
    _, told = dry_run(*large)
    assert "cells: too many to make some for an estimate of the time" in told
    assert time.monotonic() - start < 60
