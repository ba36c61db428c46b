"""The loss on held-out tasks, whoever computes it."""

import json
import shutil
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from sklearn.metrics import accuracy_score, log_loss, roc_auc_score
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from prior_gen import generate_shards
from puicl_config import InputError, load_config
from puicl_model import load_model
from shard_io import open_shards
from trainer import step
from trainer.cli import _resolve
from trainer.fit import fit
from trainer.heldout import HeldoutFigures, HeldoutSet, _digest, auc
from trainer.ledger import read_ledger
from trainer.loader import load
from trainer.metrics import Metrics
from trainer.state import TrainState
from trainer.world import World

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def config(tiny_yaml, tiny, tmp_path_factory):
    """The tiny experiment, evaluated on five microbatches."""
    folder = tmp_path_factory.mktemp("heldout")
    generate_shards(tiny, folder, [2], split="heldout", jobs=1)
    options = [f"train.heldout={folder}", "train.heldout_microbatches=5"]
    return _resolve(load_config(tiny_yaml, options), "cpu")


def test_heldout_figures_do_not_depend_on_the_number_of_processes(config, monkeypatch):
    average = TrainState(config, CPU).ema
    sent = []

    def all_gather(gathered, rows):  # the second process first, then the first one with its rows
        sent.append(rows.clone())
        for place, each in zip(gathered, reversed(sent), strict=False):
            place.copy_(each)

    monkeypatch.setattr("trainer.world.dist.all_gather", all_gather)
    alone, _, shared = (
        HeldoutSet(config, World(rank, size, CPU)).evaluate(average)
        for rank, size in ((0, 1), (1, 2), (0, 2))
    )
    assert shared == alone


def test_figures_are_means_over_tasks_that_lie_evenly_spaced_in_the_folder(config):
    state, reader = TrainState(config, CPU), open_shards(config.train.heldout)
    losses, hits, aucs = [], [], []
    for at, index in ((0, 0), (0, 3), (1, 2), (2, 1), (3, 0)):  # every third of four times four
        batch = load(reader, (2, at, index))
        with torch.no_grad():
            says = state.model(batch.x, batch.n_labeled).double().softmax(-1)[..., 1].numpy()
        for p, y in zip(says, batch.y.numpy(), strict=True):
            losses.append(log_loss(y, p, labels=(0, 1)))
            hits.append(accuracy_score(y, p > 0.5))
            aucs.append(roc_auc_score(y, p))
    found = HeldoutSet(config, World(0, 1, CPU)).evaluate(state.ema)
    assert (found.accuracy, found.auc) == pytest.approx((np.mean(hits), np.mean(aucs)))
    assert found.loss == pytest.approx(np.mean(losses), rel=1e-5)


def test_figures_are_computed_in_the_runs_precision(config, monkeypatch):
    monkeypatch.setattr("puicl_model.precision.multiplies_bfloat16", lambda: True)
    average = TrainState(config, CPU).ema
    train = config.train.model_copy(update={"precision": "bfloat16"})
    settings = (config, config.model_copy(update={"train": train}))
    exact, rough = (HeldoutSet(each, World(0, 1, CPU)).evaluate(average).loss for each in settings)
    assert rough == pytest.approx(exact, abs=0.02)
    assert rough != exact


def test_a_held_out_set_is_named_by_its_microbatches(config):
    reader = open_shards(config.train.heldout)
    part = reader.published_parts()[0]
    assert len({_digest(reader, [(part, position)]) for position in (0, 1)}) == 2


FIGURES = HeldoutFigures(0.7, 0.6, 0.5)


def trained(config, shards, out, **changes):
    """What metrics.jsonl holds after training with these changes of the section."""
    train = config.train.model_copy(update=changes)
    fit(config.model_copy(update={"train": train}), shards, out, World(0, 1, CPU))
    return list(read_ledger(out / "metrics.jsonl"))


def trained_figures(*given, **changes):
    """Those lines that have held-out figures."""
    return [line for line in trained(*given, **changes) if "heldout_loss" in line]


