"""Small histograms of every tag."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from prior_gen.preview.sample import Sample
from prior_gen.preview.style import INK, Picture, new_figure, png_of
from prior_gen.preview.tags import TagCounts, tag_counts

BAR = "#8FB8D6"
MAX_BARS = 26
HEADINGS = {
    "d": "features, d",
    "P": "labelled positives, P",
    "n_u": "unlabelled rows, $n_u$",
    "L_g": "hidden layers, $L_g$",
    "h": "hidden width, h",
    "sigma_noise": "noise, $σ_{noise}$",
}


def draw_tags(sample: Sample) -> Picture:
    """Draw eleven panels of counts, and the legend in the twelfth."""
    counts = tag_counts(sample)
    figure = new_figure(8.2)
    panels = figure.subplots(4, 3).ravel()
    for axes, tag in zip(panels, counts, strict=False):
        if sum(tag.counts):
            (_draw_numbers if tag.numeric else _draw_names)(axes, tag)
        else:
            axes.set(xticks=[], yticks=[])
            axes.text(0.5, 0.5, "none", ha="center", va="center", transform=axes.transAxes)
        axes.set_title(HEADINGS.get(tag.name, tag.name), fontweight="bold", loc="left")
    panels[-1].axis("off")
    panels[-1].legend(
        handles=[
            Patch(color=BAR, label="sampled"),
            Line2D([], [], color=INK, lw=1.3, label="expected under\nthe plan"),
        ],
        loc="center",
        fontsize=9,
    )
    models = sum(one.has_scm for one in sample.seen)
    extended = ""
    if sample.prior.extensions.share:
        extended = (
            f" {models:,} of them have a structural causal model, for which architecture, noise, "
            "activations and modes are shown."
        )
    return Picture(
        name="tags",
        title="What the microbatches are made of",
        caption=(
            f"Tags of {len(sample.seen):,} sampled microbatches of {len(sample.stages)} stages."
            f"{extended} L_g and h are drawn once a stage, so they are counted over the "
            f"{len(sample.stages)} stages; activations over all hidden layers of all sampled "
            "microbatches; label positions over causal ones only. The black line is the count "
            "expected under the plan at these stages; n_u follows from P and η and has none."
        ),
        alt="Histograms of sizes, architecture, noise, activations and modes",
        png=png_of(figure),
    )


def draw_extensions(counts: TagCounts) -> Picture:
    """Draw how many of the extended microbatches have each extension."""
    figure = new_figure(0.9 + 0.24 * len(counts.values))
    axes = figure.subplots()
    _draw_names(axes, counts)
    return Picture(
        name="extensions",
        title="Extensions of the prior",
        caption=(
            "How many of the sampled extended microbatches have each extension. The black line is "
            "the count expected under the plan, in which some extensions exclude others: the mean "
            "over a thousand microbatches of another split."
        ),
        alt="Bars: how many extended microbatches have each extension",
        png=png_of(figure),
    )


def _draw_numbers(axes: Axes, tag: TagCounts) -> None:
    """Draw a bar for each whole number or few adjacent ones, and expected counts as a step line.

    If some bars cover more numbers than others, heights are scaled to the average number.
    """
    values = np.array(tag.values)
    places = np.linspace(0, len(values), min(MAX_BARS, len(values)) + 1).round()
    edges = np.unique(places).astype(int)
    scale = np.diff(edges).mean() / np.diff(edges)
    heights = np.add.reduceat(np.array(tag.counts), edges[:-1])
    where = np.append(values, values[-1] + 1)[edges] - 0.5
    axes.bar(where[:-1], heights * scale, 0.86 * np.diff(where), align="edge", color=BAR)
    if tag.expected:
        expected = np.add.reduceat(np.array(tag.expected), edges[:-1]) * scale
        axes.stairs(expected, where, color=INK, lw=1.3, baseline=None)
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(4, integer=True))
    axes.set_ylabel(tag.unit)
    axes.set_ylim(bottom=0)


def _draw_names(axes: Axes, tag: TagCounts) -> None:
    """Draw horizontal bars, the first value on top, each with its expected count as a stroke."""
    places = np.arange(len(tag.values))[::-1]
    axes.barh(places, tag.counts, height=0.72, color=BAR)
    axes.vlines(tag.expected or (), places - 0.36, places + 0.36, color=INK, lw=1.3)
    axes.set_yticks(places, [str(value) for value in tag.values])
    axes.tick_params(axis="y", length=0)
    axes.xaxis.set_major_locator(MaxNLocator(4, integer=True))
    axes.set_xlabel(tag.unit)
    axes.set_ylim(-0.6, len(tag.values) - 0.4)
