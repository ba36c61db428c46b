"""Scatter plots of the first few features of a task against each other."""

import numpy as np

from prior_gen.preview.examples import Example
from prior_gen.preview.figure_tasks import SOURCE_WORDS
from prior_gen.preview.style import (
    ROW_MARKS,
    Picture,
    bulk_limits,
    new_figure,
    png_of,
    scatter_rows,
)

MAX_FEATURES = 4


def draw_pairs(example: Example, number: int) -> Picture:
    """Draw pairs of features below the diagonal; on it, histograms of a feature by row group."""
    count = min(MAX_FEATURES, example.x.shape[1])
    figure = new_figure(max(1.45 * count, 2.6), width=max(1.6 * count, 4.2))
    grid = figure.subplots(count, count, squeeze=False)
    limits = [bulk_limits(example.x[:, j], share=0.99) for j in range(count)]
    for row in range(count):
        for column in range(count):
            axes = grid[row, column]
            if column > row:
                axes.axis("off")
                continue
            if column == row:
                _draw_density(axes, example, row, limits[row])
            else:
                points = example.x[:, [column, row]]
                scatter_rows(axes, points, example.groups, scale=min(0.6, 220 / len(points)))
                axes.set(xlim=limits[column], ylim=limits[row])
            if row == count - 1:
                axes.set_xlabel(f"$x_{{{column + 1}}}$")
            else:
                axes.set_xticklabels([])
            if column == 0 and row > 0:
                axes.set_ylabel(f"$x_{{{row + 1}}}$")
            elif column > 0:
                axes.set_yticklabels([])
    _legend(figure, grid)
    tags = example.seen.tags
    stage, step, index = example.seen.address
    return Picture(
        name=f"pairs-{number}",
        title=f"Features of one task: {SOURCE_WORDS[example.source]}",
        caption=(
            f"The first {count} of {tags['n_features']} features of task {example.task} of "
            f"microbatch [{stage}, {step}, {index}]: {_origin(example)}; "
            f"P = {example.seen.n_labeled}, n_u = {len(example.y)}, "
            f"π = {1 - example.y.mean():.2f}. On the diagonal, histograms of each group of rows "
            "scaled to one height. Values are standardised over the rows of the task, those "
            "removed by the split included; the outer 1 % may lie outside."
        ),
        alt=f"Pairwise scatter plots of {count} features of one task",
        png=png_of(figure),
    )


def _origin(example: Example) -> str:
    """Describe how the features were made and which extensions changed them."""
    tags = example.seen.tags
    words = [f"source {example.source}"]
    if example.seen.has_scm:
        layers = tags["hidden_layers"]
        words += [f"{tags['input_distribution']} causes", f"L_g = {layers}"]
        words += [f"h = {tags['hidden_width']}"]
        words += [f"activations {', '.join(tags['activations'][: layers - 1])}"]
        words += [f"noise {tags['sigma_noise']}", f"{tags['ordering']} order"]
    told = (example.source, "ranges")  # the caption gives the sizes that "ranges" changes
    more = [name for name in tags.get("extensions") or () if name not in told]
    return ", ".join(words) + (f"; extended by {', '.join(more)}" if more else "")


def _draw_density(axes, example: Example, feature: int, limits) -> None:
    low, high = limits
    bins = np.linspace(low, high, 19)
    for group, _, colour, _, filled, _ in ROW_MARKS:
        values = example.x[example.groups == group, feature]
        heights, _ = np.histogram(values, bins)
        heights = heights / max(heights.max(), 1)
        if filled:
            axes.stairs(heights, bins, fill=True, color=colour, alpha=0.22, lw=0)
        else:
            axes.stairs(heights, bins, color=colour, lw=1.2)
    axes.set(xlim=limits, ylim=(0, 1.12), yticks=[])
    axes.spines["left"].set_visible(False)


def _legend(figure, grid) -> None:
    if len(grid) > 1:
        handles, labels = grid[1, 0].get_legend_handles_labels()
        place = "upper right" if len(grid) > 2 else "outside upper center"
        figure.legend(handles, labels, loc=place, markerscale=2)