def test_looking_at_held_out_tasks_takes_no_time_of_training(
    config, all_shards, tmp_path, monkeypatch
):
    clock = SimpleNamespace(now=0.0, monotonic=lambda: clock.now)

    def evaluate(*_):
        clock.now += 1000
        return FIGURES

    def gradient(state, *_):  # of four microbatches a step
        clock.now += state.step + 1
        return torch.ones(state.gradient.numel() + 1)

    monkeypatch.setattr("trainer.metrics.time", clock)
    monkeypatch.setattr("trainer.step.microbatch_gradient", gradient)
    monkeypatch.setattr(HeldoutSet, "evaluate", evaluate)
    often = {"heldout_every": 1, "log_every": 1}
    lines = trained(config, all_shards, tmp_path, max_steps=2, **often)
    lines += trained(config, all_shards, tmp_path, max_steps=3, **often)[len(lines) :]
    assert clock.now == 3024
    assert {(line["step"], line["seconds"]) for line in lines} == {(1, 4), (2, 12), (3, 24)}
    speeds = [line["steps_per_second"] for line in lines if "loss" in line]
    assert speeds == pytest.approx([1 / 4, 1 / 8, 1 / 12])


def test_an_evaluation_that_was_broken_off_is_made_up_for(
    config, all_shards, tmp_path, monkeypatch
):
    answers = [FIGURES, None, None, FIGURES, FIGURES]  # at step 2 none, twice
    monkeypatch.setattr(HeldoutSet, "evaluate", lambda *_: answers.pop(0))
    for stop in (2, 3):
        lines = trained(config, all_shards, tmp_path, heldout_every=1, max_steps=stop)
    assert [line["step"] for line in lines if "heldout_loss" in line] == [1, 2, 3]


def test_figures_on_other_held_out_tasks_are_recorded_at_the_step_where_the_run_stands(
    config, all_shards, tmp_path, capsys
):
    stop = {"max_steps": 2}
    (before,) = trained_figures(config, all_shards, tmp_path, **stop)
    assert len(trained_figures(config, all_shards, tmp_path, **stop)) == 1  # the same tasks
    assert "the held-out tasks are others" not in capsys.readouterr().out
    for first in (True, False):  # and then these are the same
        lines = trained_figures(config, all_shards, tmp_path, **stop, heldout_microbatches=2)
        told = "train.heldout_microbatches is another number): held-out figures before and after"
        assert (told in capsys.readouterr().out) == first
        assert [line["step"] for line in lines] == [2, 2]
        assert lines[0] == before
        assert lines[1]["heldout_set"] != before["heldout_set"]
    board = EventAccumulator(str(tmp_path / "tensorboard")).Reload().Scalars("heldout/auc")
    assert [(event.step, event.value) for event in board] == [
        (2, pytest.approx(line["heldout_auc"])) for line in lines
    ]


def test_a_run_that_goes_on_with_other_held_out_tasks_has_both_figures_of_that_step(
    config, all_shards, tmp_path
):
    often = {"heldout_every": 1}
    trained(config, all_shards, tmp_path, **often, max_steps=1)
    more = {"heldout_microbatches": 2, "max_steps": 2}
    lines = trained_figures(config, all_shards, tmp_path, **often, **more)
    a, b = lines[0]["heldout_set"], lines[-1]["heldout_set"]
    assert a != b
    assert [(line["step"], line["heldout_set"]) for line in lines] == [(1, a), (1, b), (2, b)]


def test_figures_whose_tasks_an_earlier_version_did_not_name_are_not_recorded_again(
    config, all_shards, tmp_path
):
    (line,) = trained_figures(config, all_shards, tmp_path, max_steps=1)
    line.pop("heldout_set")
    (tmp_path / "metrics.jsonl").write_text(json.dumps(line) + "\n")
    assert trained_figures(config, all_shards, tmp_path, max_steps=1) == [line]


def test_a_run_that_was_stopped_between_evaluations_makes_none_up(
    config, all_shards, tmp_path, monkeypatch
):
    monkeypatch.setattr(HeldoutSet, "evaluate", lambda *_: FIGURES)
    lines = trained(config, all_shards, tmp_path, heldout_every=2, max_seconds=1e-9)
    assert [line["step"] for line in lines if "heldout_loss" in line] == []
    lines = trained(config, all_shards, tmp_path, heldout_every=2, max_steps=3)
    assert [line["step"] for line in lines if "heldout_loss" in line] == [2, 3]


