"""The curriculum: which ranges a stage draws eta, pi and `causal` from (paper, Section 4.1)."""

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
    """Ranges at `stage` (1-based); stages above K, the tail, are held at stage K.

    Both ends of eta's and pi's interval move linearly from stage 1 to stage K;
    P(causal) = p_causal_final * s / K, which is the paper's s / (2K) at the default.
    """
    clamped = min(stage, prior.stages)
    # A curriculum of a single stage is its own last stage.
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
