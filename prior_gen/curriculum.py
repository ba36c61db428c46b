"""The curriculum: the ranges that a stage draws eta, pi and `causal` from (paper, Section 4.1)."""

import math
from dataclasses import dataclass

from puicl_config import PriorConfig


@dataclass(frozen=True)
class StageRanges:
    """Ranges of one stage: `eta` and `pi` are (low, high), `p_causal` a probability.

    `max_rows` bounds P + n_u in extended microbatches; the paper has no such bound.
    """

    eta: tuple[float, float]
    pi: tuple[float, float]
    p_causal: float
    max_rows: float = math.inf


def stage_ranges(prior: PriorConfig, stage: int) -> StageRanges:
    """Ranges at `stage` (1-based); the tail, all stages above K, keeps the ranges of stage K.

    Both ends of the intervals of eta and pi move linearly from stage 1 to stage K.
    P(causal) = p_causal_final * s / K, which at the default is the paper's s / (2K).
    """
    clamped = min(stage, prior.stages)
    # A curriculum with a single stage is at its end from the start.
    progress = (clamped - 1) / (prior.stages - 1) if prior.stages > 1 else 1.0
    return StageRanges(
        eta=_between(prior.eta_first, prior.eta_final, progress),
        pi=_between(prior.pi_first, prior.pi_final, progress),
        p_causal=prior.p_causal_final * clamped / prior.stages,
    )


def _between(
    first: tuple[float, float], final: tuple[float, float], progress: float
) -> tuple[float, float]:
    low, high = (
        (1 - progress) * start + progress * end for start, end in zip(first, final, strict=True)
    )
    return low, high
