"""`make demo`: freshly trained weights rank the unlabelled rows of a real table.

The table is the Wisconsin diagnostic breast cancer data that ships with scikit-learn. Benign is the
positive class; one third of the benign rows are labelled, and the unlabelled rows are as many
malignant as benign ones.
"""

import argparse
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import RocCurveDisplay

from pu_bench.methods import Prediction
from pu_bench.methods.crossfit import Logistic
from pu_bench.methods.in_context import PUICLMethod
from pu_bench.methods.simple import AllPositive
from pu_bench.protocol import PUTask, split_pu
from pu_bench.run.metrics import judge
from puicl_config import exit_on_input_error, write_atomically
from puicl_config.pictures import as_png, blank_figure, in_style

N_SPLITS = 5


def run_demo(model: Path, out: Path) -> dict[str, tuple[float, float]]:
    """Print AUC and accuracy of three methods over 5 splits, and draw `out`/wdbc.png.

    Returns mean (AUC, accuracy) by method.
    """
    table = load_breast_cancer()
    tasks = [split_pu(table.data, table.target == 1, seed) for seed in range(N_SPLITS)]
    methods = (PUICLMethod(model), Logistic(), AllPositive())
    told = {
        method.title: [method.fit_predict(task.P, task.U, seed) for seed, task in enumerate(tasks)]
        for method in methods
    }
    means = _print_table(tasks, told)
    out.mkdir(parents=True, exist_ok=True)
    _draw(tasks[0], {name: values[0] for name, values in told.items()}, out / "wdbc.png")
    print(f"picture: {out / 'wdbc.png'}")
    return means


def _print_table(
    tasks: list[PUTask], told: dict[str, list[Prediction]]
) -> dict[str, tuple[float, float]]:
    task = tasks[0]
    shown = Table(
        title=f"Breast cancer (WDBC): {task.n_labeled} labelled benign, {len(task.y)} unlabelled "
        f"rows ({task.y.mean():.0%} benign), {len(tasks)} splits, mean ± sd"
    )
    for heading in ("method", "AUC", "accuracy"):
        shown.add_column(heading, justify="left" if heading == "method" else "right")
    means = {}
    for name, values in told.items():
        judged = [judge(p, task.y, False).metrics for task, p in zip(tasks, values, strict=True)]
        auc, hits = (
            np.array([each[metric] for each in judged], float) for metric in ("auc", "accuracy")
        )
        shown.add_row(
            name,
            f"{np.mean(auc):.3f} ± {np.std(auc, ddof=1):.3f}",
            f"{np.mean(hits):.3f} ± {np.std(hits, ddof=1):.3f}",
        )
        means[name] = float(np.mean(auc)), float(np.mean(hits))
    Console(width=100).print(shown)
    return means


def _draw(task: PUTask, told: dict[str, Prediction], path: Path) -> None:
    """Score histogram by hidden class, and ROC curves, of one split."""
    with in_style({}):
        write_atomically(path, _drawn(task, told))


def _drawn(task: PUTask, told: dict[str, Prediction]) -> bytes:
    figure = blank_figure(11, 4.4)
    left, right = figure.subplots(1, 2)
    bins = np.linspace(0, 1, 26)
    for label, name, colour in ((1, "benign (positive)", "#2a7f62"), (0, "malignant", "#c1432e")):
        left.hist(
            told["PUICL"].score[task.y == label],
            bins,
            alpha=0.75,
            label=f"{name}, n = {int((task.y == label).sum())}",
            color=colour,
        )
    left.set(
        xlabel="PUICL's P(positive)",
        ylabel="unlabelled rows",
        title="Scores by hidden class",
        xlim=(0, 1),
    )
    left.legend(frameon=False, loc="upper center")
    for (name, one), colour in zip(told.items(), ("#1f4e9c", "#d98c21", "#9a9a9a"), strict=True):
        RocCurveDisplay.from_predictions(
            task.y, one.order, name=name, ax=right, curve_kwargs={"color": colour, "lw": 2}
        )
    right.set(
        xlabel="share of malignant rows called positive",
        ylabel="share of benign rows called positive",
        title="ROC of the unlabelled rows",
    )
    right.legend(frameon=False, loc="lower right")
    for axis in (left, right):
        axis.spines[["top", "right"]].set_visible(False)
    figure.suptitle(
        f"WDBC, {task.n_labeled} labelled benign rows and {len(task.y)} unlabelled rows; "
        "nothing is fitted to the table"
    )
    return as_png(figure, dpi=130)


@exit_on_input_error
def main() -> None:
    """Command line of the demo."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=Path, required=True, help="model.safetensors to show")
    parser.add_argument("--out", type=Path, default=Path("results/demo"), help="folder to write")
    arguments = parser.parse_args()
    run_demo(arguments.model, arguments.out)


if __name__ == "__main__":
    main()
