"""Figure of the AUC of two plain baselines by stage and by source."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from prior_gen.preview.difficulty import (
    FOLDS,
    MAX_GROUPS,
    ScoredTask,
    summarise,
)
from prior_gen.preview.sample import Sample, stage_groups
from prior_gen.preview.style import INK, LOGISTIC, QUIET, TREES, Picture, new_figure, png_of
from prior_gen.structure import SOURCES

LOOKS = {
    "trees": ("ExtraTrees", TREES, "o", "-"),
    "logistic": ("logistic regression", LOGISTIC, "s", "--"),
}


def draw_difficulty(sample: Sample, scored: Sequence[ScoredTask]) -> Picture:
    """Draw AUC by stage (tasks, mean and quartiles) above AUC by source."""
    figure = new_figure(6.9)
    above, below = figure.subplots(2, 1)
    groups = groups_of(sample, scored)
    for name, (label, colour, marker, line) in LOOKS.items():
        _by_stage(above, scored, groups, name, label, colour, marker, line)
    above.set(xlabel="stage", ylabel="AUC on the unlabelled rows")
    above.set_xlim(0, sample.prior.total_stages + 1)
    present = [source for source in SOURCES if any(t.source == source for t in scored)]
    for side, (name, (_, colour, marker, _)) in enumerate(LOOKS.items()):
        _by_source(below, scored, present, name, colour, marker, side)
    counts = {source: sum(task.source == source for task in scored) for source in present}
    below.set_xticks(range(len(present)), [f"{s}\n{counts[s]} tasks" for s in present])
    below.set(ylabel="AUC on the unlabelled rows", xlim=(-0.6, len(present) - 0.4))
    for axes in (above, below):
        axes.axhline(0.5, color=QUIET, lw=0.8, ls=(0, (4, 3)), zorder=0)
        axes.set_ylim(min(0.38, _lowest(scored) - 0.02), 1.02)
    above.legend(loc="lower left", ncols=2)
    per_source = "; ".join(_in_words(scored, source) for source in present)
    return Picture(
        name="difficulty",
        title="How hard the tasks are",
        caption=(
            f"{len(scored)} sampled tasks, as many from each of {len(groups)} runs of stages. Each "
            "baseline is fitted to tell labelled from unlabelled rows and scores rows it was not "
            f"fitted on ({FOLDS} folds); AUC is that of its ranking against the hidden labels, so "
            "0.5 (dashed) is chance. Above: dots are tasks, lines the means of a run of stages, "
            "bands its quartiles. Below: boxes are quartiles with the median, by source of the "
            f"features. Median AUC, trees and logistic: {per_source}. L_g and h are fixed within a "
            "stage"
            + (", unless extensions say otherwise" if sample.prior.extensions.share else "")
            + ", so some of the ups and downs are architecture, not curriculum."
        ),
        alt="AUC of two baselines by stage and by source of the features",
        png=png_of(figure),
    )


def groups_of(sample: Sample, scored: Sequence[ScoredTask]) -> list[list[int]]:
    """The stages with scored tasks, divided into runs, in order."""
    stages = [stage for stage in sample.stages if any(t.stage == stage for t in scored)]
    return stage_groups(stages, MAX_GROUPS)


def _by_stage(axes: Axes, scored, groups, name, label, colour, marker, line) -> None:
    stages = [task.stage for task in scored]
    values = [task.auc[name] for task in scored]
    axes.plot(stages, values, marker, color=colour, ms=2.6, alpha=0.4, mew=0)
    rows = []
    for group in groups:
        inside = set(group)
        summary = summarise([task.auc[name] for task in scored if task.stage in inside])
        if summary:
            rows.append((np.mean(group), summary))
    if not rows:
        return
    x = [place for place, _ in rows]
    axes.fill_between(
        x,
        [s.lower_quartile for _, s in rows],
        [s.upper_quartile for _, s in rows],
        color=colour,
        alpha=0.14,
        lw=0,
    )
    axes.plot(
        x, [s.mean for _, s in rows], line, marker=marker, color=colour, ms=5, lw=1.6, label=label
    )


def _by_source(axes: Axes, scored, present, name, colour, marker, side) -> None:
    for place, source in enumerate(present):
        values = np.array([task.auc[name] for task in scored if task.source == source])
        values = values[~np.isnan(values)]
        if not len(values):
            continue
        centre = place + (-0.2 if side == 0 else 0.2)
        # Offsets depend on ranks and are not random, so that the picture is reproducible.
        ranks = np.argsort(np.argsort(values, kind="stable"), kind="stable")
        offsets = ((ranks * 0.618034) % 1 - 0.5) * 0.24
        axes.plot(centre + offsets, values, marker, color=colour, ms=2.6, alpha=0.4, mew=0)
        axes.boxplot(
            values,
            positions=[centre],
            widths=0.3,
            showfliers=False,
            showcaps=False,
            whis=0,
            manage_ticks=False,
            boxprops={"color": colour, "lw": 1.3},
            medianprops={"color": INK, "lw": 1.8},
        )


def _lowest(scored: Sequence[ScoredTask]) -> float:
    values = [auc for task in scored for auc in task.auc.values() if not np.isnan(auc)]
    return min(values, default=0.5)


def _in_words(scored: Sequence[ScoredTask], source: str) -> str:
    shown = []
    for name in LOOKS:
        summary = summarise([task.auc[name] for task in scored if task.source == source])
        shown.append(f"{summary.median:.2f}" if summary else "not measured")
    return f"{source} {' and '.join(shown)}"
