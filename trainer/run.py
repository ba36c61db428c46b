"""A run in progress: when it saves and evaluates, and which files describe it."""

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

import torch

from puicl_config import Config, InputError, plan_digest, run_digest
from puicl_config.speaking import speak
from puicl_model import save_model
from trainer.checkpoint import CheckpointState, Lineage, save_checkpoint, thin_checkpoints
from trainer.data import DataChain
from trainer.environment import describe_environment, record_environment
from trainer.heldout import HeldoutSet
from trainer.run_folder import WRITER, write_config
from trainer.run_log import RunLog
from trainer.state import TrainState
from trainer.stop import StopRequest
from trainer.world import World


class Run:
    """What happens to a run between its steps: logs, checkpoints, evaluations.

    Only the first process writes and prints; all processes share the held-out evaluation.
    """

    def __init__(
        self,
        config: Config,
        out: Path,
        state: TrainState,
        chain: DataChain,
        world: World,
        lineage: Lineage,
        heldout: HeldoutSet | None,
        asked: StopRequest,
        stop: int,
    ):
        """stop: the step at which this start ends, the total of its progress report."""
        self.lineage = lineage
        self.config, self.out, self.state = config, out, state
        self.chain, self.world = chain, world
        self._saved = state.step if state.step else -1
        self._heldout, self._asked = heldout, asked
        self._evaluated = -1
        self._log: RunLog | None = None
        if world.is_first:
            self._commit = self._describe()
            heldout_set = heldout.digest[:16] if heldout else None
            self._log = RunLog(config, out, state, chain, heldout_set, stop, self.say)

    def _describe(self) -> str | None:
        """Write environment and config of this start; returns the code's commit."""
        config, out, world, chain = self.config, self.out, self.world, self.chain
        environment = describe_environment(world, config.train.threads_per_process)
        recorded = out / "environment.json"
        for difference in record_environment(recorded, environment, self.state.step):
            self.say(f"note: environment differs from this run's last stretch: {difference}")
        # Before the larger files below, since old checkpoints may be what fills the disk.
        thin_checkpoints(out / "checkpoints", config.train.keep_checkpoints)
        # Record `shards` as the folder stores them: the config's section is for `prior-gen`.
        write_config(out, config.model_copy(update={"shards": chain.storage}))
        wanted, there = config.shards.x_dtype, chain.storage.x_dtype
        if wanted != there:  # the only `shards` setting that changes the training data
            self.say(
                f"note: {chain.folder} holds x as {there}, and is read as such: shards.x_dtype="
                f"{wanted} would only apply to a folder that prior-gen makes anew"
            )
        return environment["git_commit"]

    def say(self, sentence: str) -> None:
        """Print once, whatever the number of processes."""
        say(self.world, sentence)

    def after_step(self, step: int, loss: float, norm: float, rate: float) -> None:
        """Record update `step`; checkpoint and evaluate where due."""
        train, state = self.config.train, self.state
        data = self.chain.consume(step)
        if self._log:
            self._log.after_step(step, loss, norm, rate, data)
        # Checkpoint first: evaluation takes long, and a run killed in it catches up on resuming.
        if state.step % train.checkpoint_every == 0:
            self.checkpoint()
        if state.step % train.heldout_every == 0:
            with self.saved_first():  # allowed here, as the step's record is complete
                self.evaluate()

    def evaluate_if_missed(self) -> None:
        """Evaluate if a resumed run missed it at its last step, or did it on other tasks."""
        step = self.state.step
        if self._heldout is None or step == 0 or step % self.config.train.heldout_every:
            return
        missed = self._log is not None and not self._log.has_heldout()
        told = torch.tensor([[float(missed)]], device=self.world.device)
        if self.world.gather(told, self.world.size).amax() > 0:
            self.evaluate()

    def evaluate(self) -> None:
        """Evaluate the EMA on the held-out tasks and record it, unless done for this step already.

        If a signal interrupts the evaluation, nothing is recorded.
        """
        state = self.state
        if self._heldout is None or self._evaluated == state.step:
            return
        with self._log.evaluating() if self._log else nullcontext():
            figures = self._heldout.evaluate(state.ema, self._asked.at_once)
        if figures is None:
            return
        self._evaluated = state.step
        if self._log:
            self._log.heldout(figures)

    def waiting(self) -> AbstractContextManager[None]:
        """Count the block's time as waited for data."""
        return self._log.waiting() if self._log else nullcontext()

    @contextmanager
    def saved_first(self) -> Iterator[None]:
        """Save a checkpoint if the block fails on an unreadable shard or a lost process.

        Use it only between steps: while a step is being recorded, a checkpoint would be ahead of
        the record.
        """
        try:
            yield
        except (InputError, OSError):
            self.checkpoint()
            raise

    def checkpoint(self) -> None:
        """Save the current state, unless this step is saved already.

        Raises `InputError`, on every process, if the state is not finite.
        """
        self._check_finite()
        if self._saved == self.state.step:
            return
        if self._log:
            self._save(self._log)
        self._saved = self.state.step

    def _save(self, log: RunLog) -> None:
        log.make_durable()
        folder = self.out / "checkpoints"
        about = CheckpointState(
            step=self.state.step,
            run_digest=run_digest(self.config, self.lineage.parent),
            plan_digest=plan_digest(self.config.prior),
            data=self.chain.value,
            lineage=self.lineage,
            where=self.chain.where,
        )
        save_checkpoint(folder, about, self.state.tensors())
        thin_checkpoints(folder, self.config.train.keep_checkpoints)
        log.saved()

    def _check_finite(self) -> None:
        """Raise `InputError` if the state is not finite.

        An update can overflow although its loss and gradient are finite.
        """
        for name, tensor in self.state.tensors().items():
            if not tensor.isfinite().all():
                raise InputError(
                    f"{name} is not finite after step {self.state.step - 1}: lower the learning "
                    f"rate; {self.kept}"
                )

    @property
    def kept(self) -> str:
        """Which checkpoint is left to continue from, phrased as the end of a sentence."""
        if self._saved < 0:
            return f"no checkpoint was written yet, so remove {self.out} or give another --out"
        return (
            f"the checkpoint of step {self._saved} is kept, where a run with other settings may "
            "begin (train.init_from)"
        )

    def close(self) -> None:
        """Write the EMA as `model.safetensors` with its card, print a summary, close all files."""
        if not self._log:
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
            **({"where": self.chain.where} if self.chain.where else {}),
            "data": self.chain.value,
            "reuse": round(self.chain.reuse, 6),
            "git_commit": self._commit,
        }
        save_model(path, state.ema, card, WRITER)
        self._log.close()
        self.say(f"step {state.step} of {config.prior.total_steps}: the EMA's weights are {path}")


def say(world: World, sentence: str) -> None:
    """Print once, whatever the number of processes."""
    if world.is_first:
        speak(f"trainer: {sentence}", sys.stdout)
