"""Draw the pictures of docs/user_guide.md: PU data, SCAR and its failure, sources of labels.

    python benchmarks/guide_pictures.py
    python benchmarks/guide_pictures.py --model M.safetensors    # also scores the drawn tables

The classes are two normal distributions, so that the probability of a class is known exactly. The
second picture shades the ratio of the density of labelled rows to that of all rows, which is the
most that any method comparing labelled with unlabelled rows can learn.
"""

import argparse
import warnings
from pathlib import Path

import numpy as np
from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from scipy.special import expit
from scipy.stats import multivariate_normal
from sklearn.metrics import roc_auc_score
from where_to import output_folder

from puicl_config import exit_on_input_error
from puicl_model import PUICLClassifier

INK, QUIET, POSITIVE, NEGATIVE = "#222222", "#9a9a9a", "#0072B2", "#D55E00"
SHADE = LinearSegmentedColormap.from_list("score", ["#ffffff", "#9cc9e8"])
SETTINGS = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.titlesize": 9.5,
    "text.color": INK,
    "axes.edgecolor": QUIET,
    "axes.linewidth": 0.7,
}
N_POSITIVE, N_NEGATIVE = 120, 180
CENTRES = {True: (0.9, 0.5), False: (-0.9, -0.4)}
COVARIANCES = {True: [[1.0, 0.2], [0.2, 0.7]], False: [[0.8, -0.1], [-0.1, 0.9]]}


