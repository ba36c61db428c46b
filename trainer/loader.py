"""Microbatches as tensors, read ahead of the step that needs them."""

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import torch
from torch import Tensor

from shard_io import ShardReader
from trainer.sampler import Address


class Batch(NamedTuple):
    """One microbatch on its way to the device. x: [T, R, d] float32, y: [T, R - P] int64."""

    address: Address
    x: Tensor
    y: Tensor
    n_labeled: int


def load(reader: ShardReader, address: Address) -> Batch:
    """Read one microbatch; raises `ShardError` where its part is missing or damaged."""
    microbatch = reader[address]
    return Batch(
        address=address,
        x=torch.from_numpy(microbatch.x).float(),
        y=torch.from_numpy(microbatch.y).long(),
        n_labeled=microbatch.n_labeled,
    )


def read_ahead(
    reader: ShardReader, addresses: Sequence[Address], threads: int, ahead: int = 4
) -> Iterator[Batch]:
    """The microbatches of `addresses` in this very order, whatever the number of threads."""
    if threads == 0:
        for address in addresses:
            yield load(reader, address)
        return
    with ThreadPoolExecutor(threads) as pool:
        waiting = deque()
        try:
            for address in addresses:
                waiting.append(pool.submit(load, reader, address))
                if len(waiting) > max(ahead, threads):
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
