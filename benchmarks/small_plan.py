"""The small plan on which ablations and recipes are measured, and its held-out tasks."""

from collections.abc import Sequence
from pathlib import Path

from torch import Tensor

from prior_gen.generator import generate_shards
from puicl_config import Config, load_config, plan_digest
from trainer.heldout import HeldoutFigures, HeldoutSet

# 400 steps of 8 tasks: 5 stages of 60 steps, then a tail of 100. Tasks of about 60 rows and 5
# columns and a network of 159,618 weights: a run takes a minute on one core.
PLAN = (
    "name=small",
    "prior.stages=5",
    "prior.steps_per_stage=60",
    "prior.tail_steps=100",
    "prior.microbatches_per_step=1",
    "prior.tasks_per_microbatch=8",
    "prior.n_features=[2, 8]",
    "prior.n_labeled=[16, 48]",
    "model.embedding_size=64",
    "model.layers=3",
    "model.heads=4",
    "model.feedforward_size=128",
    "train.phase1={peak: 1.0e-3, floor: 1.0e-3, warmup_steps: 20}",
    "train.phase2={peak: 1.0e-3, floor: 1.0e-4, warmup_steps: 0}",
    "train.ema_decay=0.98",
    "train.heldout_microbatches=32",
)


def small_config(*overrides: str) -> Config:
    """The small plan with overrides."""
    return load_config("demo", [*PLAN, *overrides])


def make_shards(folder: Path, jobs: int) -> tuple[Path, Path]:
    """Generate `folder`/shards and `folder`/heldout unless they exist; returns both.

    Held-out tasks are of the curriculum's last stage and of the tail.
    """
    config = small_config()
    prior = config.prior
    heldout = range(prior.stages, prior.total_stages + 1)
    generate_shards(config, folder / "heldout", heldout, split="heldout", jobs=jobs)
    return shards_of(folder, jobs), folder / "heldout"


def shards_of(folder: Path, jobs: int, overrides: Sequence[str] = ()) -> Path:
    """Generate all of the small plan, or of one with `overrides`, below `folder` if missing."""
    config = small_config(*overrides)
    out = folder / (f"shards-{plan_digest(config.prior)[:12]}" if overrides else "shards")
    generate_shards(config, out, range(1, config.prior.total_stages + 1), jobs=jobs)
    return out


def evaluated(heldout: HeldoutSet, weights: dict[str, Tensor]) -> HeldoutFigures:
    """Evaluate weights on held-out tasks."""
    figures = heldout.evaluate(weights)
    assert figures is not None, "only a run that is told to stop breaks it off"
    return figures
