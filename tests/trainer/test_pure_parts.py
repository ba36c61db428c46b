"""Sampler, schedule, loader, ledger: pure functions and small files."""

import json
import time

import pytest
import torch

from puicl_config import PhaseConfig, PriorConfig, TrainConfig, load_config
from shard_io import open_shards
from trainer.ledger import Ledger, read_ledger
from trainer.loader import Batch, read_ahead, rounded
from trainer.sampler import addresses_of_step, stages_of_steps
from trainer.schedule import learning_rate

PAPER = load_config("paper")


def test_the_curriculum_walks_the_stages_in_order_and_the_tail_last():
    prior, train = PAPER.prior, PAPER.train
    assert addresses_of_step(prior, train, 0) == [(1, 0, 0), (1, 0, 1)]
    assert addresses_of_step(prior, train, 749) == [(1, 749, 0), (1, 749, 1)]
    assert addresses_of_step(prior, train, 750) == [(2, 0, 0), (2, 0, 1)]
    assert addresses_of_step(prior, train, 74_999) == [(100, 749, 0), (100, 749, 1)]
    assert addresses_of_step(prior, train, 75_000) == [(101, 0, 0), (101, 0, 1)]
    assert addresses_of_step(prior, train, 99_999) == [(134, 249, 0), (134, 249, 1)]
    assert stages_of_steps(prior, train, 1400, 1600) == [2, 3]
    assert stages_of_steps(prior, train, 750, 1501) == [2, 3]
    assert stages_of_steps(prior, train, 750, 1500) == [2]


def test_shuffled_visits_every_step_of_every_stage_once_in_an_order_of_the_seed():
    prior = PriorConfig(stages=5, steps_per_stage=7, tail_steps=10)
    orders = []
    for seed in (0, 1):
        train = TrainConfig(sampler="shuffled", seed=seed)
        orders.append([addresses_of_step(prior, train, t)[0] for t in range(prior.total_steps)])
    straight = [addresses_of_step(prior, TrainConfig(), t)[0] for t in range(prior.total_steps)]
    assert sorted(orders[0]) == sorted(orders[1]) == straight
    assert orders[0] != orders[1] != straight


def test_the_learning_rate_is_the_papers_in_both_phases():
    def rate(step):
        return learning_rate(PAPER.prior, PAPER.train, step)

    assert rate(0) == pytest.approx(1.6e-4 / 4000)
    assert rate(1999) == pytest.approx(0.8e-4)
    assert rate(3999) == rate(4000) == pytest.approx(1.6e-4)
    middle = (4000 + 75_000) // 2
    assert rate(middle) == pytest.approx(1.6e-5 + 1.44e-4 * 0.5**1.5)
    assert rate(74_999) == pytest.approx(1.6e-5, rel=1e-3)
    assert rate(75_000) == pytest.approx(4e-5 / 2000)
    assert rate(76_999) == pytest.approx(4e-5)
    assert rate(99_999) == pytest.approx(4e-6, rel=1e-3)
    assert all(rate(t) > rate(t + 1) for t in range(4000, 74_000, 977))


def test_each_step_of_a_short_plan_has_the_rate_of_the_formula():
    """floor + (peak - floor) (1 - progress)^2 of 0, 1/4, 1/2, 3/4, after a warm-up or without."""
    prior = PriorConfig(stages=1, steps_per_stage=6, tail_steps=4)
    first = PhaseConfig(peak=9.0, floor=1.0, warmup_steps=2)
    second = PhaseConfig(peak=4.0, floor=0.0, warmup_steps=0)
    train = TrainConfig(phase1=first, phase2=second, decay_exponent=2.0)
    rates = [learning_rate(prior, train, step) for step in range(prior.total_steps)]
    assert rates == [4.5, 9, 9, 5.5, 3, 1.5, 4, 2.25, 1, 0.25]


def test_a_phase_shorter_than_its_warm_up_only_warms_up():
    prior = PriorConfig(stages=1, steps_per_stage=5, tail_steps=0)
    train = TrainConfig(phase1=PhaseConfig(peak=1.0, floor=0.0, warmup_steps=10))
    assert [learning_rate(prior, train, t) for t in range(5)] == [0.1, 0.2, 0.3, 0.4, 0.5]


@pytest.mark.parametrize("threads", [0, 1, 3])
def test_the_loader_keeps_the_order_whatever_its_threads(tiny, all_shards, threads, monkeypatch):
    reader = open_shards(all_shards)
    addresses = [
        address
        for step in range(tiny.prior.total_steps)
        for address in addresses_of_step(tiny.prior, tiny.train, step)
    ][::-1]  # an order that is no folder's
    import trainer.loader

    real, calls = trainer.loader.load, []

    def uneven(reader, address):
        calls.append(address)
        time.sleep(0.002 * (len(calls) % 3))
        return real(reader, address)

    monkeypatch.setattr(trainer.loader, "load", uneven)
    batches = list(read_ahead(reader, addresses, threads))
    assert len(batches) == len(addresses)
    for address, batch in zip(addresses, batches, strict=True):
        stored = reader[address]
        assert batch.x.numpy().tobytes() == stored.x.astype("float32").tobytes()
        assert batch.n_labeled == stored.n_labeled


@pytest.mark.parametrize(("multiple", "kept"), [(1, (7, 13)), (4, (4, 12)), (16, (7, 13))])
def test_rows_are_cut_down_to_multiples_and_stay_in_their_halves(multiple, kept):
    x = torch.arange(2 * 20 * 3).reshape(2, 20, 3).float()
    y = torch.arange(2 * 13).reshape(2, 13)
    batch = rounded(Batch((1, 0, 0), x, y, 7), multiple)
    n_labeled, n_unlabeled = kept
    assert batch.n_labeled == n_labeled
    torch.testing.assert_close(batch.x[:, :n_labeled], x[:, :n_labeled])
    torch.testing.assert_close(batch.x[:, n_labeled:], x[:, 7 : 7 + n_unlabeled])
    torch.testing.assert_close(batch.y, y[:, :n_unlabeled])


def test_the_loader_passes_errors_on(tiny, all_shards):
    with pytest.raises(KeyError, match="no microbatch"):
        list(read_ahead(open_shards(all_shards), [(1, 0, 0), (9, 0, 0)], threads=1))


def test_a_resumed_ledger_drops_what_came_after_the_checkpoint_and_a_torn_line(tmp_path):
    path = tmp_path / "ledger.jsonl"
    ledger = Ledger(path, 0)
    for step in range(4):
        ledger.write(step, 0.5, 1.5, 1e-4, [(1, step, 0)], "0" * 64, None)
    ledger.close()
    with path.open("a") as file:
        file.write('{"step": 4, "lo')
    assert [line["step"] for line in read_ledger(path)] == [0, 1, 2, 3]
    Ledger(path, 2).close()
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["step"] for line in lines] == [0, 1]
    assert float.fromhex(lines[0]["loss"]) == 0.5
    path.write_text(2 * (json.dumps(lines[0]) + "\n"))  # of two trainers that saw no lock
    again = Ledger(path, 2)
    again.close()
    assert again.lacks == 1