def test_a_runs_clock_goes_on_from_its_last_checkpoint(config, all_shards, tmp_path, monkeypatch):
    clock = SimpleNamespace(now=0.0, monotonic=lambda: clock.now)

    def gradient(state, *_):  # of four microbatches a step
        clock.now += 1
        return torch.ones(state.gradient.numel() + 1)

    monkeypatch.setattr("trainer.metrics.time", clock)
    monkeypatch.setattr("trainer.step.microbatch_gradient", gradient)
    for stop in (2, 3):
        lines = trained(config, all_shards, tmp_path, heldout=None, max_steps=stop)
    assert [(line["step"], line["seconds"]) for line in lines] == [(2, 8), (3, 12)]


def test_what_a_run_waits_for_data_is_counted(config, all_shards, tmp_path, monkeypatch):
    clock, read_ahead = SimpleNamespace(now=0.0, monotonic=lambda: clock.now), step.read_ahead

    def slow(*given, **options):  # four microbatches a step
        for batch in read_ahead(*given, **options):
            clock.now += 2
            yield batch

    def late(*_):
        clock.now += 5
        return True

    monkeypatch.setattr("trainer.run_log.time", clock)
    monkeypatch.setattr("trainer.step.read_ahead", slow)
    monkeypatch.setattr("trainer.step.Follower.wait", late)
    options = {"heldout": None, "log_every": 1, "max_steps": 2, "follow": True}
    lines = trained(config, all_shards, tmp_path, **options)
    assert [line["data_wait_seconds"] for line in lines if "loss" in line] == [13, 26]


def test_a_logged_loss_is_the_mean_since_the_last_one_that_was_logged(config, all_shards, tmp_path):
    lines = trained(config, all_shards, tmp_path, heldout=None, max_steps=5, log_every=2)
    losses = [float.fromhex(line["loss"]) for line in read_ledger(tmp_path / "ledger.jsonl")]
    told = {line["step"]: line["loss"] for line in lines if "loss" in line}
    assert told == pytest.approx({2: np.mean(losses[:2]), 4: np.mean(losses[2:4])}, rel=1e-12)


def test_a_runs_figures_are_of_its_moving_average(config, all_shards, tmp_path):
    run = tmp_path / "run"
    lines = trained(config, all_shards, run, max_steps=3, heldout_every=3)
    (line,) = (line for line in lines if "heldout_loss" in line)
    weights, _ = load_model(run / "model.safetensors")
    expected = HeldoutSet(config, World(0, 1, CPU)).evaluate(dict(weights.named_parameters()))
    assert line["step"] == 3
    assert {name: line[f"heldout_{name}"] for name in vars(expected)} == vars(expected)


def test_a_set_has_no_task_twice_however_many_are_asked_for(config):
    few, many = (
        HeldoutSet(
            config.model_copy(
                update={"train": config.train.model_copy(update={"heldout_microbatches": count})}
            ),
            World(0, 1, CPU),
        )
        for count in (16, 1000)
    )
    assert many.digest == few.digest


def test_a_folder_whose_first_part_is_still_to_come_is_told(config, tmp_path):
    begun = shutil.copytree(config.train.heldout, tmp_path / "begun")
    shutil.rmtree(begun / "entries")
    train = config.train.model_copy(update={"heldout": str(begun)})
    with pytest.raises(InputError, match=r"train.heldout: .*begun holds no parts yet"):
        HeldoutSet(config.model_copy(update={"train": train}), World(0, 1, CPU))


def test_the_held_out_tasks_of_before_are_the_last_ones(tmp_path):
    path = tmp_path / "metrics.jsonl"
    line = {"seconds": 1.0, "heldout_loss": 0.5}
    sets = [{**line, "step": step, "heldout_set": name} for step, name in ((5, "a"), (10, "b"))]
    path.write_text("".join(json.dumps(each) + "\n" for each in sets))
    metrics = Metrics(path, 10)
    metrics.close()
    assert (metrics.evaluated, metrics.heldout_set) == (10, "b")


def test_the_auc_of_float32_scores_is_exact():
    rng = np.random.default_rng(0)
    for n in (7, 37, 5000):
        y = (np.arange(n) % 3 == 0).astype(np.uint8)
        score = rng.normal(size=n).astype(np.float32).round(1)  # some are equal
        above = score[y == 1][:, None] - score[y == 0]
        expected = float(np.mean((above > 0) + 0.5 * (above == 0)))
        assert abs(auc(score, y) - expected) < 1e-14