@exit_on_input_error
def main() -> None:
    """Draw the pictures and, with `--model`, score the drawn tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("docs/images/guide"))
    parser.add_argument("--model", type=Path)
    options = parser.parse_args()
    output_folder(options.out)
    x, positive, scar, severe = draw_table()
    with style.context(["default", SETTINGS]):
        save(pu_data(x, positive, scar), options.out / "pu_data.png")
        save(selection(x, positive, scar, severe), options.out / "scar.png")
        save(settings(), options.out / "settings.png")
    if options.model:
        warnings.simplefilter("ignore")
        for name, labeled in (("at random", scar), ("the severe ones", severe)):
            fitted = PUICLClassifier(options.model).fit(x, labeled)
            auc = roc_auc_score(positive[~labeled], fitted.unlabeled_proba_)
            print(
                f"labelled {name}: AUC {auc:.3f}, class prior {fitted.class_prior_:.2f}, in truth "
                f"{positive[~labeled].mean():.2f}"
            )


def draw_table() -> tuple[np.ndarray, ...]:
    """x [n, 2]; booleans [n]: positive, labelled at random, labelled by severity."""
    rng = np.random.default_rng(7)
    x = np.concatenate(
        [
            rng.multivariate_normal(CENTRES[kind], COVARIANCES[kind], n)
            for kind, n in ((True, N_POSITIVE), (False, N_NEGATIVE))
        ]
    )
    positive = np.arange(len(x)) < N_POSITIVE
    scar = positive & (rng.random(len(x)) < 1 / 3)
    severe = positive & (rng.random(len(x)) < severity(x))
    return x, positive, scar, severe


def severity(x: np.ndarray) -> np.ndarray:
    """Probability [...] that a positive at x [..., 2] is labelled if severe cases are preferred."""
    return expit(5 * (x[..., 1] - 0.9))


def posterior(x: np.ndarray) -> np.ndarray:
    """The exact P(positive) [...] at x [..., 2]."""
    density = {
        kind: n * multivariate_normal(CENTRES[kind], COVARIANCES[kind]).pdf(x)
        for kind, n in ((True, N_POSITIVE), (False, N_NEGATIVE))
    }
    return density[True] / (density[True] + density[False])


def pu_data(x: np.ndarray, positive: np.ndarray, labeled: np.ndarray) -> Figure:
    """Draw all classes of the table, and beside them what is observed."""
    figure = Figure(figsize=(6.4, 3.1), layout="constrained")
    there, seen = figure.subplots(1, 2, sharex=True, sharey=True)
    there.scatter(*x[~positive].T, s=14, color=NEGATIVE, label="negative")
    there.scatter(*x[positive].T, s=14, color=POSITIVE, label="positive")
    there.set_title("What there is")
    seen.scatter(*x[~labeled].T, s=14, color=QUIET, label="unlabelled")
    seen.scatter(*x[labeled].T, s=14, color=POSITIVE, label="labelled positive")
    seen.set_title("What you see")
    for axes in (there, seen):
        tidy(axes)
    return figure


def selection(x: np.ndarray, positive: np.ndarray, scar: np.ndarray, severe: np.ndarray) -> Figure:
    """Draw what can be learnt from labels at random and by severity, and the positives missed."""
    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    panels = figure.subplots(1, 2, sharex=True, sharey=True)
    ends = [(x[:, j].min() - 0.4, x[:, j].max() + 0.4) for j in range(2)]
    grid = np.stack(np.meshgrid(*(np.linspace(*end, 200) for end in ends)), axis=-1)
    chances = {"labelled at random (SCAR)": 1.0, "only severe cases labelled": severity}
    for axes, labeled, (title, chance) in zip(panels, (scar, severe), chances.items(), strict=True):

        def learnt(at: np.ndarray, chance=chance) -> np.ndarray:
            return posterior(at) * (chance(at) if callable(chance) else chance)

        extent = [*ends[0], *ends[1]]
        axes.imshow(learnt(grid), extent=extent, origin="lower", aspect="auto", cmap=SHADE)
        hidden = positive & ~labeled
        axes.scatter(*x[~positive].T, s=10, color=QUIET, label="negative")
        axes.scatter(
            *x[hidden].T, s=16, facecolor="none", edgecolor=POSITIVE, label="positive, unlabelled"
        )
        axes.scatter(*x[labeled].T, s=14, color=POSITIVE, label="labelled")
        auc = roc_auc_score(positive[~labeled], learnt(x[~labeled]))
        axes.set_title(f"{title}\nbest AUC {auc:.2f}")
        tidy(axes, legend=False)
    handles, names = panels[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=3, frameon=False)
    return figure


def settings() -> Figure:
    """Draw where the labelled rows come from, and the class prior in each case; one dot a row."""
    figure = Figure(figsize=(6.4, 3.5), layout="constrained")
    single, control = figure.subplots(1, 2)
    columns, n, n_positive, n_labeled = 10, 100, 30, 12
    kinds = {
        "labelled": POSITIVE,
        "unlabelled, positive": "#8cc4ea",
        "unlabelled, negative": "#ccc",
    }

    def dots(axes: Axes, kind: str, numbers: range, down: float = 0.0) -> None:
        x, y = np.array(numbers) % columns, -(np.array(numbers) // columns) - down
        axes.scatter(x, y, s=70, color=kinds[kind], label=kind)

    dots(single, "labelled", range(n_labeled))
    dots(single, "unlabelled, positive", range(n_labeled, n_positive))
    dots(single, "unlabelled, negative", range(n_positive, n))
    rest = (n_positive - n_labeled) / (n - n_labeled)
    single.set_title(
        "Single sample: one table, some of its\n"
        f"positives labelled; {rest:.0%} of the rest positive"
    )
    dots(control, "labelled", range(n_labeled))
    dots(control, "unlabelled, positive", range(n_positive), down=3)
    dots(control, "unlabelled, negative", range(n_positive, n), down=3)
    control.set_title(
        "Case control: labelled positives apart from\na sample of everybody; "
        f"{n_positive / n:.0%} of it positive"
    )
    for axes in (single, control):
        axes.set(xlim=(-0.7, columns - 0.3), ylim=(-12.7, 0.7), aspect="equal")
        axes.axis("off")
    handles, names = control.get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=3, frameon=False)
    return figure


def tidy(axes: Axes, legend: bool = True) -> None:
    """Remove ticks, as the two columns have no units."""
    axes.set(xticks=[], yticks=[], xlabel="one column", ylabel="another")
    if legend:
        axes.legend(loc="upper left", fontsize=8, frameon=True, framealpha=0.9, edgecolor="none")


def save(figure: Figure, path: Path) -> None:
    """Save as PNG without a date or version, so that drawing again gives the same file."""
    FigureCanvasAgg(figure)
    figure.savefig(path, dpi=140, metadata={"Software": None})


if __name__ == "__main__":
    main()
