"""Soft targets from the moving average of the weights (train.self_distillation)."""

import threading
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch.func import functional_call

from puicl_config import TrainConfig, load_config, run_digest
from puicl_model import PUICLClassifier, save_model
from puicl_model.process_settings import threads
from shard_io import open_shards
from trainer.cli import _resolve
from trainer.gradient import microbatch_gradient
from trainer.loader import Batch, load
from trainer.state import TrainState
from trainer.teacher import Averaged, soft_targets

CPU = torch.device("cpu")
ADDRESS = (3, 0, 0)
ORDERS = "model.feature_group=[0,1,3]"
# Of seed 3 and `ADDRESS`: a number of each task's orders and one of its rotations.
DRAWN = [[263, 538], [55, 94], [860, 942]]


@pytest.fixture
def settings(tiny_yaml):
    def resolved(*overrides):
        return _resolve(load_config(tiny_yaml, [ORDERS, *overrides]), "cpu")

    return resolved


@pytest.fixture
def batch(all_shards):
    return load(open_shards(all_shards), ADDRESS)


def spread(state: TrainState) -> TrainState:
    """The state with weights and average apart, and answers that are not all nearly one half."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for name, p in state.parameters.items():
            p.mul_(1.5)
            noise = torch.randn(p.shape, generator=generator)
            state.ema[name] = p.detach() + 0.1 * p.std(correction=0) * noise
    return state


def test_without_it_a_run_keeps_its_name_and_its_bits(settings, batch):
    plain, none = settings(), settings("train.self_distillation={weight: 0.0, passes: 2}")
    assert run_digest(plain) == run_digest(none)
    assert "self_distillation" not in plain.train.model_dump()
    some = settings("train.self_distillation.weight=0.5")
    more = settings("train.self_distillation={weight: 0.5, passes: 2}")
    assert len({run_digest(config) for config in (plain, some, more)}) == 3
    vectors = [
        microbatch_gradient(spread(TrainState(config, CPU)), batch, config.train)
        for config in (plain, none, some)
    ]
    assert torch.equal(vectors[0], vectors[1])
    assert not torch.equal(vectors[0], vectors[2])


@pytest.mark.filterwarnings("ignore::UserWarning")  # of so few rows and such weights
def test_one_pass_of_the_teacher_is_the_classifiers_with_the_averaged_weights(
    settings, batch, tmp_path
):
    config = settings("train.self_distillation={weight: 0.5, passes: 1}")
    state = spread(TrainState(config, CPU))
    found = soft_targets(Averaged(state.model, state.ema), batch, config.train)
    path = tmp_path / "model.safetensors"
    save_model(path, state.ema, {"model": config.model.model_dump()})
    s = np.arange(batch.x.shape[1]) < batch.n_labeled
    for task, probability in zip(batch.x, found, strict=True):
        fitted = PUICLClassifier(path, n_estimators=1, preprocessing=None)
        fitted.fit(task.double().numpy(), s)
        np.testing.assert_allclose(probability, fitted.unlabeled_proba_, atol=1e-5)
    assert found.std() > 0.01


def test_the_teacher_says_the_mean_of_its_passes_log_odds(settings, batch, monkeypatch):
    config = settings("train.self_distillation={weight: 0.5, passes: 3}")
    state = TrainState(config, CPU)
    odds = 4 * np.random.default_rng(0).standard_normal((len(batch.x), 3, batch.y.shape[1]))
    monkeypatch.setattr(
        "puicl_model.unlabeled.score_unlabeled",
        lambda network, plans, **_: [SimpleNamespace(log_odds=each) for each in odds[: len(plans)]],
    )
    found = soft_targets(Averaged(state.model, state.ema), batch, config.train)
    assert found.dtype == torch.float32
    np.testing.assert_allclose(found, 1 / (1 + np.exp(-odds.mean(axis=1))), rtol=1e-6)


def test_any_number_of_threads_asks_the_teacher_once_at_a_time(settings, batch, monkeypatch):
    """While it answers, the model itself holds the average: other threads would find it there."""
    config = settings("train.self_distillation={weight: 0.5, passes: 3}")
    state = spread(TrainState(config, CPU))
    asked = []

    def answer(model, parameters, arguments):
        asked.append((threading.current_thread(), torch.get_num_threads()))
        return functional_call(model, parameters, arguments)

    monkeypatch.setattr("trainer.teacher.functional_call", answer)
    with threads(1):
        alone = soft_targets(Averaged(state.model, state.ema), batch, config.train)
    assert set(asked) == {(threading.main_thread(), 1)}
    n_asked = len(asked)
    with threads(4):
        shared = soft_targets(Averaged(state.model, state.ema), batch, config.train)
    assert asked[n_asked:] == n_asked * [(threading.main_thread(), 4)]
    torch.testing.assert_close(shared, alone, rtol=0, atol=1e-6)
    for name, parameter in state.model.named_parameters():
        assert parameter is state.parameters[name]


def test_targets_lie_between_class_and_teacher_as_far_as_the_weight_says(settings, batch):
    config = settings("train.self_distillation={weight: 0.75, passes: 3}")
    state = spread(TrainState(config, CPU))
    loss = microbatch_gradient(state, batch, config.train)[-1].item()
    teacher = soft_targets(Averaged(state.model, state.ema), batch, config.train)
    target = 0.25 * batch.y + 0.75 * teacher
    with torch.no_grad():
        log_p = state.model(batch.x, batch.n_labeled).log_softmax(-1)
    losses = -(target * log_p[..., 1] + (1 - target) * log_p[..., 0])
    assert loss == pytest.approx(losses.mean(dim=1).mean().item(), abs=1e-6)


def test_views_are_drawn_by_seed_address_and_task_alone(settings, batch):
    config = settings("train.self_distillation={weight: 0.5, passes: 4}")
    state = spread(TrainState(config, CPU))
    network = Averaged(state.model, state.ema)

    def targets(batch=batch, **changes):
        return soft_targets(network, batch, config.train.model_copy(update=changes))

    first = targets()
    assert torch.equal(first, targets())
    for other in ((2, 0, 0), (3, 1, 0), (3, 0, 1)):
        assert not torch.equal(first, targets(batch._replace(address=other)))
    assert not torch.equal(first, targets(seed=1))
    fewer = targets(batch._replace(x=batch.x[:2], y=batch.y[:2]))
    torch.testing.assert_close(fewer, first[:2], rtol=0, atol=1e-6)
    # The same table twice is read in other views each time.
    twice = targets(batch._replace(x=batch.x[:1].expand(2, -1, -1), y=batch.y[:1].expand(2, -1)))
    torch.testing.assert_close(twice[0], first[0], rtol=0, atol=1e-6)
    assert (twice[0] - twice[1]).abs().max() > 1e-4
    with torch.no_grad():  # it is the average that teaches, not the weights
        for p in state.parameters.values():
            p.zero_()
    assert torch.equal(first, targets())


def test_what_seed_address_and_task_draw_stays_as_it_was(settings, batch, monkeypatch):
    """Runs go on under later versions: other views would be other bits, and no digest tells."""
    drawn = []

    def planned(x, labeled, relevance, *, rng, rotations, **asked):
        drawn.append([int(each.integers(1000)) for each in (rng, rotations)])
        return asked

    monkeypatch.setattr("puicl_model.plan.plan_table", planned)

    def scored(network, plans, **_):
        for asked in plans:
            assert (asked["n_estimators"], asked["orders_matter"]) == (3, True)
        return [SimpleNamespace(log_odds=np.zeros((3, 2)))] * len(plans)

    monkeypatch.setattr("puicl_model.unlabeled.score_unlabeled", scored)
    config = settings("train.self_distillation={weight: 0.5, passes: 3}", "train.seed=3")
    state = TrainState(config, CPU)
    soft_targets(Averaged(state.model, state.ema), batch, config.train)
    assert drawn == DRAWN


def test_a_student_comes_nearer_to_its_teachers_mean(settings, batch):
    config = settings("train.self_distillation={weight: 0.95, passes: 4}", "train.ema_decay=0.999")
    state = spread(TrainState(config, CPU))
    teacher = soft_targets(Averaged(state.model, state.ema), batch, config.train)

    def distance():
        with torch.no_grad():
            p = state.model(batch.x, batch.n_labeled).softmax(-1)[..., 1]
        return (p - teacher).square().mean().item()

    before = distance()
    for _ in range(20):
        state.update(microbatch_gradient(state, batch, config.train)[:-1], 3e-3)
    assert distance() < before / 2


def test_the_bits_are_the_same_on_two_processes_and_resumed(
    tiny_yaml, all_shards, run_command, arguments, run_bytes, tmp_path
):
    def command(out, *more, processes=1):
        soft = "train.self_distillation={weight: 0.6, passes: 2}"
        more = (ORDERS, soft, "train.max_steps=9", *more)
        return arguments(tiny_yaml, all_shards, out, *more, processes=processes)

    one, two = tmp_path / "one", tmp_path / "two"
    run_command(*command(one))
    run_command(*command(two, "train.max_steps=5", processes=2))
    run_command(*command(two))
    assert run_bytes(one) == run_bytes(two)


@pytest.mark.parametrize("weight", [-0.1, 1.0])
def test_a_weight_that_leaves_nothing_of_the_classes_is_refused(weight):
    with pytest.raises(ValueError, match=r"self_distillation\.weight"):
        TrainConfig(self_distillation={"weight": weight})


@pytest.mark.parametrize(("n_labeled", "n_unlabeled"), [(30, 2), (1, 300)])
def test_the_teacher_reads_a_task_as_a_whole_whatever_its_composition(n_labeled, n_unlabeled):
    """Where the classifier, which never saw a table like it, would read a part or several."""
    seen = []

    class Teacher:
        unlabeled_token, orders_matter = torch.zeros(1), True

        def __call__(self, x, n_labeled):
            seen.append((n_labeled, x.shape[1]))
            return torch.zeros(len(x), x.shape[1] - n_labeled, 2)

    x = torch.randn(1, n_labeled + n_unlabeled, 3, generator=torch.Generator().manual_seed(0))
    whole = Batch(ADDRESS, x, torch.zeros(1, n_unlabeled), n_labeled)
    soft_targets(Teacher(), whole, TrainConfig(self_distillation={"weight": 0.5, "passes": 2}))
    assert set(seen) == {(n_labeled, n_labeled + n_unlabeled)}
