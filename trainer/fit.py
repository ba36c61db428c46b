"""The training loop: setup, then the steps, each with the same result on every process."""

import functools
import math
import time
from collections.abc import Callable
from pathlib import Path

import torch

from puicl_config import Config, InputError, idle_in_prior, idle_in_run, run_digest
from puicl_model import weights_digest
from puicl_model.precision import computed_in
from shard_io import ShardReader, as_ranges
from trainer.agreement import check_same_start, short
from trainer.begin import begin_or_resume
from trainer.data import (
    DataChain,
    check_plan,
    describe_reuse,
    how_to_make,
    identity,
    last_trainable_step,
    open_for,
)
from trainer.environment import check_same_environment, describe_environment
from trainer.follow import Follower, await_manifest
from trainer.gradient import microbatch_gradient
from trainer.graphs import RecordedGradients, cut_rows
from trainer.heldout import HeldoutSet
from trainer.loader import Batch, read_ahead, rounded
from trainer.reveal import revealed_share
from trainer.run import Run, say
from trainer.run_folder import begun_or_removed, check_same_run, lock_run
from trainer.sampler import addresses_of_step
from trainer.schedule import learning_rate
from trainer.shares import cost, shares
from trainer.state import TrainState
from trainer.stop import StopRequest
from trainer.world import World


def fit(config: Config, shards: str | Path, out: Path, world: World) -> None:
    """Train the whole plan, or resume from the newest checkpoint in `out`.

    `config.train.device` and `precision` must be resolved (no "auto").

    Raises `InputError` if shards, run folder and config do not belong together, if the processes
    differ, or if a loss, gradient or weight is not finite.
    """
    # Not on a GPU: its steps are short, and reading the flags before the update would stall it.
    on_cpu = world.device.type == "cpu"
    with StopRequest(config.train.max_seconds, breaks_off=on_cpu) as asked:
        _fit(config, shards, out, world, asked)


def _fit(config: Config, shards: str | Path, out: Path, world: World, asked: StopRequest) -> None:
    prior, train = config.prior, config.train
    tell = functools.partial(say, world)
    if train.follow and not await_manifest(shards, world, asked, train.follow_timeout, tell):
        tell(f"asked to stop before {shards} was begun; the same command begins again")
        return
    reader = open_for(config, shards)
    check_plan(config, reader)
    heldout = HeldoutSet(config, world) if train.heldout else None
    made = world.is_first and not out.exists()
    lock = lock_run(out, tell) if world.is_first else None
    with begun_or_removed(out, made):
        check_same_run(out, config)
        state = TrainState(config, world.device)
        chain = DataChain(config, reader)
        lineage = begin_or_resume(config, out, state, chain, world, tell)
        for idle in (*idle_in_prior(prior), *idle_in_run(config)):
            tell(f"note: {idle}")
        wanted = prior.total_steps if train.max_steps is None else train.max_steps
        goal = min(prior.total_steps, wanted)
        stop = last_trainable_step(config, reader, state.step, goal)
        if world.size > 1:
            environment = describe_environment(world, train.threads_per_process)
            check_same_environment(world, environment, tell)
            check_same_start(
                world,
                {
                    "step": state.step,
                    "last step": stop,
                    "config": short(run_digest(config, lineage.parent)),
                    "weights": short(weights_digest(state.tensors())),
                    "held-out set": short(heldout.digest) if heldout else "none",
                    "data read so far": short(chain.value),
                    **identity(config, reader, state.step, stop),
                },
            )
    if goal < state.step:
        tell(f"the run stands at step {state.step} already, beyond train.max_steps={goal}")
        stop = goal = state.step
    run = Run(config, out, state, chain, world, lineage, heldout, asked, stop)
    if stop < goal:
        tell(f"{shards} lacks the tail: training up to step {stop} of {goal}, the end of phase 1")
    if reuse := None if train.follow else describe_reuse(config, reader, stop):
        tell(reuse)
    if world.device.type == "cuda" and not train.deterministic:
        tell("train.deterministic is false: fast algorithms, whose bits differ from run to run")
    if computed_in(train.precision, world.device) != train.precision:
        tell(
            "this processor multiplies bfloat16 more slowly than float32: the blocks are computed "
            "in float32"
        )
    processes = "1 process" if world.size == 1 else f"{world.size} processes"
    tell(f"training {config.name} from step {state.step} to {stop} on {processes}")
    run.evaluate_if_missed()
    _steps(run, reader, functools.partial(open_for, config, shards), stop, asked)
    if state.step == stop:
        run.evaluate()
    if state.step == prior.curriculum_steps < goal and stop < goal:
        tail = range(prior.stages + 1, prior.total_stages + 1)
        tell(
            f"phase 1 is done, and the tail, stages {as_ranges(tail)}, is not there: "
            f"{how_to_make(reader, tail)}, and start the trainer again"
        )
    run.close()
    if lock:
        lock.close()


