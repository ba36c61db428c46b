"""What a run logs: ledger, metrics, TensorBoard, progress and the summary at its end."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from rich.console import Console
from rich.table import Table
from torch.utils.tensorboard import SummaryWriter

from puicl_config import Config, ProgressReport, duration
from puicl_config.speaking import heard_or_not
from puicl_model import weights_digest
from trainer.data import DataChain
from trainer.heldout import HeldoutFigures
from trainer.ledger import Ledger, read_ledger
from trainer.metrics import Metrics
from trainer.sampler import addresses_of_step
from trainer.state import TrainState


class RunLog:
    """Logs of a run, which continue from the checkpoint that it resumed from.

    Only the first process has one.
    """

    def __init__(
        self,
        config: Config,
        out: Path,
        state: TrainState,
        chain: DataChain,
        heldout_set: str | None,
        stop: int,
        tell: Callable[[str], None],
    ):
        """Open all files in the folder `out`; tell what of earlier logs is lost.

        heldout_set: first digits of the held-out set's digest; stop: the step at which this start
        ends, the total of its progress report.
        """
        self._config, self._out, self._state, self._chain = config, out, state, chain
        self._heldout_set = heldout_set
        self._waited = 0.0  # seconds for data since this start
        self._losses: list[float] = []
        self._figures: tuple[int, HeldoutFigures] | None = None
        self._ledger = Ledger(out / "ledger.jsonl", state.step)
        if self._ledger.lacks:
            tell(
                f"note: ledger.jsonl lacks {self._ledger.lacks} of the {state.step} steps before "
                "this start: the weights are the same, the record is not whole"
            )
        self._metrics = Metrics(out / "metrics.jsonl", state.step)
        if self._metrics.damage:
            tell(
                f"note: {self._metrics.damage}; it and the figures after it are cut off, and no "
                "step depends on them"
            )
        before = self._metrics.heldout_set
        if heldout_set and before not in (None, heldout_set):
            tell(
                f"note: the held-out tasks are not those used up to step {state.step} "
                "(train.heldout has grown, or is another folder, or train.heldout_microbatches is "
                "another number): held-out figures before and after do not compare"
            )
        self._logged = state.step, self._metrics.seconds
        # Hide what a killed run logged after its checkpoint; entries of that step itself stay.
        self._board = SummaryWriter(out / "tensorboard", purge_step=state.step + 1)
        self._progress = ProgressReport("trainer", stop, "steps", done=state.step)

    def after_step(self, step: int, loss: float, norm: float, rate: float, data: str) -> None:
        """Log update `step`; data: the chain's value after it."""
        prior, train, state = self._config.prior, self._config.train, self._state
        due = state.step == prior.total_steps or state.step % train.digest_every == 0
        weights = weights_digest(state.parameters) if due else None
        addresses = addresses_of_step(prior, train, step)
        self._ledger.write(step, loss, norm, rate, addresses, data, weights)
        self._losses.append(loss)
        self._progress.advance(1, f"stage {addresses[0][0]}, loss {loss:.4f}")
        if state.step % train.log_every == 0:
            self._log_means(norm, rate)

    def _log_means(self, norm: float, rate: float) -> None:
        mean = sum(self._losses) / len(self._losses)
        self._losses.clear()
        (step, since), seconds = self._logged, self._metrics.seconds
        self._logged = self._state.step, seconds
        figures = {
            "loss": mean,
            "gradient_norm": norm,
            "learning_rate": rate,
            "steps_per_second": (self._state.step - step) / max(seconds - since, 1e-9),
            "data_wait_seconds": self._waited,
        }
        for name, value in figures.items():
            self._board.add_scalar(name, value, self._state.step)
        self._metrics.write(self._state.step, **figures)

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Count the block's time as waited for data."""
        began = time.monotonic()
        yield
        self._waited += time.monotonic() - began

    def evaluating(self) -> AbstractContextManager[None]:
        """Do not count the block's time as training."""
        return self._metrics.paused()

    def has_heldout(self) -> bool:
        """Whether the last held-out figures logged are of this step and of the held-out set."""
        assert self._heldout_set is not None, "asked where there are held-out tasks"
        return self._metrics.has_figures(self._state.step, self._heldout_set)

    def heldout(self, figures: HeldoutFigures) -> None:
        """Log the held-out figures of this step, unless they are logged already."""
        step = self._state.step
        self._figures = step, figures
        if self.has_heldout():
            return  # a finished run, started again
        named = {"loss": figures.loss, "accuracy": figures.accuracy, "auc": figures.auc}
        for name, value in named.items():
            self._board.add_scalar(f"heldout/{name}", value, step)
        self._board.flush()  # before metrics.jsonl says that this was done
        self._metrics.write(
            step,
            **{f"heldout_{name}": value for name, value in named.items()},
            heldout_set=self._heldout_set,
        )

    def make_durable(self) -> None:
        """Sync what a checkpoint of this step needs: if killed later, nothing logs it again."""
        self._ledger.sync()
        self._board.flush()

    def saved(self) -> None:
        """Note the time of a checkpoint: a resumed run's clock goes on from here."""
        self._metrics.write(self._state.step)

    def close(self) -> None:
        """Print a summary and close all files."""
        self._ledger.close()
        self._board.close()
        self._progress.__exit__()
        self._sum_up()
        self._metrics.close()

    def _sum_up(self) -> None:
        config, state = self._config, self._state
        losses = [float.fromhex(line["loss"]) for line in read_ledger(self._out / "ledger.jsonl")]
        some = min(config.train.log_every, (len(losses) + 1) // 2)
        here, waited = self._progress.seconds, self._waited
        rows = {
            "steps": f"{state.step:,} of {config.prior.total_steps:,}",
            "time": f"{duration(self._metrics.seconds)} of training, {duration(here)} since this "
            "start",
            "waited for data": f"{waited:.1f} s since this start ({waited / max(here, 1e-9):.1%})",
        }
        if some:
            first, last = (sum(part) / some for part in (losses[:some], losses[-some:]))
            rows["loss"] = f"{first:.4f} in the first {some} steps, {last:.4f} in the last"
        if self._figures:
            step, figures = self._figures
            rows["held-out"] = (
                f"AUC {figures.auc:.4f}, accuracy {figures.accuracy:.4f}, loss {figures.loss:.4f} "
                f"at step {step:,}"
            )
        reuse = self._chain.reuse
        rows["each microbatch read"] = "once" if reuse == 1 else f"{reuse:.3g} times on average"
        rows["weights (EMA)"] = weights_digest(state.ema)
        table = Table(title=f"run {config.name}", show_header=False)
        for name, value in rows.items():
            table.add_row(name, value)
        with heard_or_not(sys.stdout):
            Console(width=100).print(table)
