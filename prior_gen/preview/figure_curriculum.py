"""Figure of the realised curriculum by stage, with the plan's ranges."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from prior_gen.curriculum import stage_ranges
from prior_gen.preview.curriculum import RealisedStage, Spread, realised, rows_outside, wilson
from prior_gen.preview.sample import Sample
from prior_gen.preview.style import BAND, INK, POSITIVE, QUIET, Picture, new_figure, png_of


def draw_curriculum(sample: Sample) -> Picture:
    """Draw three panels over all stages of the plan: eta, pi, and the causal share."""
    stages = realised(sample)
    prior = sample.prior
    x = np.arange(1, prior.total_stages + 1)
    plan = [stage_ranges(prior, int(stage)) for stage in x]
    figure = new_figure(6.6)
    top, middle, bottom = figure.subplots(3, 1, sharex=True)
    _band(top, x, [ranges.eta for ranges in plan])
    _spreads(top, stages, [stage.eta for stage in stages])
    top.set_ylabel("η = $n_u$ / P")
    _band(middle, x, [ranges.pi for ranges in plan])
    _spreads(middle, stages, [stage.pi for stage in stages])
    middle.set_ylabel("π, share of negatives\namong the unlabelled")
    middle.set_ylim(0, 1)
    bottom.plot(
        x, [ranges.p_causal for ranges in plan], color=QUIET, lw=1.2, label="plan", zorder=1
    )
    _shares(bottom, stages)
    bottom.set_ylabel("causal share of\nmicrobatches")
    bottom.set(xlabel="stage", xlim=(0, prior.total_stages + 1))
    bottom.set_ylim(-0.03, 1.03 if any(s.causal_share > 0.75 for s in stages) else 0.83)
    if prior.total_stages > prior.stages:
        for axes in (top, middle, bottom):
            axes.axvline(prior.stages + 0.5, color=QUIET, lw=0.8, ls=(0, (4, 3)))
        top.annotate(
            "tail",
            (prior.stages + 0.5, 1),
            xytext=(4, -2),
            textcoords="offset points",
            xycoords=("data", "axes fraction"),
            va="top",
            color=QUIET,
        )
    top.legend(loc="upper left", ncols=1, handlelength=1.4)
    bottom.legend(loc="upper left", ncols=1, handlelength=1.4)
    eta_rows, pi_rows = rows_outside(sample)
    total = sum(stage.microbatches for stage in stages)
    models = [stage.with_scm for stage in stages]
    causal = "No sampled microbatch has an SCM"
    if sum(models):
        share = sum(stage.causal for stage in stages) / sum(models)
        planned = np.average(
            [stage_ranges(prior, stage.stage).p_causal for stage in stages], weights=models
        )
        of_all = "" if sum(models) == total else f" {sum(models):,} with an SCM in the"
        causal = (
            f"Causal microbatches are {share:.1%} of the{of_all} sample where the plan expects "
            f"{planned:.1%}"
        )
    return Picture(
        name="curriculum",
        title="The curriculum, as it came out",
        caption=(
            f"{len(stages)} stages, {total:,} microbatches and {sample.n_tasks:,} tasks of the "
            "folder, measured from what is stored: η from the number of rows of each microbatch, "
            "π from the hidden labels of each task, not from their tags. Grey is what the plan "
            "allows"
            + (" without its extensions" if sample.prior.extensions.share else "")
            + ". Rounding to whole rows can carry a task up to one row outside; here it is at "
            f"most {eta_rows:.2f} rows for η and {pi_rows:.2f} for π. {causal}; vertical bars are "
            "95 % intervals."
        ),
        alt="Realised eta, pi and causal share by stage, over the plan's ranges",
        png=png_of(figure),
    )


def _band(axes: Axes, x: np.ndarray, intervals: Sequence[tuple[float, float]]) -> None:
    low, high = np.array(intervals).T
    axes.fill_between(x, low, high, color=BAND, lw=0.8, label="plan's range", zorder=0)


def _spreads(axes: Axes, stages: Sequence[RealisedStage], spreads: Sequence[Spread]) -> None:
    x = [stage.stage for stage in stages]
    axes.vlines(
        x,
        [s.low for s in spreads],
        [s.high for s in spreads],
        color=POSITIVE,
        lw=0.8,
        label="least to greatest",
    )
    axes.vlines(
        x,
        [s.lower_quartile for s in spreads],
        [s.upper_quartile for s in spreads],
        color=POSITIVE,
        lw=3,
        alpha=0.75,
        label="quartiles",
    )
    axes.plot(
        x,
        [s.mean for s in spreads],
        "o",
        color="white",
        mec=INK,
        mew=0.8,
        ms=3.6,
        label="mean",
    )


def _shares(axes: Axes, stages: Sequence[RealisedStage]) -> None:
    stages = [stage for stage in stages if stage.with_scm]
    if not stages:
        return
    x = [stage.stage for stage in stages]
    intervals = [wilson(stage.causal, stage.with_scm) for stage in stages]
    axes.vlines(x, *np.array(intervals).T, color=POSITIVE, lw=0.8, label="95 % interval")
    axes.plot(
        x, [stage.causal_share for stage in stages], "o", color=POSITIVE, ms=3.6, label="realised"
    )
