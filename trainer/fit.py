"""The training loop: setup, then one step after the other, each the same on every process."""

import math
import signal
import time
from pathlib import Path

import torch
from torch.utils.tensorboard import SummaryWriter

from puicl_config import Config, InputError, ProgressReport, plan_digest, run_digest
from puicl_model import save_model, weights_digest
from shard_io import ShardReader, open_shards
from trainer.checkpoint import (
    CheckpointState,
    Lineage,
    load_checkpoint,
    save_checkpoint,
    thin_checkpoints,
)
from trainer.data import DataChain, check_plan, last_trainable_step
from trainer.environment import describe_environment, record_environment
from trainer.gradient import microbatch_gradient
from trainer.ledger import Ledger
from trainer.loader import read_ahead
from trainer.reveal import revealed_share
from trainer.run_folder import check_same_run, lock_run, newest_checkpoint, write_config
from trainer.sampler import addresses_of_step
from trainer.schedule import learning_rate
from trainer.state import TrainState
from trainer.world import World


def fit(config: Config, shards: str | Path, out: Path, world: World, generate: str) -> None:
    """Train the whole plan, or go on where the newest checkpoint of `out` stands.

    `config.train.device` and `precision` must be resolved (no "auto"). `generate` is the
    `prior-gen` command that makes this plan's shards, without stages and folder.

    Raises `InputError` where shards, folder and config do not belong together.
    """
    prior, train = config.prior, config.train
    reader = open_shards(shards)
    check_plan(config, reader)
    lock = lock_run(out) if world.is_first else None
    check_same_run(out, config)

    state = TrainState(config, world.device)
    chain = DataChain(config, reader)
    checkpoint = newest_checkpoint(out)
    if checkpoint:
        _resume(state, chain, *checkpoint, config, shards)
        lineage = checkpoint[0].lineage
    else:
        lineage = _begin(state, train.init_from)
    goal = min(prior.total_steps, prior.total_steps if train.max_steps is None else train.max_steps)
    stop = last_trainable_step(config, reader, state.step, goal, generate)

    run = Run(config, out, state, chain, world, lineage)
    if stop < goal:
        run.say(
            f"{shards} lacks the tail: training up to step {stop} of {goal}, the end of phase 1"
        )
    run.say(f"training {config.name} from step {state.step} to {stop} on {world.size} processes")
    _steps(run, reader, stop)
    if state.step == prior.curriculum_steps < goal and stop < goal:
        run.say(
            f"phase 1 is done; for the tail run `{generate} --tail --out {shards}`"
            " and start the trainer again"
        )
    run.close()
    if lock:
        lock.close()


def _steps(run: "Run", reader: ShardReader, stop: int) -> None:
    """Steps up to `stop`, or until SIGTERM, SIGINT or `max_seconds`; every process agrees when."""
    config, state, world = run.config, run.state, run.world
    prior, train = config.prior, config.train
    count = prior.microbatches_per_step
    rounds = math.ceil(count / world.size)
    batches = read_ahead(
        reader,
        [
            addresses_of_step(prior, train, step)[index]
            for step in range(state.step, stop)
            for index in world.mine(count)
        ],
        train.loader_threads,
    )
    asked = StopRequest(train.max_seconds)
    # One row a microbatch: its gradient, its loss, and whether this process was asked to stop.
    rows = torch.zeros(rounds, state.gradient.numel() + 2, device=world.device)
    while state.step < stop:
        step = state.step
        share = revealed_share(prior, train, step)
        for row, _ in enumerate(world.mine(count)):
            rows[row, :-1] = microbatch_gradient(state, next(batches), train, share)
        rows[:, -1] = float(asked())
        everyone = world.gather(rows, rounds * world.size)
        microbatches = everyone[:count]
        # Summed in the order of the microbatches, whoever computed them: the same bits for any
        # number of processes.
        total = microbatches[0, :-1].clone()
        for microbatch in microbatches[1:]:
            total += microbatch[:-1]
        total /= count
        loss = total[-1].item()
        rate = learning_rate(prior, train, step)
        norm = state.update(total[:-1], rate)
        if not math.isfinite(loss) or not math.isfinite(norm):
            raise InputError(
                f"loss {loss} and gradient norm {norm} at step {step}, microbatches "
                f"{addresses_of_step(prior, train, step)}: lower the learning rate; the last "
                "checkpoint is kept"
            )
        run.after_step(step, loss, norm, rate)
        if everyone[:, -1].any() and state.step < stop:
            run.say(f"asked to stop at step {state.step}; the same command goes on from there")
            break
    run.checkpoint()


