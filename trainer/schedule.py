"""The learning rate as a pure function of the step (paper, Section 4.1)."""

from puicl_config import PhaseConfig, PriorConfig, TrainConfig


def learning_rate(prior: PriorConfig, train: TrainConfig, step: int) -> float:
    """Learning rate of optimizer step `step` (from 0).

    Phase 1 has as many steps as the curriculum, phase 2 as many as the tail.
    """
    if step < prior.curriculum_steps:
        return _within_phase(train.phase1, train, step, prior.curriculum_steps)
    return _within_phase(train.phase2, train, step - prior.curriculum_steps, prior.tail_steps)


def _within_phase(phase: PhaseConfig, train: TrainConfig, step: int, steps: int) -> float:
    """Linear warm-up, then floor + (peak - floor) * (1 - progress) ** exponent."""
    if step < phase.warmup_steps:
        return phase.peak * (step + 1) / phase.warmup_steps
    progress = (step - phase.warmup_steps) / max(steps - phase.warmup_steps, 1)
    return phase.floor + (phase.peak - phase.floor) * (1 - progress) ** train.decay_exponent
