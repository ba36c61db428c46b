"""Settings that do nothing beside the others are told."""

import pytest

from puicl_config import idle_in_prior, idle_in_run, load_config


@pytest.mark.parametrize(
    ("overrides", "told"),
    [
        (["discrete=0.9"], "discrete does nothing"),
        (["discrete=0.9", "pi=[0.1,0.2]", "missing=0.5"], "discrete, missing and pi do nothing"),
        (["max_rows=700"], "max_rows does nothing"),
    ],
)
def test_extensions_of_no_task_are_told(overrides, told):
    given = [f"prior.extensions.{override}" for override in overrides]
    (found,) = idle_in_prior(load_config("paper", given).prior)
    assert found == f"prior.extensions.share is 0, so that no task is extended: {told}"
    assert idle_in_prior(load_config("paper", [*given, "prior.extensions.share=0.1"]).prior) == []


@pytest.mark.parametrize(
    ("idle", "used", "told"),
    [
        ("reveal_share=0.9", "reveal=both", "train.reveal_share does nothing without train.reveal"),
        (
            "muon_momentum=0.9",
            "optimizer=muon",
            "train.muon_momentum does nothing without train.optimizer=muon",
        ),
        (
            "self_distillation.passes=8",
            "self_distillation.weight=0.5",
            "train.self_distillation.passes does nothing while train.self_distillation.weight is 0",
        ),
    ],
)
def test_keys_of_what_is_not_used_are_told(idle, used, told):
    (found,) = idle_in_run(load_config("paper", [f"train.{idle}"]))
    assert found.startswith(told)
    assert idle_in_run(load_config("paper", [f"train.{idle}", f"train.{used}"])) == []


def test_keys_of_one_kind_are_told_in_one_sentence():
    both = ["train.muon_lr_ratio=2", "train.muon_momentum=0.9"]
    (found,) = idle_in_run(load_config("paper", both))
    assert found == (
        "train.muon_lr_ratio and train.muon_momentum do nothing without train.optimizer=muon"
    )


def test_negatives_beside_both_classes_are_told():
    both = ["train.reveal=both", "train.reveal_negatives.share=0.5"]
    (found,) = idle_in_run(load_config("paper", both))
    assert found == "train.reveal_negatives does nothing beside train.reveal=both"


@pytest.mark.parametrize(("phase", "steps"), [("phase1", 75_000), ("phase2", 25_000)])
def test_a_warm_up_of_which_a_phase_has_less_than_half_is_told(phase, steps):
    key = f"train.{phase}.warmup_steps"
    assert idle_in_run(load_config("paper", [f"{key}={2 * steps}"])) == []
    (found,) = idle_in_run(load_config("paper", [f"{key}={4 * steps}"]))
    peak = {"phase1": "4e-05, not to its peak of 0.00016", "phase2": "1e-05, not to its peak of"}
    assert f"{key} is {4 * steps:,}, and the phase ends after {steps:,} steps" in found
    assert f"its learning rate comes to {peak[phase]}" in found


@pytest.mark.parametrize("name", ["paper", "demo", "cpu_few", "gpu_deep_long", "cpu_paper_again"])
def test_of_the_configs_that_ship_nothing_is_idle(name):
    config = load_config(name)
    assert idle_in_prior(config.prior) + idle_in_run(config) == []


def test_a_phase_of_no_steps_needs_no_warm_up():
    assert idle_in_run(load_config("paper", ["prior.tail_steps=0"])) == []
