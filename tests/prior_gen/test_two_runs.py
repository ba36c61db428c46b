"""Two real runs into one folder at once: of one plan they share it, of two one is refused."""

import contextlib
from pathlib import Path

from folders import folder_bytes
from launched import launch

from prior_gen import generator
from prior_gen.generator import generate_shards
from shard_io import open_shards, problems_of
from shard_io.store import LocalStore


def finish(runs):
    told = [run.communicate(timeout=600) for run in runs]
    return [(run.returncode, *output) for run, output in zip(runs, told, strict=True)]


def test_two_runs_of_one_plan_at_once_make_the_bytes_of_one(tiny_yaml, all_shards, tmp_path):
    arguments = ["--config", tiny_yaml, "--out", tmp_path / "shards"]
    ranges = (["--stages", "1-5", "--jobs", "1"], ["--stages", "1-5", "--jobs", "2"])
    for code, _, complaint in finish([launch(*arguments, *rest) for rest in ranges]):
        assert code == 0, complaint
    assert list(problems_of(tmp_path / "shards")) == []
    assert folder_bytes(tmp_path / "shards") == folder_bytes(all_shards)


def test_of_two_plans_begun_at_once_one_gets_the_folder_and_the_other_is_refused(
    tiny_yaml, tmp_path
):
    folder = tmp_path / "shards"
    arguments = ["--config", tiny_yaml, "--stages", "1-3", "--out", folder, "--jobs", "1"]
    seeds = ("prior.seed=1", "prior.seed=2")
    results = finish([launch(*arguments, "--set", seed) for seed in seeds])
    assert sorted(code for code, _, _ in results) == [0, 2]
    refused = next(complaint for code, _, complaint in results if code == 2)
    assert refused.startswith(f"error: {folder} holds other shards: prior.seed is ")
    assert refused.count("\n") == 1
    winner = 1 + [code for code, _, _ in results].index(0)
    assert open_shards(folder).manifest.config.prior.seed == winner
    assert list(problems_of(folder)) == []


def test_what_another_run_publishes_before_the_folder_is_claimed_is_not_made_again(
    tiny, tmp_path, monkeypatch
):
    folder, claim = tmp_path / "shards", generator.claim_folder

    def overtaken(*arguments):
        monkeypatch.setattr(generator, "claim_folder", claim)
        generate_shards(tiny, folder, [1], jobs=1)
        return claim(*arguments)

    monkeypatch.setattr(generator, "claim_folder", overtaken)
    result = generate_shards(tiny, folder, [1, 2], jobs=1)
    assert ({entry.stage for entry in result.written}, result.skipped) == ({2}, 3)


def test_a_folder_that_another_run_begins_while_it_is_looked_at_is_gone_on_with(
    tiny, tmp_path, monkeypatch
):
    folder, names = tmp_path / "shards", LocalStore.names

    def overtaken(store):
        seen = names(store)
        monkeypatch.setattr(LocalStore, "names", names)
        generate_shards(tiny, folder, [1], jobs=1)
        return seen

    monkeypatch.setattr(LocalStore, "names", overtaken)
    assert generate_shards(tiny, folder, [1], jobs=1).skipped == 3


def test_a_part_that_two_runs_make_at_once_is_published_whole_whoever_is_last(
    tiny, all_shards, tmp_path, monkeypatch
):
    import prior_gen.generator as generator

    folder, real = tmp_path / "shards", generator.publish_part

    def published_twice(*arguments):
        real(*arguments)  # the other run was a little faster
        return real(*arguments)

    monkeypatch.setattr(generator, "publish_part", published_twice)
    generate_shards(tiny, folder, range(1, 6), jobs=1)
    assert folder_bytes(folder) == folder_bytes(all_shards)


def test_workers_are_told_the_folder_wherever_they_were_started(tiny, tmp_path, monkeypatch):
    """As a cluster's may have been, from another folder than the run."""
    monkeypatch.chdir(tmp_path)
    run_all = generator.run_all

    def elsewhere(work, calls, *rest):
        (tmp_path / "home").mkdir()
        with contextlib.chdir(tmp_path / "home"):
            return run_all(work, calls, *rest)

    monkeypatch.setattr(generator, "run_all", elsewhere)
    generate_shards(tiny, Path("shards"), [1], jobs=1)
    assert not list((tmp_path / "home").iterdir())
    assert len(open_shards(tmp_path / "shards").published_parts()) > 0
