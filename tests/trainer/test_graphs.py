"""What recorded graphs compute, on a CPU, where nothing is recorded; loader processes."""

import functools

import pytest
import torch

from shard_io import open_shards
from trainer.fit import fit
from trainer.gradient import microbatch_gradient
from trainer.graphs import RecordedGradients, cut_rows
from trainer.loader import Batch, load, read_ahead
from trainer.sampler import addresses_of_step
from trainer.state import TrainState
from trainer.world import World


def batch_of(n_labeled: int, n_unlabeled: int, d: int = 3) -> Batch:
    generator = torch.Generator().manual_seed(n_labeled)
    x = torch.randn(2, n_labeled + n_unlabeled, d, generator=generator)
    y = (torch.rand(2, n_unlabeled, generator=generator) < 0.5).long()
    return Batch((1, 0, 0), x, y, n_labeled)


@pytest.mark.parametrize(
    ("n_labeled", "n_unlabeled", "kept"),
    [
        *((9, 6, 15), (20, 12, 32), (30, 45, 64), (30, 49, 64)),
        *((100, 539, 512), (1, 120, 112), (110, 5, 112)),
    ],
)
def test_rows_of_both_kinds_are_cut_in_proportion(n_labeled, n_unlabeled, kept):
    batch = batch_of(n_labeled, n_unlabeled)
    cut = cut_rows(batch)
    rows = n_labeled + n_unlabeled
    assert cut.x.shape[1] == kept == cut.n_labeled + cut.y.shape[1]
    assert kept >= 0.8 * rows or rows < 64
    assert cut.n_labeled >= 1
    assert cut.y.shape[1] >= 1
    assert abs(cut.n_labeled - n_labeled * kept / rows) <= 0.5  # the nearest number
    torch.testing.assert_close(cut.x[:, : cut.n_labeled], batch.x[:, : cut.n_labeled])
    unlabeled = batch.x[:, n_labeled : n_labeled + cut.y.shape[1]]
    torch.testing.assert_close(cut.x[:, cut.n_labeled :], unlabeled)
    torch.testing.assert_close(cut.y, batch.y[:, : cut.y.shape[1]])


@pytest.mark.parametrize("by", ["labeled", "all"])
def test_the_masked_gradient_is_that_of_the_microbatch(tiny, by):
    model = tiny.model.model_copy(update={"standardize_by": by})
    config = tiny.model_copy(update={"model": model})
    here, there = (TrainState(config, torch.device("cpu")) for _ in range(2))
    recorded = RecordedGradients(there, config.train)
    for sizes in ((12, 20), (4, 28), (20, 40)):  # two of one shape: the second fills its slot again
        batch = cut_rows(batch_of(*sizes))
        batch.x[:, : batch.n_labeled, 0] = 0.1  # a constant among the labelled rows
        batch.x[:, :, 1] = 0.3  # and one everywhere
        expected = microbatch_gradient(here, batch, config.train)
        torch.testing.assert_close(recorded(batch), expected, atol=1e-5, rtol=1e-4)


def test_on_a_cpu_a_run_takes_the_same_rows_few_tasks_at_a_time(
    tiny, all_shards, tmp_path, monkeypatch
):
    """A replay of a GPU's run would else hold all tasks of a microbatch at once."""
    seen = []

    def computed(state, batch, train, share):
        seen.append(batch)
        return microbatch_gradient(state, batch, train, share)

    monkeypatch.setattr("trainer.step.microbatch_gradient", computed)
    monkeypatch.setattr("trainer.graphs.RecordedGradients.__call__", None)
    changes = {"cuda_graphs": True, "max_steps": 1, "device": "cpu", "precision": "float32"}
    config = tiny.model_copy(update={"train": tiny.train.model_copy(update=changes)})
    fit(config, all_shards, tmp_path / "run", World(0, 1, torch.device("cpu")))
    reader = open_shards(all_shards)
    there = [cut_rows(load(reader, a)) for a in addresses_of_step(tiny.prior, config.train, 0)]
    assert len(seen) == len(there)
    for batch, expected in zip(seen, there, strict=True):
        assert batch.n_labeled == expected.n_labeled
        assert torch.equal(batch.x, expected.x)


def test_a_run_cuts_rows_down_to_the_multiples_it_is_told(tiny, all_shards, tmp_path, monkeypatch):
    seen = []

    def computed(state, batch, *_):
        seen.append((batch.n_labeled % 4, batch.y.shape[1] % 4))
        return torch.ones(state.gradient.numel() + 1)

    monkeypatch.setattr("trainer.step.microbatch_gradient", computed)
    changes = {"round_rows": 4, "max_steps": 1, "device": "cpu", "precision": "float32"}
    config = tiny.model_copy(update={"train": tiny.train.model_copy(update=changes)})
    fit(config, all_shards, tmp_path / "run", World(0, 1, torch.device("cpu")))
    assert seen == [(0, 0)] * 4


def test_loader_processes_give_what_the_threads_give(tiny, all_shards):
    addresses = [a for step in range(2) for a in addresses_of_step(tiny.prior, tiny.train, step)]
    reader = open_shards(all_shards)
    again = functools.partial(open_shards, str(all_shards))
    batches = list(read_ahead(reader, addresses, 1, processes=2, open_again=again))
    for address, batch in zip(addresses, batches, strict=True):
        expected = load(reader, address)
        assert batch.address == address
        assert batch.n_labeled == expected.n_labeled
        assert torch.equal(batch.x, expected.x)
        assert torch.equal(batch.y, expected.y)
