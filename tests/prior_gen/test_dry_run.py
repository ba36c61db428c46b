"""What a dry run says of time and bytes, and what a run says while it works."""

import re

from prior_gen.estimate import estimate, measure
from prior_gen.generator import generate_shards
from puicl_config import load_config
from shard_io import Layout, open_shards

CODE = "from prior_gen.cli import main; main()"


def parts_of(config, stages):
    layout = Layout(config.prior, config.shards.parts_per_stage)
    return [part for stage in stages for part in layout.parts_of_stage(stage)]


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


def test_the_command_prints_time_and_bytes_for_its_share_and_writes_nothing(
    tiny_yaml, run_command, tmp_path
):
    arguments = ["--config", tiny_yaml, "--stages", "1-5", "--dry-run", "--part-range", "2/5"]
    done = run_command("-c", CODE, *arguments, "--jobs", "2", cwd=tmp_path)
    assert "3 parts, " in done.stdout
    assert re.search(
        r"from \d+ microbatches made here: about \S+ with 2 workers, about \S+ GB on disk as zarr",
        done.stdout,
    )
    assert list(tmp_path.iterdir()) == []


def test_the_sample_of_a_dry_run_is_stored_as_the_run_would_store_it(tiny_yaml):
    sizes = {}
    for shard_format in ("zarr", "webdataset"):
        config = load_config(tiny_yaml, [f"shards.format={shard_format}"])
        parts = parts_of(config, [1])
        sizes[shard_format] = measure(config, parts, "train", estimate(config, parts, "train"))
    assert sizes["webdataset"].bytes > 1.5 * sizes["zarr"].bytes


def test_a_run_says_how_far_it_is_and_in_which_stage(tiny, tmp_path, capsys):
    generate_shards(tiny, tmp_path / "shards", [2], jobs=1)
    told = capsys.readouterr().err
    assert "prior-gen: 48/48 tasks (100%)" in told
    assert "3/3 parts, stage 2" in told
