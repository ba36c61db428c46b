"""Quality of the default weights against their training cost, and the gain of doubling it.

    puicl average runs/NAME/checkpoints/step-… --of ema --out M.safetensors
    puicl bench --data DEVELOPMENT --methods puicl_single --model M.safetensors --repeats 2
    python benchmarks/learning_curve.py

Reads docs/learning_curve.csv, with one line for each checkpoint: total steps, tasks and minutes of
training since the first weights, and the means that the second command gave on the development
tables. Draws AUC against tasks, one line for each prior. Prints a table, and the gain of a doubling
of the tasks, between checkpoints of the same prior and of the same kind: annealed (the learning
rate had fallen to zero) or not.
"""

import argparse
import itertools
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd

mpl.use("Agg")
from matplotlib import pyplot as plt
from where_to import output_folder

from puicl_config import InputError, exit_on_input_error

COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#444444")


@exit_on_input_error
def main() -> None:
    """Draw and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("docs/learning_curve.csv"))
    parser.add_argument("--out", type=Path, default=Path("docs/images/weights/learning_curve.png"))
    arguments = parser.parse_args()
    if not arguments.data.is_file():
        raise InputError(f"--data {arguments.data}: there is no such file")
    output_folder(arguments.out.parent)
    points = pd.read_csv(arguments.data)
    draw(points, arguments.out)
    print("| run's end | steps in all | tasks seen | minutes in all | AUC | accuracy |")
    print("|---|---|---|---|---|---|")
    for point in points.itertuples():
        print(
            f"| {point.run} | {point.steps:,} | {point.tasks:,} | {point.minutes} | "
            f"{point.auc:.4f} | {point.accuracy:.3f} |"
        )
    for _, like in points.groupby(["annealed", "prior"]):
        gains = np.diff(like.auc) / np.diff(np.log2(like.tasks))
        for name, gain in zip(like.run[1:], gains, strict=True):
            print(f"{name}: {gain:+.3f} a doubling of tasks since the last end of its kind")


def draw(points: pd.DataFrame, path: Path) -> None:
    """Draw AUC against tasks (logarithmic); annealed ends are filled, colours stand for priors."""
    figure, axes = plt.subplots(figsize=(6, 3.6), layout="constrained")
    for (prior, some), color in zip(points.groupby("prior"), itertools.cycle(COLORS), strict=False):
        axes.plot(some.tasks, some.auc, color=color, alpha=0.5)
        for end in some.itertuples():
            face = color if end.annealed else "white"
            axes.plot(end.tasks, end.auc, "o", color=color, markerfacecolor=face)
        last = some.iloc[-1]
        # Ends 3 to 6 are close together: put some labels to the right, some below.
        below = prior in (3, 4, 5)
        axes.annotate(
            f" prior {prior} ",
            (last.tasks, last.auc),
            color=color,
            ha="left" if prior in (4, 6) else "right",
            va="top" if below else "bottom",
        )
    axes.set(xscale="log", xlabel="training tasks, in all", ylabel="mean AUC")
    ticks = points.tasks[points.tasks > 1.15 * points.tasks.shift(fill_value=0)]
    axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks], rotation=30)
    axes.minorticks_off()
    axes.set_title(
        "single pass, 16 development tables, 2 splits; filled: learning rate fallen to nothing"
    )
    axes.title.set_fontsize(9)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=130)


if __name__ == "__main__":
    main()
