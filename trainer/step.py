"""The gradient of a step: which process computes which microbatch, and their mean, bit for bit."""

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from shard_io import ShardReader
from trainer.follow import Follower
from trainer.gradient import microbatch_gradient
from trainer.graphs import RecordedGradients, cut_rows
from trainer.loader import Batch, read_ahead, rounded
from trainer.reveal import revealed_share
from trainer.run import Run
from trainer.sampler import addresses_of_step
from trainer.shares import cost, shares
from trainer.stop import StopRequest


class StepGradients:
    """The mean gradients of a run's steps, one after the other, on all processes."""

    def __init__(
        self,
        run: Run,
        reader: ShardReader,
        open_again: Callable[[], ShardReader],
        stop: int,
        asked: StopRequest,
    ):
        """stop: the last step; open_again: see `read_ahead`."""
        prior, train = run.config.prior, run.config.train
        state, world = run.state, run.world
        self._run, self._asked = run, asked
        self._count = count = prior.microbatches_per_step
        # If work can be balanced between processes, all read every microbatch, to know its cost.
        self._balanced = 1 < world.size < count
        self._needed = needed = range(count) if self._balanced else world.mine(count)

        def addresses_here(step: int) -> list:
            addresses = addresses_of_step(prior, train, step)
            return [addresses[index] for index in needed]

        self._batches = read_ahead(
            reader,
            [address for step in range(state.step, stop) for address in addresses_here(step)],
            train.loader_threads,
            ahead=max(4, len(needed)) if self._balanced else 4,
            is_there=lambda address: not (train.follow and reader.awaited_parts(address)),
            processes=train.loader_processes,
            open_again=open_again,
        )
        self._follower = Follower(reader, world, asked, train.follow_timeout, run.say)
        # One row for each microbatch: its gradient, its loss, and a flag: 0 to continue, 1 if this
        # process was asked to stop, 2 if it interrupted the step. All processes act on the largest.
        rounds = math.ceil(count / world.size)
        self._rows = torch.zeros(rounds, state.gradient.numel() + 2, device=world.device)
        self._recorded = RecordedGradients(state, train) if train.cuda_graphs else None

    def of_step(self, step: int) -> tuple[Tensor, Tensor] | None:
        """The step's mean gradient and loss [n_parameters + 1], loss last, and the largest flag.

        None to stop before this step.
        """
        world, prior, train = self._run.world, self._run.config.prior, self._run.config.train
        if train.follow:
            with self._run.waiting():
                are_there = self._follower.wait(addresses_of_step(prior, train, step))
            if not are_there:
                return None
        here = [self._following() for _ in self._needed] if self._balanced else []
        costs = [cost(*batch.x.shape) for batch in here] or [0.0] * self._count
        shared = shares(costs, world.size)
        broken_off = self._compute(step, shared[world.rank], here)
        self._rows[:, -1] = 2.0 if broken_off else float(self._asked())
        everyone = world.gather(self._rows, len(self._rows) * world.size)
        flag = everyone[:, -1].amax()
        if self._asked.breaks_off and flag > 1:
            return None
        return mean_in_order(everyone[:, :-1], shared), flag

    def _compute(self, step: int, mine: Sequence[int], here: Sequence[Batch]) -> bool:
        """Fill a row for each microbatch of `mine`; True if a signal interrupted this.

        here: the microbatches of the step, if all were read; otherwise, the next ones are mine.
        """
        state, config = self._run.state, self._run.config
        share = revealed_share(config.prior, config.train, step)
        for row, index in enumerate(mine):
            if self._asked.at_once():
                return True
            batch = here[index] if here else self._following()
            if self._recorded and state.gradient.is_cuda:
                self._rows[row, :-1] = self._recorded(batch)
            else:  # a CPU has no graphs: compute the same rows, a few tasks at a time
                rows_left = cut_rows(batch) if self._recorded else batch
                self._rows[row, :-1] = microbatch_gradient(state, rows_left, config.train, share)
        return False

    def _following(self) -> Batch:
        with self._run.waiting():
            batch = next(self._batches)
        return rounded(batch, self._run.config.train.round_rows)


def mean_in_order(rows: Tensor, shared: Sequence[Sequence[int]]) -> Tensor:
    """Mean of the microbatches' rows [rounds * processes, n], gathered round by round.

    shared: for each process, the microbatches that it computed. Summed in the order of the
    microbatches, so that the bits do not depend on which process computed them, or on how many.
    """
    places = {
        index: row * len(shared) + rank
        for rank, some in enumerate(shared)
        for row, index in enumerate(some)
    }
    total = rows[places[0]].clone()
    for index in range(1, len(places)):
        total += rows[places[index]]
    total /= len(places)
    return total
