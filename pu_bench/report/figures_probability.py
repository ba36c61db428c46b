"""The report's pictures of estimated class priors and of calibration."""

import json

import numpy as np

from pu_bench.report.results import Results
from pu_bench.report.style import (
    BAND,
    COLOURS,
    INK,
    QUIET,
    Picture,
    house_style,
    new_figure,
    png_of,
)
from pu_bench.run.metrics import N_BINS


def prior_errors(results: Results) -> Picture | None:
    """Draw errors of the estimated share of positives; None if no method estimates it.

    One dot for each task, and a line at the mean.
    """
    error = results.by_task("pi_error")
    shown = error.mean().dropna().sort_values()
    if shown.empty:
        return None
    with house_style():
        figure = new_figure(0.8 + 0.27 * len(shown))
        axes = figure.add_subplot()
        rng = np.random.default_rng(0)
        for place, name in enumerate(shown.index):
            colour = COLOURS.get(name, QUIET)
            values = error[name].dropna()
            jitter = rng.uniform(-0.16, 0.16, len(values))
            axes.scatter(values, place + jitter, s=9, color=colour, alpha=0.55, linewidths=0)
            axes.plot([shown[name]] * 2, [place - 0.34, place + 0.34], color=INK, lw=1.6)
        axes.set_yticks(range(len(shown)), [results.title(name) for name in shown.index])
        axes.set(xlabel="|estimated - true share of positives|", ylim=(len(shown) - 0.4, -0.6))
        axes.set_xlim(left=0)
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
        png = png_of(figure)
    return Picture(
        "prior_errors",
        "Error of the estimated share of positives among the unlabelled rows: a dot a task (mean "
        "over repeats), the line is the mean.",
        f"Strip plot of class-prior errors of {len(shown)} methods.",
        png,
    )


def reliability(results: Results, method: str) -> np.ndarray | None:
    """Rows, sum of scores and positives of each bin [10, 3], over all cells of a method.

    None if it gives no probabilities.
    """
    texts = results.cells.loc[results.cells.method == method, "reliability"].dropna()
    if texts.empty:
        return None
    bins = np.zeros((N_BINS, 3))
    for text in texts:
        for place, *sums in json.loads(text):
            bins[place] += sums
    return bins


def calibration(results: Results) -> Picture | None:
    """Draw reliability curves of the methods that give probabilities; None if there are none."""
    curves = {
        name: bins
        for name in results.methods + results.references
        if (bins := reliability(results, name)) is not None
    }
    if not curves:
        return None
    columns = 3
    rows = -(-len(curves) // columns)
    with house_style():
        figure = new_figure(0.5 + 1.75 * rows)
        grid = np.atleast_1d(figure.subplots(rows, columns, sharex=True, sharey=True)).ravel()
        for axes, (name, bins) in zip(grid, curves.items(), strict=False):
            used = bins[:, 0] > 0
            colour = COLOURS.get(name, INK)
            axes.plot([0, 1], [0, 1], color=BAND, lw=1, zorder=0)
            axes.bar(
                (np.arange(N_BINS) + 0.5) / N_BINS, bins[:, 0] / bins[:, 0].sum(),
                1 / N_BINS, color=BAND, zorder=0,
            )  # fmt: skip
            axes.plot(
                bins[used, 1] / bins[used, 0], bins[used, 2] / bins[used, 0],
                color=colour, lw=1.2, marker="o", ms=3, clip_on=False,
            )  # fmt: skip
            ece = results.by_task("ece")[name].mean()
            axes.set_title(f"{results.title(name)}\nECE {ece:.3f}", loc="left", fontsize=7.5)
            axes.set(xlim=(0, 1), ylim=(0, 1), xticks=(0, 0.5, 1), yticks=(0, 0.5, 1))
        for axes in grid[len(curves) :]:
            axes.set_visible(False)
        figure.supxlabel("P(positive) that the method says", fontsize=8.5)
        figure.supylabel("share that is positive", fontsize=8.5)
        png = png_of(figure)
    return Picture(
        "calibration",
        "Calibration of the methods whose score is meant as P(positive), all tasks and repeats "
        "pooled; grey bars: share of rows by score. ECE is the mean over tasks.",
        f"Reliability curves of {len(curves)} methods.",
        png,
    )
