"""Can a network see the share of positives when two normal classes are well separated?

    python benchmarks/separate_classes.py --models default some.safetensors

Each class is normal with the same spread in every column; their centres are `separation` standard
deviations apart in a random direction. There are 100 labelled positives and 400 unlabelled rows.
Each network makes one pass. Prints means over draws of the class prior's error (signed: estimate -
share) and of the accuracy, beside the accuracy of the Bayes classifier, which knows both densities
and the share. In the prior, `cluster_labels` comes closest to such tasks; most of its classes are
the two sides of one score instead, without a gap.
"""

import argparse
import warnings

import numpy as np
from how_many import count
from joblib import Parallel, delayed
from real_tables import weights_file

from puicl_config import exit_on_input_error
from puicl_model import PUICLClassifier

COLUMNS = (3, 8)
SEPARATIONS = (1.5, 3.0, 5.0, 8.0)
SHARES = (0.25, 0.5, 0.75)
N_LABELED, N_UNLABELED = 100, 400


@exit_on_input_error
def main() -> None:
    """Measure and print one Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", default=["default"])
    parser.add_argument("--draws", type=count, default=4)
    parser.add_argument("--jobs", type=count, default=1)
    arguments = parser.parse_args()
    for model in arguments.models:
        weights_file(model)
    warnings.simplefilter("ignore")
    cells = [(d, apart, share) for d in COLUMNS for apart in SEPARATIONS for share in SHARES]
    measured = Parallel(n_jobs=arguments.jobs)(
        delayed(figures)(arguments.models, *cell, draw)
        for cell in cells
        for draw in range(arguments.draws)
    )
    found = np.array(measured).reshape(len(cells), arguments.draws, -1).mean(axis=1)
    asked = [
        f"{name}, {what}" for name in arguments.models for what in ("prior - share", "accuracy")
    ]
    print(
        "| columns | separation | share |", " | ".join([*asked, "accuracy, densities known"]), "|"
    )
    print("|---" * (4 + len(asked)) + "|")
    for (d, apart, share), row in zip(cells, found, strict=True):
        print(f"| {d} | {apart:g} | {share} |", " | ".join(f"{figure:.3f}" for figure in row), "|")
    print("| mean | | |", " | ".join(f"{figure:.3f}" for figure in found.mean(axis=0)), "|")


def figures(models: list[str], d: int, apart: float, share: float, draw: int) -> list[float]:
    """On one draw: class prior minus share and accuracy of each network, then of the densities."""
    rng = np.random.default_rng([d, int(10 * apart), int(100 * share), draw])
    direction = rng.normal(size=d)
    direction /= np.linalg.norm(direction)
    y = (rng.random(N_UNLABELED) < share).astype(int)
    P = rng.normal(size=(N_LABELED, d)) + apart * direction
    U = rng.normal(size=(N_UNLABELED, d)) + apart * y[:, None] * direction
    rows, s = np.concatenate([P, U]), np.arange(N_LABELED + N_UNLABELED) < N_LABELED
    found = []
    for model in models:
        fitted = PUICLClassifier(model, n_estimators=1, random_state=draw).fit(rows, s)
        right = (fitted.unlabeled_proba_ >= 0.5) == y
        found += [fitted.class_prior_ - y.mean(), right.mean()]
    log_odds = apart * (U @ direction) - apart**2 / 2 + np.log(share / (1 - share))
    return [*found, ((log_odds > 0) == y).mean()]


if __name__ == "__main__":
    main()