def _steps(
    run: Run,
    reader: ShardReader,
    open_again: Callable[[], ShardReader],
    stop: int,
    asked: StopRequest,
) -> None:
    """Run steps up to `stop`, or until a signal or `max_seconds`; all processes stop together.

    On a CPU, a signal interrupts the step, which leaves no trace and is repeated on resuming. If a
    shard cannot be read or another process is lost, the steps so far are saved first.
    """
    config, state, world = run.config, run.state, run.world
    prior, train = config.prior, config.train
    count = prior.microbatches_per_step
    rounds = math.ceil(count / world.size)
    # If work can be balanced between processes, all read every microbatch, to know its cost.
    chosen = 1 < world.size < count
    needed = range(count) if chosen else world.mine(count)

    def addresses_here(step: int) -> list:
        addresses = addresses_of_step(prior, train, step)
        return [addresses[index] for index in needed]

    batches = read_ahead(
        reader,
        [address for step in range(state.step, stop) for address in addresses_here(step)],
        train.loader_threads,
        ahead=max(4, len(needed)) if chosen else 4,
        is_there=lambda address: not (train.follow and reader.awaited_parts(address)),
        processes=train.loader_processes,
        open_again=open_again,
    )

    def following() -> Batch:
        began = time.monotonic()
        batch = next(batches)
        run.waited += time.monotonic() - began
        return rounded(batch, train.round_rows)

    follower = Follower(reader, world, asked, train.follow_timeout, run.say)
    # One row for each microbatch: its gradient, its loss, and a flag: 0 to continue, 1 if this
    # process was asked to stop, 2 if it interrupted the step. All processes act on the largest.
    rows = torch.zeros(rounds, state.gradient.numel() + 2, device=world.device)
    recorded = RecordedGradients(state, train) if train.cuda_graphs else None

    def computed(step: int) -> tuple[torch.Tensor, list[list[int]]] | None:
        """All processes' rows and the shares of microbatches; None to stop before this step."""
        if train.follow:
            began = time.monotonic()
            are_there = follower.wait(addresses_of_step(prior, train, step))
            run.waited += time.monotonic() - began
            if not are_there:
                return None
        share = revealed_share(prior, train, step)
        here = [following() for _ in needed] if chosen else []
        shared = shares([cost(*batch.x.shape) for batch in here] or [0.0] * count, world.size)
        broken_off = False
        for row, index in enumerate(shared[world.rank]):
            if broken_off := asked.at_once():
                break
            batch = here[index] if chosen else following()
            if recorded and world.device.type == "cuda":
                rows[row, :-1] = recorded(batch)
            else:  # a CPU has no graphs: compute the same rows, a few tasks at a time
                rows_left = cut_rows(batch) if recorded else batch
                rows[row, :-1] = microbatch_gradient(state, rows_left, train, share)
        rows[:, -1] = 2.0 if broken_off else float(asked())
        everyone = world.gather(rows, rounds * world.size)
        return None if asked.breaks_off and everyone[:, -1].amax() > 1 else (everyone, shared)

    stopped = False
    while state.step < stop and not stopped:
        step = state.step
        with run.saved_first():
            found = computed(step)
        if found is None:
            stopped = True
            break
        everyone, shared = found
        places = {
            index: row * world.size + rank
            for rank, some in enumerate(shared)
            for row, index in enumerate(some)
        }
        # Sum in the order of the microbatches, whichever process computed them, so that the bits
        # do not depend on the number of processes.
        total = everyone[places[0], :-1].clone()
        for index in range(1, count):
            total += everyone[places[index], :-1]
        total /= count
        rate = learning_rate(prior, train, step)
        norm = state.update(total[:-1], rate)
        # The only place of a step where the host waits for the device.
        loss, norm, asks = torch.stack([total[-1], norm, everyone[:, -1].amax()]).tolist()
        if not math.isfinite(loss) or not math.isfinite(norm):
            raise InputError(
                f"loss {loss} and gradient norm {norm} at step {step}, microbatches "
                f"{addresses_of_step(prior, train, step)}: "
                + ("lower the learning rate; " if step else "before any update; ")
                + run.kept
            )
        run.after_step(step, loss, norm, rate)
        stopped = asks > 0 and state.step < stop
    run.checkpoint()
    if stopped:
        run.say(
            f"asked to stop at step {state.step}, which is saved; the same command goes on from "
            "there"
        )
