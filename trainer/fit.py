"""The training loop: setup, then the steps, each with the same result on every process."""

import functools
import math
from pathlib import Path

import torch

from puicl_config import Config, InputError, idle_in_prior, idle_in_run, run_digest
from puicl_model import weights_digest
from puicl_model.precision import computed_in
from shard_io import as_ranges
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
from trainer.follow import await_manifest
from trainer.heldout import HeldoutSet
from trainer.run import Run, say
from trainer.run_folder import begun_or_removed, check_same_run, lock_run
from trainer.sampler import addresses_of_step
from trainer.schedule import learning_rate
from trainer.state import TrainState
from trainer.step import StepGradients
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
    open_again = functools.partial(open_for, config, shards)
    _steps(run, StepGradients(run, reader, open_again, stop, asked), stop)
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


def _steps(run: Run, gradients: StepGradients, stop: int) -> None:
    """Run steps up to `stop`, or until a signal or `max_seconds`; all processes stop together.

    On a CPU, a signal interrupts the step, which leaves no trace and is repeated on resuming. If a
    shard cannot be read or another process is lost, the steps so far are saved first.
    """
    prior, train, state = run.config.prior, run.config.train, run.state
    stopped = False
    while state.step < stop and not stopped:
        step = state.step
        with run.saved_first():
            found = gradients.of_step(step)
        if found is None:
            stopped = True
            break
        mean, flag = found
        rate = learning_rate(prior, train, step)
        norm = state.update(mean[:-1], rate)
        # The only place of a step where the host waits for the device.
        loss, norm, asks = torch.stack([mean[-1], norm, flag]).tolist()
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
