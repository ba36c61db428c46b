"""Warnings about settings that have no effect in combination with the others."""

from pydantic import BaseModel

from puicl_config.extensions import EXTENSIONS, RANGES
from puicl_config.prior import PriorConfig
from puicl_config.schema import Config
from puicl_config.train import TrainConfig


def idle_in_prior(prior: PriorConfig) -> list[str]:
    """One sentence if extensions are set but no microbatch is extended; else nothing."""
    extensions = prior.extensions
    if extensions.share:
        return []
    names = _set(extensions, (*EXTENSIONS, *RANGES))
    if not names:
        return []
    return [
        f"prior.extensions.share is 0, so that no task is extended: {_list(names)} "
        f"{'does' if len(names) == 1 else 'do'} nothing"
    ]


def idle_in_run(config: Config) -> list[str]:
    """Sentences on keys of `train` without effect on this run, and on warm-ups cut short."""
    train, prior = config.train, config.prior
    told = [
        f"{_list([f'train.{name}' for name in names])} "
        f"{'does' if len(names) == 1 else 'do'} nothing {without}"
        for names, without in (
            (_of_reveal(train), "without train.reveal=both"),
            (_of_muon(train), "without train.optimizer=muon"),
            (_of_distillation(train), "while train.self_distillation.weight is 0"),
        )
        if names
    ]
    if train.reveal == "both" and train.reveal_negatives.share:
        told.append("train.reveal_negatives does nothing beside train.reveal=both")
    for name, phase, steps in (
        ("phase1", train.phase1, prior.curriculum_steps),
        ("phase2", train.phase2, prior.tail_steps),
    ):
        # A phase may consist of a warm-up only, but less than half a warm-up is hardly intended.
        if steps and 2 * steps < phase.warmup_steps:
            told.append(
                f"train.{name}.warmup_steps is {phase.warmup_steps:,}, and the phase ends after "
                f"{steps:,} steps: its learning rate comes to "
                f"{phase.peak * steps / phase.warmup_steps:.2g}, not to its peak of "
                f"{phase.peak:.2g}"
            )
    return told


def _of_reveal(train: TrainConfig) -> list[str]:
    return _set(train, ["reveal_share"]) if train.reveal != "both" else []


def _of_muon(train: TrainConfig) -> list[str]:
    return _set(train, ["muon_lr_ratio", "muon_momentum"]) if train.optimizer != "muon" else []


def _of_distillation(train: TrainConfig) -> list[str]:
    distillation = train.self_distillation
    if distillation.weight:
        return []
    return [f"self_distillation.{name}" for name in _set(distillation, ["passes"])]


def _set(section: BaseModel, names: list[str] | tuple[str, ...]) -> list[str]:
    """Those of `names` that are not at their defaults."""
    fields = type(section).model_fields
    return [name for name in names if getattr(section, name) != fields[name].default]


def _list(names: list[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
