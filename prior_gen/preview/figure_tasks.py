"""Example tasks in the plane of their first two principal components."""

from prior_gen.preview.examples import Example
from prior_gen.preview.sample import Sample
from prior_gen.preview.style import Picture, bulk_limits, new_figure, png_of, scatter_rows
from prior_gen.structure import SCM_SOURCES, SOURCES

SOURCE_WORDS = {
    "head": "head (non-causal)",
    "causes": "causes (non-causal)",
    "clique": "clique (causal)",
    "subset": "subset (causal)",
    "independent": "independent columns",
    "factorial": "design",
    "cluster_labels": "clusters",
    "factor_model": "factor model",
    "graph": "graph",
}


def draw_tasks(
    sample: Sample, columns: list[list[int]], examples: dict[tuple[str, int], Example]
) -> Picture:
    """Draw a grid with a row for each source of features and a column for each run of stages."""
    sources = [s for s in SOURCES if any((s, column) in examples for column in range(len(columns)))]
    figure = new_figure(0.75 + 1.95 * len(sources), width=max(2.35 * len(columns), 4.6))
    grid = figure.subplots(len(sources), len(columns), squeeze=False)
    for axes_row, source in zip(grid, sources, strict=True):
        for column, axes in enumerate(axes_row):
            axes.set(xticks=[], yticks=[])
            axes.spines[:].set_visible(True)
            if (source, column) in examples:
                _draw_one(axes, examples[source, column])
            else:
                axes.text(
                    0.5,
                    0.5,
                    f"none sampled\nin stages {_from_to(columns[column])}",
                    ha="center",
                    va="center",
                    transform=axes.transAxes,
                )
        axes_row[0].set_ylabel(SOURCE_WORDS[source], fontweight="bold")
    handles, labels = next(
        axes.get_legend_handles_labels()
        for axes_row in grid
        for axes in axes_row
        if axes.get_legend_handles_labels()[0]
    )
    figure.legend(handles, labels, loc="outside upper center", ncols=3, markerscale=1.7)
    runs = ", ".join(_from_to(stages) for stages in columns)
    absent = [s for s in SCM_SOURCES if s not in sources]
    return Picture(
        name="tasks",
        title="Example tasks",
        caption=(
            f"{len(examples)} tasks drawn at random (seed {sample.seed}), not picked: a row for "
            f"each source of the features, a column for each run of sampled stages ({runs}). Each "
            "panel shows all rows of one task in the plane of its first two principal components; "
            "the axes have no unit, and rows beyond the middle 98 % of either may lie outside. "
            "Where blue and orange mix, the plane does not separate the classes; the other "
            "components may: AUC is what the cross-fitted trees of the difficulty picture reach on "
            "all of them. Filled marks are what a learner is told, open ones what it must sort."
            + (f" No sampled microbatch has source {' or '.join(absent)}." if absent else "")
        ),
        alt="Scatter plots of example tasks by class and by labelled or unlabelled",
        png=png_of(figure),
    )


def _draw_one(axes, example: Example) -> None:
    points = example.plane()
    scatter_rows(axes, points, example.groups, scale=min(1.0, 330 / len(points)))
    axes.set(xlim=bulk_limits(points[:, 0]), ylim=bulk_limits(points[:, 1]))
    axes.text(
        0.98,
        0.03,
        f"AUC {example.auc:.2f}",
        ha="right",
        transform=axes.transAxes,
        fontsize=8,
        bbox={"facecolor": "white", "alpha": 0.85, "edgecolor": "none", "pad": 1.5},
    )
    tags = example.seen.tags
    depth = f"$L_g$ = {tags['hidden_layers']}, " if example.seen.has_scm else ""
    negative = 1 - example.y.mean()
    axes.set_title(
        f"stage {example.seen.stage}, {depth}d = {tags['n_features']}\n"
        f"P = {example.seen.n_labeled}, $n_u$ = {len(example.y)}, π = {negative:.2f}",
        fontsize=8,
        pad=3,
    )


def _from_to(stages: list[int]) -> str:
    return str(stages[0]) if len(stages) == 1 else f"{stages[0]} to {stages[-1]}"