class Run:
    """A run's folder and voice: ledger, checkpoints, TensorBoard. Only the first process acts."""

    def __init__(
        self,
        config: Config,
        out: Path,
        state: TrainState,
        chain: DataChain,
        world: World,
        lineage: Lineage,
    ):
        self.lineage = lineage
        self.config, self.out, self.state = config, out, state
        self.chain, self.world = chain, world
        self._saved = state.step if state.step else -1
        self._losses: list[float] = []
        if not world.is_first:
            return
        environment = describe_environment(world, config.train.threads_per_process)
        for difference in record_environment(out / "environment.json", environment, state.step):
            self.say(f"note: environment differs from this run's last stretch: {difference}")
        self._commit = environment["git_commit"]
        write_config(out, config)
        thin_checkpoints(out / "checkpoints", config.train.keep_checkpoints)
        self._ledger = Ledger(out / "ledger.jsonl", state.step)
        self._board = SummaryWriter(out / "tensorboard", purge_step=state.step)
        self._progress = ProgressReport(
            "trainer", config.prior.total_steps, "steps", done=state.step
        )

    def say(self, sentence: str) -> None:
        """Print once, whatever the number of processes."""
        if self.world.is_first:
            print(f"trainer: {sentence}", flush=True)

    def after_step(self, step: int, loss: float, norm: float, rate: float) -> None:
        """Record update `step`; checkpoint where one is due."""
        train, state = self.config.train, self.state
        data = self.chain.consume(step)
        if self.world.is_first:
            due = state.step % train.digest_every == 0
            weights = weights_digest(state.parameters) if due else None
            addresses = addresses_of_step(self.config.prior, train, step)
            self._ledger.write(step, loss, norm, rate, addresses, data, weights)
            self._losses.append(loss)
            self._progress.advance(1, f"stage {addresses[0][0]}, loss {loss:.4f}")
            if state.step % train.log_every == 0:
                mean = sum(self._losses) / len(self._losses)
                self._losses.clear()
                for name, value in (
                    ("loss", mean),
                    ("gradient_norm", norm),
                    ("learning_rate", rate),
                    ("steps_per_second", self._progress.rate),
                ):
                    self._board.add_scalar(name, value, state.step)
        if state.step % train.checkpoint_every == 0:
            self.checkpoint()

    def checkpoint(self) -> None:
        """Save the state as it is, unless this step is saved already."""
        if not self.world.is_first or self._saved == self.state.step:
            return
        self._ledger.sync()
        folder = self.out / "checkpoints"
        about = CheckpointState(
            step=self.state.step,
            run_digest=run_digest(self.config, self.lineage.parent),
            plan_digest=plan_digest(self.config.prior),
            data=self.chain.value,
            lineage=self.lineage,
        )
        save_checkpoint(folder, about, self.state.tensors())
        thin_checkpoints(folder, self.config.train.keep_checkpoints)
        self._saved = self.state.step

    def close(self) -> None:
        """Write the EMA as `model.safetensors` with its card, and close what is open."""
        if not self.world.is_first:
            return
        path = self.out / "model.safetensors"
        config, state = self.config, self.state
        card = {
            "name": config.name,
            "model": config.model.model_dump(mode="json"),
            "steps": state.step,
            "of_steps": config.prior.total_steps,
            "run_digest": run_digest(config, self.lineage.parent),
            "lineage": list(self.lineage.ancestors),
            "plan_digest": plan_digest(config.prior),
            "data": self.chain.value,
            "git_commit": self._commit,
        }
        save_model(path, state.ema, card)
        self._ledger.close()
        self._board.close()
        self._progress.__exit__()
        self.say(f"step {state.step} of {config.prior.total_steps}: the EMA's weights are {path}")


class StopRequest:
    """Whether SIGTERM or SIGINT came, or the time is up."""

    def __init__(self, max_seconds: float | None):
        self._deadline = time.monotonic() + max_seconds if max_seconds else math.inf
        self._signalled = False
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._note)

    def __call__(self) -> bool:
        """True once this process should stop at the end of the step."""
        return self._signalled or time.monotonic() > self._deadline

    def _note(self, *_) -> None:
        self._signalled = True


def _begin(state: TrainState, init_from: str | None) -> Lineage:
    """Begin a run: from its seed, or from another run's checkpoint, which is recorded."""
    if init_from is None:
        return Lineage()
    about, tensors = load_checkpoint(Path(init_from))
    state.begin_from(tensors, about.step)
    ancestor = {
        "run_digest": about.run_digest,
        "plan_digest": about.plan_digest,
        "data": about.data,
        "step": about.step,
        "tensors_digest": about.tensors_digest,
    }
    return Lineage((*about.lineage.ancestors, ancestor))


def _resume(
    state: TrainState,
    chain: DataChain,
    about: CheckpointState,
    tensors: dict[str, torch.Tensor],
    config: Config,
    shards: str | Path,
) -> None:
    """Restore a checkpoint after checking that run, plan and data consumed are the same."""
    ours = run_digest(config, about.lineage.parent)
    if about.plan_digest != plan_digest(config.prior) or about.run_digest != ours:
        raise InputError(
            "the checkpoint belongs to another run: its run or plan digest differs from the "
            "config's; give another --out"
        )
    for step in range(about.step):
        chain.consume(step)
    if chain.value != about.data:
        raise InputError(
            f"the parts that {shards} holds for steps 0-{about.step - 1} are not those the "
            "checkpoint was trained on: their content digests differ"
        )
    state.restore(tensors, about.step)
