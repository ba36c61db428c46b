"""Plot curves of runs: loss from their ledgers, held-out AUC from their metrics."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from puicl_config import InputError, write_atomically
from trainer.ledger import read_ledger

# Up to this many runs, the legend is inside the first panel; for more, beside the last.
_NAMED_INSIDE = 5


@dataclass(frozen=True)
class Curves:
    """One run's figures: `loss` [steps], and held-out AUC [evaluations] with its steps.

    `heldout_seconds` are seconds of training until the evaluation. Where the held-out tasks
    changed, so that figures before and after do not compare, an AUC of NaN separates them.
    """

    name: str
    steps: np.ndarray
    loss: np.ndarray
    heldout_steps: np.ndarray
    heldout_seconds: np.ndarray
    heldout_auc: np.ndarray


def read_curves(run: Path) -> Curves:
    """Read a run's figures; raises `InputError` for no run, no step yet, or damaged files."""
    if not (run / "ledger.jsonl").is_file():
        raise InputError(f"{run} holds no run: there is no ledger.jsonl")
    try:
        ledger = [
            (line["step"], float.fromhex(line["loss"]))
            for line in read_ledger(run / "ledger.jsonl")
        ]
        heldout: list[tuple[int, float, float]] = []
        tasks: str | None = None
        for line in read_ledger(run / "metrics.jsonl"):
            if "heldout_auc" not in line:
                continue
            before, tasks = tasks, line.get("heldout_set", tasks)
            at = line["step"], line["seconds"]
            if before not in (None, tasks):
                heldout.append((*at, np.nan))
            heldout.append((*at, line["heldout_auc"]))
    except (json.JSONDecodeError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"{run} holds a damaged ledger or metrics: {error}") from None
    if not ledger:
        raise InputError(f"{run} has not made a step yet")
    losses, evaluations = np.array(ledger).T, np.array(heldout).reshape(-1, 3).T
    return Curves(run.name, *losses, *evaluations)


def draw_curves(runs: Sequence[Path], out: Path, smooth: int) -> None:
    """Write a PNG of the loss, a moving mean over `smooth` steps, and the held-out AUC if recorded.

    AUC is drawn against steps and against seconds of training. Raises `InputError` if a run has
    nothing to draw, if `out` does not end in .png, or if its folder does not exist.
    """
    if out.suffix.lower() != ".png":
        raise InputError(f"{out}: give a file that ends in .png")
    if not out.parent.is_dir():
        raise InputError(f"the folder of {out} does not exist")
    curves = [read_curves(run) for run in runs]
    names = [c.name for c in curves]
    if len(set(names)) < len(names):
        names = [str(run) for run in runs]
    # Imported here, since Matplotlib would delay commands that draw nothing.
    from puicl_config.pictures import in_style

    with in_style({}):
        write_atomically(out, _drawn(names, curves, smooth))


def _drawn(names: Sequence[str], curves: Sequence[Curves], smooth: int) -> bytes:
    """The picture of `draw_curves` as PNG."""
    import pandas as pd

    from puicl_config.pictures import as_png, blank_figure

    with_auc = any(len(c.heldout_auc) for c in curves)
    panels = 3 if with_auc else 1
    figure = blank_figure(4.6 * panels + 1.5, 4.0)
    axes = figure.subplots(1, panels, squeeze=False)[0]
    for name, c in zip(names, curves, strict=True):
        mean = pd.Series(c.loss).rolling(smooth, min_periods=1).mean()
        (line,) = axes[0].plot(c.steps, mean, lw=1.5, label=name)
        if with_auc and len(c.heldout_auc):
            style = {"color": line.get_color(), "lw": 1.5, "marker": ".", "label": name}
            axes[1].plot(c.heldout_steps, c.heldout_auc, **style)
            axes[2].plot(c.heldout_seconds, c.heldout_auc, **style)
    axes[0].set(xlabel="step", ylabel="loss", title=f"Loss, mean over {smooth} steps")
    if with_auc:
        axes[1].set(xlabel="step", ylabel="AUC", title="Held-out AUC against steps")
        axes[2].set(xlabel="seconds of training", title="Held-out AUC against time")
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
    if len(curves) <= _NAMED_INSIDE:
        axes[0].legend(frameon=False, fontsize="small")
    else:  # inside, this many names would cover the curves
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside right upper", frameon=False, fontsize="small")
    return as_png(figure, dpi=120)
