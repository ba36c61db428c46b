"""Sweeps run, stopped, gone on from and reported; and the command."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from little_runs import make_pool
from matplotlib.figure import Figure

from prior_gen.generator import generate_shards
from pu_bench.command import SWEEP_METHODS
from pu_bench.sweeps import (
    Pool,
    SweepPlan,
    run_sweeps,
    shard_pools,
    write_sweep_report,
)
from pu_bench.sweeps.report import _curve
from pu_bench.sweeps.report import summary as sweep_summary
from puicl_config import InputError


def test_a_sweep_is_resumed_and_every_method_sees_the_same_rows(heldout, tmp_path):
    pools, digest = shard_pools(str(heldout))
    pools = [*pools[:2], make_pool(name="table")]

    def plan(methods):
        return SweepPlan(["eta"], pools, methods, 2, None, 1, digest)

    first = run_sweeps(plan(["all_positive"]), tmp_path)
    records = run_sweeps(plan(["all_positive", "random"]), tmp_path)
    assert [r for r in records if r["method"] == "all_positive"] == first
    table = pd.read_csv(tmp_path / "sweeps.csv")
    assert not table.error.notna().any()
    assert sorted(table.value.unique()) == [0.5, 1, 2, 4, 8]
    # 60 labelled in these shards: 100 labelled and as many hidden are too many for them at 4 and 8.
    assert set(table[table.kind == "real"].repeat) == {0, 1}
    assert set(table[table.kind == "synthetic"].repeat) <= {0}
    by_split = pd.DataFrame(records).groupby(["task", "repeat"]).rows_seen.nunique()
    assert (by_split == 1).all()
    page = write_sweep_report(tmp_path).read_text(encoding="utf-8")
    assert "http" not in page.replace("base64", "")[:2000]
    assert (tmp_path / "figures" / "sweep_eta.png").read_bytes().startswith(b"\x89PNG")
    other = SweepPlan(["eta"], pools, ["random"], 2, None, 1, "0" * 64)
    with pytest.raises(InputError, match="other shards"):
        run_sweeps(other, tmp_path)
    # Without shards it is of the table alone, and what was drawn from them stays theirs.
    assert run_sweeps(SweepPlan(["eta"], pools[2:], ["random"], 2, None, 1, None), tmp_path)
    facts = json.loads((tmp_path / "sweeps.json").read_text())
    assert (facts["shards"], list(facts["pools"])) == (digest, ["table"])
    (tmp_path / "sweeps.json").unlink()
    with pytest.raises(InputError, match=r"sweeps.csv without the sweeps.json that says"):
        run_sweeps(plan(["all_positive"]), tmp_path)


def test_a_sweep_with_other_weights_is_refused_or_runs_its_method_again(small_weights, tmp_path):
    pools = [make_pool(name="table")]

    def plan(**options):
        methods = ["all_positive", "puicl_single"]
        return SweepPlan(["scar_score"], pools, methods, 1, small_weights, 1, None, **options)

    first = run_sweeps(plan(), tmp_path)
    facts = json.loads((tmp_path / "sweeps.json").read_text())
    zeros = {"puicl_single": "0" * 64}
    for fact, held, named in (
        ("weights", zeros, "weights (0000000000000000...)"),
        ("inference", zeros, "card or parameters (0000000000000000...)"),
        ("inference", {}, "card or parameters (unknown...)"),
    ):
        other = {**facts, fact: held}
        (tmp_path / "sweeps.json").write_text(json.dumps(other))
        cells = tmp_path / "sweep_cells.jsonl"
        cells.write_text("".join(json.dumps({**r, "auc": 0.123}) + "\n" for r in first))
        with pytest.raises(InputError, match=f"puicl_single with other {re.escape(named)}"):
            run_sweeps(plan(), tmp_path)
        again = run_sweeps(plan(new_weights=True), tmp_path)
        assert {r["auc"] for r in again if r["method"] == "all_positive"} == {0.123}
        figures = [[r["auc"] for r in found if r["method"] == "puicl_single"]
                   for found in (first, again)]  # fmt: skip
        assert figures[0] == figures[1] != [0.123] * 5
        assert json.loads((tmp_path / "sweeps.json").read_text())[fact] == facts[fact]


def test_a_published_sweep_is_gone_on_from_and_loses_no_row(small_weights, tmp_path):
    """A published folder has the table and not the log of cells."""
    pools, cells = [make_pool(name="table")], tmp_path / "sweep_cells.jsonl"

    def plan(methods, **options):
        return SweepPlan(["scar_score"], pools, methods, 1, small_weights, 1, None, **options)

    run_sweeps(plan(["puicl_single", "random"]), tmp_path)
    before = pd.read_csv(tmp_path / "sweeps.csv")
    cells.unlink()
    run_sweeps(plan(["random", "one_class_svm"]), tmp_path)
    after = pd.read_csv(tmp_path / "sweeps.csv")
    assert set(after.method) == {"puicl_single", "random", "one_class_svm"}
    kept = after[after.method.isin(["puicl_single", "random"])].reset_index(drop=True)
    pd.testing.assert_frame_equal(kept, before)

    facts = json.loads((tmp_path / "sweeps.json").read_text())
    assert len(facts["environments"]) == 1
    (tmp_path / "sweeps.json").write_text(
        json.dumps({**facts, "weights": {"puicl_single": "0" * 64}, "environments": [{"cpus": 0}]})
    )
    cells.unlink()
    with pytest.raises(InputError, match="other weights"):
        run_sweeps(plan(["puicl_single"]), tmp_path)
    assert not cells.exists()  # refused: the folder is as it was
    run_sweeps(plan(["puicl_single"], new_weights=True), tmp_path)
    assert len(pd.read_csv(tmp_path / "sweeps.csv")) == len(after)
    environments = json.loads((tmp_path / "sweeps.json").read_text())["environments"]
    assert environments == [{"cpus": 0}, *facts["environments"]]


def test_a_sweep_on_another_table_of_the_same_name_is_refused(tmp_path):
    pools = [make_pool(name="one"), make_pool(name="two")]

    def plan(pools, method="random"):
        return SweepPlan(["scar_score"], pools, [method], 1, None, 1, None)

    first = run_sweeps(plan(pools), tmp_path)
    facts = json.loads((tmp_path / "sweeps.json").read_text())
    x, positive = pools[1].x, pools[1].positive
    for other in (Pool("two", "real", x + 1e-9, positive), Pool("two", "real", x, ~positive)):
        with pytest.raises(InputError, match="sweeps on another two table; give another --out"):
            run_sweeps(plan([pools[0], other], "all_positive"), tmp_path)
    assert json.loads((tmp_path / "sweeps.json").read_text()) == facts

    # With their times: not run again.
    assert run_sweeps(plan(pools[:1]), tmp_path) == [r for r in first if r["pool"] == "one"]
    assert json.loads((tmp_path / "sweeps.json").read_text())["pools"] == facts["pools"]

    del facts["pools"]  # as an older version wrote it
    (tmp_path / "sweeps.json").write_text(json.dumps(facts))
    assert run_sweeps(plan(pools), tmp_path) == first
    with pytest.raises(InputError, match="another two table"):
        run_sweeps(plan([other]), tmp_path)


def test_the_table_of_a_sweep_has_the_same_bytes_whichever_cell_ends_first(tmp_path):
    plan = SweepPlan(["scar_score"], [make_pool(name="t")], ["random"], 3, None, 1, None)
    run_sweeps(plan, tmp_path)
    table, cells = (tmp_path / name for name in ("sweeps.csv", "sweep_cells.jsonl"))
    before = table.read_bytes()
    cells.write_text("".join(reversed(cells.read_text().splitlines(keepends=True))))
    run_sweeps(plan, tmp_path)
    assert table.read_bytes() == before


def test_a_sweep_on_other_rows_than_those_there_is_refused(tmp_path):
    def plan(*methods):
        return SweepPlan(["scar_score"], [make_pool(name="table")], methods, 1, None, 1, None)

    run_sweeps(plan("random"), tmp_path)
    table = pd.read_csv(tmp_path / "sweeps.csv")
    digest = table.rows_seen[0]
    assert len(digest) == 64
    (tmp_path / "sweep_cells.jsonl").unlink()
    table.drop(columns="rows_seen").to_csv(tmp_path / "sweeps.csv", index=False)
    run_sweeps(plan("random", "all_positive"), tmp_path)  # of an older version: nobody knows
    kept = pd.read_csv(tmp_path / "sweeps.csv").set_index("method").rows_seen
    assert kept["random"].isna().all()
    assert digest in set(kept["all_positive"])
    cells = tmp_path / "sweep_cells.jsonl"
    lines = cells.read_text().replace(digest, "0" * 64).splitlines(keepends=True)
    cells.write_text("".join(sorted(lines, key=lambda line: '"random"' in line)))  # unknown last
    with pytest.raises(InputError, match="holds results on other rows of scar_score=0@table, rep"):
        run_sweeps(plan("logistic"), tmp_path)


def test_failed_cells_of_a_sweep_are_retried_when_asked(tmp_path):
    pools = [make_pool(name="table")]

    def plan(**options):
        return SweepPlan(["scar_score"], pools, ["random"], 1, None, 1, None, **options)

    first = run_sweeps(plan(), tmp_path)
    failed = {**first[0], "auc": None, "error": "ValueError: no"}
    (tmp_path / "sweep_cells.jsonl").write_text(
        "".join(json.dumps(r) + "\n" for r in (failed, *first[1:]))
    )
    assert run_sweeps(plan(), tmp_path)[0]["error"] == "ValueError: no"
    write_sweep_report(tmp_path)
    rows = (tmp_path / "sweeps.md").read_text(encoding="utf-8").splitlines()
    (of_the_failed,) = [
        row for row in rows if row.startswith(f"| random | real | {failed['value']:g} ")
    ]
    assert [cell.strip() for cell in of_the_failed.split("|")[-3:-1]] == ["0", "1"]
    assert of_the_failed.split("|")[4].strip() == "0.500"  # as chance
    assert run_sweeps(plan(retry_failed=True), tmp_path)[0]["auc"] == first[0]["auc"]
    facts = json.loads((tmp_path / "sweeps.json").read_text())
    earlier = {key: facts[key] for key in facts if key != "protocol"}  # before it had a number
    for held in ({**facts, "protocol": 1}, earlier):
        (tmp_path / "sweeps.json").write_text(json.dumps(held))
        with pytest.raises(InputError, match="judged in another way"):
            run_sweeps(plan(), tmp_path)


def test_the_command_runs_a_sweep_and_names_the_shards_it_lacks(bench, tmp_path, monkeypatch):
    monkeypatch.setattr("pu_bench.sweeps.pools.FEWEST_OF_A_CLASS", 100)
    arguments = ["--sweep", "pi", "--tasks", "monk1", "--methods", "all_positive"]
    code, out, _ = bench(*arguments, "--repeats", 1, "--jobs", 1, "--out", tmp_path)
    assert code == 0
    assert "prior-gen --config bench --split heldout --tail --out shards/bench" in out
    assert "5 cells of 1 pools, 0 failed" not in out  # 216 rows of a class cannot show them all
    n = len(pd.read_csv(tmp_path / "sweeps.csv"))
    assert f"; {n} computed now, 0 were there already; " in out
    _, out, _ = bench(*arguments, "--repeats", 1, "--jobs", 1, "--out", tmp_path)
    assert f"; 0 computed now, {n} were there already; " in out
    assert json.loads((tmp_path / "sweeps.json").read_text())["shards"] is None
    code, _, err = bench("--sweep", "pi", "--tasks", "wdbc", "--out", tmp_path / "no", "--jobs", 1,
                         "--methods", "all_positive", "--shards", tmp_path / "nowhere")  # fmt: skip
    assert code == 2
    assert err.count("\n") == 1


def test_tables_too_small_for_a_sweep_are_named_and_refused_where_they_were_asked_for(
    bench, little_tables, tmp_path, monkeypatch
):
    monkeypatch.setattr("pu_bench.sweeps.pools.FEWEST_OF_A_CLASS", 60)
    common = ["--sweep", "labeled", "--data", little_tables, "--methods", "all_positive"]
    common += ["--repeats", 1, "--jobs", 1, "--out", tmp_path / "out"]
    _, out, _ = bench(*common)
    assert "table mixed is left out of the sweep: fewer than 1,000 rows of a class\n" in out
    assert "table easy" not in out
    for asked in ("mixed", "easy,mixed"):
        code, _, said = bench(*common, "--tasks", asked)
        assert code == 2
        assert said == (
            "error: fewer than 1,000 rows of a class in mixed: a sweep draws from tables with as "
            "many of each; name others with --tasks\n"
        )


def test_shards_too_small_for_every_value_are_told(bench, tmp_path, tiny):
    generate_shards(tiny, tmp_path / "small", [4], jobs=1, split="heldout")
    options = ("--tasks", "wdbc", "--methods", "random", "--jobs", 1)
    shards = ("--shards", tmp_path / "small", "--out", tmp_path / "out")
    code, out, said = bench("--sweep", "pi", *options, *shards)
    assert code == 2
    assert "table wdbc is left out of the sweep: fewer than 1,000 rows of a class\n" in out
    assert "pools has enough rows for a value of pi: `prior-gen --config bench" in said
    assert not (tmp_path / "out").exists()


def test_a_sweeps_mean_is_over_tasks_of_means_over_repeats():
    cells = pd.DataFrame(
        {
            "kind": "real",
            "method": "puicl",
            "value": 1.0,
            "pool": ["a", "a", "a", "b"],
            "auc": [0.9, 0.9, np.nan, 0.5],
            "accuracy": [0.9, 0.6, np.nan, 0.5],
            "error": [None, None, "no luck", None],
        }
    )
    mean, sem, count = sweep_summary(cells, "auc").loc[("real", "puicl", 1.0)]
    a = (0.9 + 0.9 + 0.5) / 3  # a failed cell's is chance
    assert (mean, sem, count) == pytest.approx(((a + 0.5) / 2, (a - 0.5) / 2, 2))
    assert sweep_summary(cells, "accuracy")["mean"].item() == pytest.approx((0.75 + 0.5) / 2)


def test_a_sweeps_band_is_the_95_percent_interval_that_its_page_says():
    table = pd.DataFrame({"mean": [0.5, 0.7], "sem": [0.1, np.nan], "count": [9, 1]}, [1.0, 2.0])
    axes = Figure().add_subplot()
    _curve(axes, table, "puicl", ["puicl"])
    (band,) = axes.collections
    corners = {tuple(corner) for corner in band.get_paths()[0].vertices.round(9)}
    assert corners == {(1.0, 0.5 - 0.196), (1.0, 0.5 + 0.196), (2.0, 0.7)}


def test_without_names_a_sweep_takes_a_few_strong_methods(bench, tmp_path, monkeypatch):
    monkeypatch.setattr("pu_bench.sweeps.pools.FEWEST_OF_A_CLASS", 100)
    planned = []
    monkeypatch.setattr(
        "pu_bench.command.run_sweeps",
        lambda plan, out, begun: planned.append(plan) or [{"error": None}],
    )
    monkeypatch.setattr("pu_bench.command.write_sweep_report", lambda out: out)
    assert bench("--sweep", "pi", "--tasks", "monk1", "--out", tmp_path)[0] == 0
    assert set(planned[0].methods) == set(SWEEP_METHODS)
