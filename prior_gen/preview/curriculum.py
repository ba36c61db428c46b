"""The realised curriculum: eta, pi and the causal share of each sampled stage."""

from dataclasses import dataclass

import numpy as np

from prior_gen.curriculum import stage_ranges
from prior_gen.preview.sample import Sample


@dataclass(frozen=True)
class Spread:
    """Minimum, quartiles, maximum and mean of some numbers."""

    low: float
    lower_quartile: float
    median: float
    upper_quartile: float
    high: float
    mean: float


@dataclass(frozen=True)
class RealisedStage:
    """One stage: spread of eta = n_u / P over microbatches and of pi = 1 - mean(y) over tasks."""

    stage: int
    microbatches: int
    tasks: int
    with_scm: int
    causal: int
    eta: Spread
    pi: Spread

    @property
    def causal_share(self) -> float:
        """Share of causal microbatches among those sampled with an SCM; NaN if there are none."""
        return self.causal / self.with_scm if self.with_scm else float("nan")


def spread(values) -> Spread:
    """Minimum, quartiles, maximum and mean of some numbers."""
    five = np.percentile(values, [0, 25, 50, 75, 100])
    return Spread(*(float(value) for value in (*five, np.mean(values))))


def realised(sample: Sample) -> list[RealisedStage]:
    """Measure every sampled stage, in order.

    eta and pi come from shapes and stored labels, not from the tags.
    """
    stages = []
    for stage in sample.stages:
        here = sample.of_stage(stage)
        stages.append(
            RealisedStage(
                stage=stage,
                microbatches=len(here),
                tasks=sum(len(seen.negatives) for seen in here),
                with_scm=sum(seen.has_scm for seen in here),
                causal=sum(seen.has_scm and bool(seen.tags["causal"]) for seen in here),
                eta=spread([seen.n_unlabeled / seen.n_labeled for seen in here]),
                pi=spread([k / seen.n_unlabeled for seen in here for k in seen.negatives]),
            )
        )
    return stages


def rows_outside(sample: Sample) -> tuple[float, float]:
    """The largest deviations of eta and pi from the plan's ranges, in rows of a task.

    Row counts are rounded, so anything below one row is correct. Extended microbatches have their
    own ranges and are left out.
    """
    eta, pi = 0.0, 0.0
    for seen in sample.seen:
        if "extensions" in seen.tags:
            continue
        ranges = stage_ranges(sample.prior, seen.stage)
        eta = max(eta, _outside(seen.n_unlabeled, seen.n_labeled, ranges.eta))
        for negatives in seen.negatives:
            pi = max(pi, _outside(negatives, seen.n_unlabeled, ranges.pi))
    return eta, pi


def wilson(successes: int, trials: int) -> tuple[float, float]:
    """The 95 % Wilson interval of a share."""
    share, z = successes / trials, 1.96
    centre = (share + z * z / (2 * trials)) / (1 + z * z / trials)
    half = z * np.sqrt(share * (1 - share) / trials + z * z / (4 * trials**2))
    half /= 1 + z * z / trials
    return float(max(centre - half, 0.0)), float(min(centre + half, 1.0))


def _outside(count: int, of: int, interval: tuple[float, float]) -> float:
    return max(interval[0] * of - count, count - interval[1] * of, 0.0)
