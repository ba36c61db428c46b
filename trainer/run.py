"""Everything a run writes and prints: ledger, checkpoints, metrics and the summary table."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table
from torch.utils.tensorboard import SummaryWriter

from puicl_config import (
    Config,
    InputError,
    ProgressReport,
    duration,
    plan_digest,
    run_digest,
)
from puicl_config.speaking import heard_or_not, speak
from puicl_model import save_model, weights_digest
from trainer.checkpoint import CheckpointState, Lineage, save_checkpoint, thin_checkpoints
from trainer.data import DataChain
from trainer.environment import describe_environment, record_environment
from trainer.heldout import HeldoutFigures, HeldoutSet
from trainer.ledger import Ledger, read_ledger
from trainer.metrics import Metrics
from trainer.run_folder import WRITER, write_config
from trainer.sampler import addresses_of_step
from trainer.state import TrainState
from trainer.stop import StopRequest
from trainer.world import World


class Run:
    """Writer of a run's files and messages.

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
        self._waited = 0.0  # seconds for data since this start
        self._saved = state.step if state.step else -1
        self._losses: list[float] = []
        self._heldout, self._asked = heldout, asked
        self._figures: HeldoutFigures | None = None
        self._evaluated = -1
        if not world.is_first:
            return
        environment = describe_environment(world, config.train.threads_per_process)
        for difference in record_environment(out / "environment.json", environment, state.step):
            self.say(f"note: environment differs from this run's last stretch: {difference}")
        self._commit = environment["git_commit"]
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
        self._ledger = Ledger(out / "ledger.jsonl", state.step)
        if self._ledger.lacks:
            self.say(
                f"note: ledger.jsonl lacks {self._ledger.lacks} of the {state.step} steps before "
                "this start: the weights are the same, the record is not whole"
            )
        self._metrics = Metrics(out / "metrics.jsonl", state.step)
        if self._metrics.damage:
            self.say(
                f"note: {self._metrics.damage}; it and the figures after it are cut off, and no "
                "step depends on them"
            )
        before = self._metrics.heldout_set
        if heldout and before not in (None, heldout.digest[:16]):
            self.say(
                f"note: the held-out tasks are not those used up to step {state.step} "
                "(train.heldout has grown, or is another folder, or train.heldout_microbatches is "
                "another number): held-out figures before and after do not compare"
            )
        self._logged = state.step, self._metrics.seconds
        # Hide what a killed run logged after its checkpoint; entries of that step itself stay.
        self._board = SummaryWriter(out / "tensorboard", purge_step=state.step + 1)
        self._progress = ProgressReport("trainer", stop, "steps", done=state.step)

    def say(self, sentence: str) -> None:
        """Print once, whatever the number of processes."""
        say(self.world, sentence)

    def after_step(self, step: int, loss: float, norm: float, rate: float) -> None:
        """Record update `step`; checkpoint and evaluate where due."""
        train, state = self.config.train, self.state
        data = self.chain.consume(step)
        if self.world.is_first:
            last = state.step == self.config.prior.total_steps
            due = last or state.step % train.digest_every == 0
            weights = weights_digest(state.parameters) if due else None
            addresses = addresses_of_step(self.config.prior, train, step)
            self._ledger.write(step, loss, norm, rate, addresses, data, weights)
            self._losses.append(loss)
            self._progress.advance(1, f"stage {addresses[0][0]}, loss {loss:.4f}")
            if state.step % train.log_every == 0:
                self._log(norm, rate)
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
        missed = self.world.is_first and not self._is_recorded(step)
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
        first = self.world.is_first
        with self._metrics.paused() if first else nullcontext():
            figures = self._heldout.evaluate(state.ema, self._asked.at_once)
        if figures is None:
            return
        self._evaluated, self._figures = state.step, figures
        if not first:
            return
        if self._is_recorded(state.step):
            return  # a finished run, started again
        named = {"loss": figures.loss, "accuracy": figures.accuracy, "auc": figures.auc}
        for name, value in named.items():
            self._board.add_scalar(f"heldout/{name}", value, state.step)
        self._board.flush()  # before metrics.jsonl says that this was done
        self._metrics.write(
            state.step,
            **{f"heldout_{name}": value for name, value in named.items()},
            heldout_set=self._heldout.digest[:16],
        )

    def _is_recorded(self, step: int) -> bool:
        """Whether the last held-out figures in metrics.jsonl are of `step` and of these tasks."""
        assert self._heldout is not None, "asked where there are held-out tasks"
        return self._metrics.has_figures(step, self._heldout.digest[:16])

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Count the block's time as waited for data."""
        began = time.monotonic()
        yield
        self._waited += time.monotonic() - began

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
        if self.world.is_first:
            self._save()
        self._saved = self.state.step

    def _save(self) -> None:
        self._ledger.sync()
        self._board.flush()  # if the run is killed later, nothing writes these events again
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
        self._metrics.write(self.state.step)  # a resumed run's clock goes on from here

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
            **({"where": self.chain.where} if self.chain.where else {}),
            "data": self.chain.value,
            "reuse": round(self.chain.reuse, 6),
            "git_commit": self._commit,
        }
        save_model(path, state.ema, card, WRITER)
        self._ledger.close()
        self._board.close()
        self._progress.__exit__()
        self._sum_up()
        self._metrics.close()
        self.say(f"step {state.step} of {config.prior.total_steps}: the EMA's weights are {path}")

    def _log(self, norm: float, rate: float) -> None:
        mean = sum(self._losses) / len(self._losses)
        self._losses.clear()
        (step, since), seconds = self._logged, self._metrics.seconds
        self._logged = self.state.step, seconds
        figures = {
            "loss": mean,
            "gradient_norm": norm,
            "learning_rate": rate,
            "steps_per_second": (self.state.step - step) / max(seconds - since, 1e-9),
            "data_wait_seconds": self._waited,
        }
        for name, value in figures.items():
            self._board.add_scalar(name, value, self.state.step)
        self._metrics.write(self.state.step, **figures)

    def _sum_up(self) -> None:
        losses = [float.fromhex(line["loss"]) for line in read_ledger(self.out / "ledger.jsonl")]
        some = min(self.config.train.log_every, (len(losses) + 1) // 2)
        here, waited = self._progress.seconds, self._waited
        rows = {
            "steps": f"{self.state.step:,} of {self.config.prior.total_steps:,}",
            "time": f"{duration(self._metrics.seconds)} of training, {duration(here)} since this "
            "start",
            "waited for data": f"{waited:.1f} s since this start ({waited / max(here, 1e-9):.1%})",
        }
        if some:
            first, last = (sum(part) / some for part in (losses[:some], losses[-some:]))
            rows["loss"] = f"{first:.4f} in the first {some} steps, {last:.4f} in the last"
        if self._figures:
            figures = self._figures
            rows["held-out"] = (
                f"AUC {figures.auc:.4f}, accuracy {figures.accuracy:.4f}, loss {figures.loss:.4f} "
                f"at step {self._evaluated:,}"
            )
        reuse = self.chain.reuse
        rows["each microbatch read"] = "once" if reuse == 1 else f"{reuse:.3g} times on average"
        rows["weights (EMA)"] = weights_digest(self.state.ema)
        table = Table(title=f"run {self.config.name}", show_header=False)
        for name, value in rows.items():
            table.add_row(name, value)
        with heard_or_not(sys.stdout):
            Console(width=100).print(table)


def say(world: World, sentence: str) -> None:
    """Print once, whatever the number of processes."""
    if world.is_first:
        speak(f"trainer: {sentence}", sys.stdout)
