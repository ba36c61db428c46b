"""Readers in a loader's worker processes, however these are started, and as the docs print it."""

import importlib
import multiprocessing
import os
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset

from prior_gen import generate_microbatch
from prior_gen.convert import convert_shards
from shard_io import FilteredReader, ShardError, open_shards

PAGE = Path(__file__).parents[2] / "shards" / "README.md"


class Addressed(Dataset):
    """Microbatches of a reader at some addresses."""

    def __init__(self, shards, addresses):
        self.shards, self.addresses = shards, addresses

    def __len__(self):
        return len(self.addresses)

    def __getitem__(self, number):
        batch = self.shards[self.addresses[number]]
        return os.getpid(), batch.x


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_workers_of_a_loader_read_the_same_however_they_are_started(start, tiny, all_shards):
    shards, addresses = open_shards(all_shards), [(1, 0, 0), (2, 1, 1), (5, 0, 0)]
    assert shards[addresses[0]].x.size  # an open part stays with its process
    context = multiprocessing.get_context(start)
    data = Addressed(shards, addresses)
    loader = DataLoader(data, batch_size=None, num_workers=1, multiprocessing_context=context)
    for address, (process, x) in zip(addresses, loader, strict=True):
        assert process != os.getpid()
        np.testing.assert_array_equal(x, generate_microbatch(tiny, *address).x)


def test_a_pickled_reader_of_a_subset_answers_as_the_one_it_was_made_from(own_shards):
    reader = FilteredReader(own_shards, "d >= 2")
    counted = reader[1, 0, 0]
    copy = pickle.loads(pickle.dumps(reader))
    for address in ((1, 0, 0), (2, 0, 1)):
        assert copy[address].digest() == reader[address].digest()
    assert copy[1, 0, 0].digest() == counted.digest()


def test_a_pickled_reader_refuses_what_was_altered_since_its_original_read_it(own_shards):
    reader = open_shards(own_shards)
    part, _ = reader.part_of((1, 0, 0))
    reader.part(part)
    copy = pickle.loads(pickle.dumps(reader))
    file = own_shards / part.data_path("zarr") / "x" / "c" / "0"
    content = bytearray(file.read_bytes())
    content[7] ^= 1
    file.write_bytes(content)
    with pytest.raises(ShardError, match="altered"):
        _ = copy[1, 0, 0]


def test_a_reader_is_not_iterated_by_numbers_that_are_no_addresses(all_shards):
    with pytest.raises(TypeError, match="not iterable"):
        iter(open_shards(all_shards))


def test_the_docs_own_data_set_holds_every_microbatch_once(tiny, all_shards, tmp_path, monkeypatch):
    section = PAGE.read_text(encoding="utf-8").split("\n## In Python\n")[1].split("\n## ")[0]
    code = section.split("```python\n")[1].split("```")[0]
    (tmp_path / "shards").symlink_to(all_shards)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "of_the_docs.py").write_text(code, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    names = vars(importlib.import_module("of_the_docs"))
    np.testing.assert_array_equal(names["microbatch"].x, generate_microbatch(tiny, 1, 0, 0).x)
    prior, read = tiny.prior, [(x.shape, len(y), p) for x, y, p in names["loader"]]
    steps = sum(prior.steps_in_stage(stage) for stage in range(1, prior.total_stages + 1))
    assert len(read) == steps * prior.microbatches_per_step
    assert all(shape[0] == tasks and p < shape[1] for shape, tasks, p in read)
    assert next(iter(names["loader"]))[0].dtype == torch.float32
    # The order follows from the seed of the loader's generator alone, as the page says.
    convert_shards(all_shards, tmp_path / "tars", "webdataset", jobs=1)
    orders = {
        tuple(x.numpy().tobytes() for x, _, _ in DataLoader(data, generator=order, **options))
        for folder in (all_shards, tmp_path / "tars")
        for workers in (0, 2)
        for data in [names["Microbatches"](folder)]
        for options in [{"batch_size": None, "shuffle": True, "num_workers": workers}]
        for order in [torch.Generator().manual_seed(3)]
    }
    assert len(orders) == 1
