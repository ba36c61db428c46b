"""The report's pictures of ranks, tasks and time."""

import numpy as np

from pu_bench.report.results import Results
from pu_bench.report.statistics import all_pairs, average_ranks, cliques
from pu_bench.report.style import (
    BAND,
    COLOURS,
    INK,
    QUIET,
    Picture,
    colour_of,
    house_style,
    new_figure,
    png_of,
    spread_apart,
)


def critical_differences(results: Results) -> Picture:
    """Draw average ranks, with bars that join methods which the tests do not distinguish."""
    scores = results.judged_auc()
    ranks = average_ranks(scores)
    bars = cliques(ranks, all_pairs(scores))
    with house_style():
        figure = new_figure(0.9 + 0.25 * len(ranks))
        axes = figure.add_subplot()
        places = np.arange(len(ranks))
        axes.hlines(places, 1, ranks, color=BAND, lw=1.2, zorder=0)
        colours = [COLOURS.get(name, INK) for name in ranks.index]
        axes.scatter(ranks, places, c=colours, s=30, zorder=3)
        for place, rank in zip(places, ranks, strict=True):
            axes.annotate(
                f"{rank:.2f}", (rank, place), (5, 0), textcoords="offset points", va="center"
            )
        end = max(ranks) + 0.09 * len(ranks) + 0.4
        step = 0.035 * len(ranks) + 0.05
        for number, (first, last) in enumerate(bars):
            x = end + step * number
            axes.plot([x, x], [first - 0.25, last + 0.25], color=INK, lw=3, solid_capstyle="butt")
        axes.set_yticks(places, [results.title(name) for name in ranks.index])
        axes.set(xlabel="average rank by AUC (1 is best)", ylim=(len(ranks) - 0.4, -0.6))
        axes.set_xlim(left=0.9)
        axes.set_xticks(range(1, len(ranks) + 1, 1 + len(ranks) // 12))
        axes.spines["left"].set_visible(False)
        axes.tick_params(axis="y", length=0)
        png = png_of(figure)
    best = results.title(ranks.index[0])
    return Picture(
        "critical_differences",
        f"Average rank by AUC over {len(scores)} tasks. Methods joined by a bar at the right are "
        "not told apart at 5 % by Wilcoxon signed-rank tests with Holm's correction over all "
        f"{len(ranks) * (len(ranks) - 1) // 2} pairs.",
        f"Critical-difference diagram of {len(ranks)} methods; {best} has the best average rank.",
        png,
    )


def dots_by_task(results: Results) -> Picture:
    """Draw the AUC of every method on every task, with tasks by falling mean."""
    auc = results.by_task("auc")
    tasks = list(auc.mean(axis=1).sort_values(ascending=False).index)
    named = [name for name in results.methods if name in COLOURS]
    named = named or results.methods[:4]
    with house_style():
        figure = new_figure(1.3 + 0.26 * len(tasks))
        axes = figure.add_subplot()
        places = {task: place for place, task in enumerate(tasks)}
        y = [places[task] for task in auc.index]
        axes.hlines(range(len(tasks)), 0, 1, color=BAND, lw=0.8, zorder=0)
        others = [name for name in results.methods if name not in named]
        for number, name in enumerate(others):
            label = "other methods" if number == 0 else None
            axes.scatter(auc[name], y, s=11, color="#B9B9B9", zorder=1, label=label)
        for name in results.references:
            axes.scatter(
                auc[name], y, s=26, marker="|", color=INK, zorder=2, label=results.title(name)
            )
        for name in reversed(named):
            colour = colour_of(name, results.methods)
            size = 34 if name == "puicl" else 20
            axes.scatter(
                auc[name], y, s=size, color=colour, zorder=3, label=results.title(name),
                edgecolors="white", linewidths=0.4,
            )  # fmt: skip
        # Matplotlib would read a pair of $ in a user's title as mathematics.
        titles = [results.task_title(task).replace("$", r"\$") for task in tasks]
        axes.set_yticks(range(len(tasks)), titles)
        lowest = float(np.nanmin(auc.to_numpy())) if auc.notna().any(axis=None) else 0.4
        axes.set(xlabel="AUC", ylim=(len(tasks) - 0.4, -0.6), xlim=(min(lowest, 0.5) - 0.02, 1.01))
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
        handles, labels = axes.get_legend_handles_labels()
        figure.legend(
            handles[::-1], labels[::-1], loc="outside upper center", ncols=3, handletextpad=0.2,
            columnspacing=1.0,
        )  # fmt: skip
        png = png_of(figure)
    return Picture(
        "auc_by_task",
        "AUC by task, mean over repeats; tasks from easy to hard.",
        f"Dot plot of AUC for {len(auc.columns)} methods on {len(tasks)} tasks.",
        png,
    )


def time_against_auc(results: Results) -> Picture | None:
    """Draw mean AUC against seconds per task (logarithmic); None if every cell failed."""
    methods = results.methods + results.references
    # As in the summary, a failure counts as chance: leaving it out would raise the dot.
    auc, seconds = (
        {name: results.mean_and_sd(name, metric)[0] for name in methods}
        for metric in ("auc", "seconds")
    )
    methods = [name for name in methods if seconds[name] > 0]  # NaN if every cell failed
    if not methods:
        return None
    heights = [auc[name] for name in methods]
    span = max(max(heights) - min(heights), 0.05)
    with house_style():
        figure = new_figure(4.4)
        axes = figure.add_subplot()
        places = spread_apart(heights, span * 0.048)
        low, high = (end(seconds[name] for name in methods) for end in (min, max))
        edge = high * (high / low) ** 0.08 if high > low else high * 1.2
        for name, place in zip(methods, places, strict=True):
            colour = COLOURS.get(name, INK if name in results.references else QUIET)
            here = seconds[name], auc[name]
            axes.scatter(*here, s=42 if name == "puicl" else 24, color=colour, zorder=3)
            axes.plot([here[0], edge], [here[1], place], color=BAND, lw=0.7, zorder=0)
            weight = "bold" if name == "puicl" else "normal"
            axes.annotate(
                results.title(name), (edge, place), (3, 0), textcoords="offset points",
                va="center", color=colour if name in COLOURS else INK, fontsize=7.5,
                fontweight=weight, annotation_clip=False,
            )  # fmt: skip
        axes.set_xscale("log")
        axes.set(xlabel="seconds a task, one thread", ylabel="mean AUC")
        axes.set_xlim(right=edge)
        png = png_of(figure)
    return Picture(
        "time_against_auc",
        "Mean AUC against the time to fit and score one task in one thread, reading "
        "PUICL's weights included.",
        "Scatter plot of mean AUC against seconds a task by method.",
        png,
    )
