"""Ranks and paired tests over tasks (Demšar 2006; Wilcoxon with Holm instead of Nemenyi)."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pandas as pd
from scipy.stats import friedmanchisquare, rankdata, wilcoxon

FEWEST_TASKS = 6  # with fewer, no Wilcoxon test can reach p = 0.05
# Scores are means over repeats; beyond these digits they only differ by the order of summation.
_DIGITS = 9


def average_ranks(scores: pd.DataFrame) -> pd.Series:
    """Mean rank by method of scores [tasks x methods], ascending.

    1 is best (the highest score); scores equal to 9 digits share a rank. Empty if there is nothing
    to rank.
    """
    if scores.empty:
        return pd.Series(dtype=float)
    ranks = np.apply_along_axis(rankdata, 1, -scores.to_numpy().round(_DIGITS))
    return pd.Series(ranks.mean(axis=0), index=scores.columns).sort_values(kind="stable")


def friedman(scores: pd.DataFrame) -> float | None:
    """p-value of Friedman's test that all methods are alike; None for fewer than three methods."""
    if scores.shape[1] < 3:
        return None
    return float(friedmanchisquare(*scores.to_numpy().round(_DIGITS).T).pvalue)


def paired_p(first: np.ndarray, second: np.ndarray) -> float:
    """Two-sided Wilcoxon signed-rank p-value over tasks [n]; 1 if no task differs."""
    difference = np.round(first - second, _DIGITS)
    if not difference.any():
        return 1.0
    # Pratt's method keeps tied tasks in the ranking.
    return float(wilcoxon(difference, zero_method="pratt").pvalue)


def holm(p_values: Sequence[float]) -> np.ndarray:
    """Holm-adjusted p-values, in the given order."""
    p = np.asarray(p_values, float)
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(p[order] * (len(p) - np.arange(len(p))))
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(stepped, 1.0)
    return adjusted


def against(scores: pd.DataFrame, method: str) -> pd.DataFrame:
    """One method against each other one, by scores [tasks x methods].

    Columns: method, wins, ties, losses, median (of the differences), p, holm. Holm's correction is
    over these comparisons.
    """
    rows = []
    for other in scores.columns.drop(method):
        difference = (scores[method] - scores[other]).round(_DIGITS)
        rows.append(
            {
                "method": other,
                "wins": int((difference > 0).sum()),
                "ties": int((difference == 0).sum()),
                "losses": int((difference < 0).sum()),
                "median": float(difference.median()),
                "p": paired_p(scores[method].to_numpy(), scores[other].to_numpy()),
            }
        )
    table = pd.DataFrame(rows)
    table["holm"] = holm(table["p"])
    return table


def all_pairs(scores: pd.DataFrame) -> pd.DataFrame:
    """Holm-adjusted p-values of all pairs of methods [methods x methods], 1 on the diagonal.

    Holm's correction is over all pairs.
    """
    pairs = list(combinations(scores.columns, 2))
    adjusted = holm([paired_p(scores[a].to_numpy(), scores[b].to_numpy()) for a, b in pairs])
    table = pd.DataFrame(1.0, index=scores.columns, columns=scores.columns)
    for (a, b), p in zip(pairs, adjusted, strict=True):
        table.loc[a, b] = table.loc[b, a] = p
    return table


def cliques(ranks: pd.Series, p: pd.DataFrame) -> list[tuple[int, int]]:
    """Maximal runs of neighbours in `ranks` (ascending) in which no pair differs at .05.

    p: matrix of p-values, as from `all_pairs`. Runs are (first, last) places, both inclusive; runs
    of a single method are left out.
    """
    names = list(ranks.index)
    differs = p.loc[names, names].to_numpy() < 0.05
    runs: list[tuple[int, int]] = []
    for first in range(len(names)):
        last = first
        while last + 1 < len(names) and not differs[first : last + 2, last + 1].any():
            last += 1
        if last > first and (not runs or last > runs[-1][1]):
            runs.append((first, last))
    return runs
