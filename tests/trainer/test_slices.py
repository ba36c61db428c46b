"""Tasks pass in slices: what is shown of a task, and its soft targets, stay with it."""

import pytest
import torch

from puicl_config import load_config
from trainer.cli import _resolve
from trainer.gradient import microbatch_gradient
from trainer.loader import Batch
from trainer.state import TrainState

REVEALS = "model.reveals_negatives=true"
SOFT = "train.self_distillation={weight: 0.9, passes: 1}"


def begun(tiny_yaml, *overrides):
    config = _resolve(load_config(tiny_yaml, list(overrides)), "cpu")
    return TrainState(config, torch.device("cpu")), config.train


def some_tasks():
    """Five tasks of 6 labelled and 8 unlabelled rows, without any shards."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(5, 14, 3, generator=generator)
    return Batch((2, 0, 1), x, (x[:, 6:, 0] > 0).long(), 6)


@pytest.mark.filterwarnings("ignore::UserWarning")  # of so few rows
@pytest.mark.parametrize(
    ("overrides", "share"),
    [
        ([], 0.0),
        ([REVEALS], 0.7),
        (["train.reveal=both"], 0.5),
        ([SOFT], 0.0),
        ([SOFT, REVEALS], 0.7),
    ],
    ids=["plain", "negatives", "both", "soft", "soft and negatives"],
)
def test_slices_give_the_gradient_of_the_whole(tiny_yaml, overrides, share):
    state, train = begun(tiny_yaml, *overrides)
    batch = some_tasks()
    with torch.no_grad():  # so that tasks differ, and a task in another's place is seen
        for average in state.ema.values():
            average.mul_(2)
    vectors = [
        microbatch_gradient(
            state, batch, train.model_copy(update={"tasks_per_forward": together}), share
        )
        for together in (5, 2, 1)
    ]
    for vector in vectors[1:]:
        torch.testing.assert_close(vector, vectors[0], atol=2e-6, rtol=1e-4)


def test_as_many_tasks_pass_together_as_the_config_says(tiny_yaml):
    state, train = begun(tiny_yaml, "train.tasks_per_forward=2")
    passed = []
    state.model.register_forward_pre_hook(lambda _, given: passed.append(len(given[0])))
    microbatch_gradient(state, some_tasks(), train)
    assert passed == [2, 2, 1]


def test_nothing_is_asked_of_a_task_whose_rows_are_all_shown(tiny_yaml):
    state, train = begun(tiny_yaml, REVEALS)
    batch = some_tasks()
    batch.y[1] = 0
    vector = microbatch_gradient(state, batch, train, share=1.0)  # every negative
    assert vector.isfinite().all()
    with torch.no_grad():
        log_p = state.model(batch.x, batch.n_labeled, batch.y == 0).log_softmax(-1)
    losses = [-log_p[task, :, 1][batch.y[task] == 1].mean() for task in (0, 2, 3, 4)]
    assert vector[-1].item() == pytest.approx(sum(losses).item() / 5, abs=1e-6)
