"""Figures of docs/unseen.md are those of results/unseen and results/development."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from natural_shares import _LIMITS, line
from paired_methods import lines

from pu_bench.run.files import read_results

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "unseen.md").read_text(encoding="utf-8")
RESULTS = ROOT / "results" / "unseen"


def test_methods_beside_one_another():
    cells = pd.DataFrame(read_results(RESULTS))
    first = lines(cells[cells["repeat"] == 0], "puicl")
    of_all = [line for line in first if line[1] == "95"]
    assert len(of_all) == 15
    splits = cells.groupby("method").size()
    twice = lines(cells[cells["method"].isin(splits[splits == 2 * 95].index)], "puicl")
    assert len(twice) == 15
    for found in of_all + twice:
        assert f"| {' | '.join(found)} |\n" in PAGE
    rivals = {line[0]: float(line[2]) for line in of_all if not line[0].startswith("PUICL")}
    assert len(rivals) == 12
    assert max(rivals, key=rivals.get) == "uLSIF"
    auc = {line[0]: f"{float(line[2]):.3f}"[1:] for line in twice}
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    told = (
        "a mean AUC of {}. The best of twelve rivals, uLSIF, reaches {} and cross-fitted trees {}."
    )
    told = told.format(auc["PUICL"], auc["uLSIF"], auc["ExtraTrees P vs U"])
    assert told in " ".join(readme.split())


def test_methods_on_the_development_tables():
    cells = pd.DataFrame(read_results(ROOT / "results" / "development"))
    found = lines(cells, "puicl")
    assert len(found) == 16
    for method in found:
        assert f"| {' | '.join(method)} |\n" in PAGE
    of_methods = cells.pivot_table(index="task", columns="method", values="auc")
    lead = of_methods["puicl"] - of_methods["extra_trees"]
    others = lead.drop(["crabs", "mux11"])
    told = (
        f"{_short(lead.mean(), 3)} ± {_short(lead.sem(), 3)} on average",
        f"but {_short(lead.median(), 3)} against",
        f"without these two it is {_short(others.mean(), 3)}",
        f"{_short((of_methods['puicl_trees'] - of_methods['puicl']).mean(), 4)} and "
        f"{_short((of_methods['puicl'] - of_methods['puicl_single']).mean(), 4)} here",
    )
    assert [part for part in told if part not in PAGE] == []


@pytest.mark.parametrize("group", range(len(_LIMITS) + 1))
def test_tables_with_their_own_shares(group, capsys):
    frame = pd.read_csv(RESULTS / "natural_shares.csv")
    names = ["to .1", ".1 to .25", ".25 to .5", "all"]
    if group < len(_LIMITS):
        frame = frame[np.searchsorted(_LIMITS, frame["share"]) == group]
    line(names[group], frame)
    cells = capsys.readouterr().out.strip("|\n ").split(" | ")
    for part in (cells[:12], [cells[0], cells[8], *cells[12:]]):
        assert f"| {' | '.join(part)} |\n" in PAGE


def test_the_guides_figures_of_tables_with_their_own_shares():
    frame = pd.read_csv(RESULTS / "natural_shares.csv")
    guide = (ROOT / "docs" / "user_guide.md").read_text(encoding="utf-8")
    off, rarer_off = (
        (frame[name] - frame["share"]).abs() for name in ("estimate", "rarer_estimate")
    )
    covered = (frame["low"] <= frame["share"]) & (frame["share"] <= frame["high"])
    told = (
        f"| {_short(off.mean(), 3)} (with `class_prior=(0, 0.5)` {_short(rarer_off.mean(), 3)}) | "
        f"{covered.mean():.0%} | {_short((frame['high'] - frame['low']).mean(), 2)}".replace(
            "%", " %"
        )
    )
    assert f"{told} |\n" in guide
    rare = frame[frame["share"] <= _LIMITS[0]]
    told = (
        f"an AUC of {_short(rare['auc'].mean(), 2)} on average, and the estimate was "
        f"{_short(rare['estimate'].mean(), 2)} instead of {_short(rare['share'].mean(), 3)}"
    )
    assert told in guide


def _short(share: float, digits: int) -> str:
    """As pages write it, without the nought."""
    return f"{share:.{digits}f}".removeprefix("0")
