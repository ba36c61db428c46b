"""How well the share of positives can be estimated when the classes overlap.

    python benchmarks/overlapping_classes.py

Columns are normal with class means `--apart` standard deviations from each other (at 1, the best
possible AUC is .76); labelled positives are drawn at random; one pass. Prints, for each share of
positives in the unlabelled rows: the mean estimate, how often the interval covers the share, its
width, how often the fit doubts the share, what part of the rows with P(positive) of .8 or more is
positive, and the calibration error (10 bins, all rows pooled), without and with the share given.
"""

import argparse
import warnings

import numpy as np
from how_many import count, fraction
from real_tables import weights_file

from puicl_config import exit_on_input_error
from puicl_model import PUICLClassifier

_UNLABELED, _COLUMNS = 300, 6
_DOUBTS = ("share of positives", "looks positive", "look positive")


@exit_on_input_error
def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="default")
    parser.add_argument("--apart", type=float, default=1.0)
    parser.add_argument("--labeled", type=count, default=60)
    parser.add_argument("--tables", type=count, default=32)
    parser.add_argument(
        "--shares", type=fraction, nargs="+", default=[0.05, 0.1, 0.15, 0.2, 0.5, 0.8]
    )
    arguments = parser.parse_args()
    weights_file(arguments.model)
    warnings.simplefilter("ignore")
    print("| share | estimate | covered | width | doubted | of P >= .8 positive | error | given |")
    print("|---|---|---|---|---|---|---|---|")
    for share in arguments.shares:
        found, free, given, classes = [], [], [], []
        for seed in range(arguments.tables):
            x, s, y = drawn(share, arguments.apart, arguments.labeled, seed)
            classifier = PUICLClassifier(arguments.model, n_estimators=1, random_state=0).fit(x, s)
            low, high = classifier.class_prior_interval_
            told = " ".join(classifier.report_["warnings"])
            doubted = any(words in told for words in _DOUBTS)
            true = y.mean()
            found.append((classifier.class_prior_, low <= true <= high, high - low, doubted))
            free.append(classifier.unlabeled_proba_)
            given.append(classifier.fit(x, s, class_prior=true).unlabeled_proba_)
            classes.append(y)
        p, y = np.concatenate(free), np.concatenate(classes)
        mean = np.mean(found, axis=0)
        errors = [calibration_error(each, y) for each in (p, np.concatenate(given))]
        cells = [*mean, y[p >= 0.8].mean() if (p >= 0.8).any() else np.nan, *errors]
        print(f"| {share} | {' | '.join(f'{cell:.2f}' for cell in cells)} |", flush=True)


def drawn(
    share: float, apart: float, n_labeled: int, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw a table x [n, d], its labels [n], and the classes [n_u] of the unlabelled rows."""
    rng = np.random.default_rng(seed)
    y = rng.random(_UNLABELED) < share
    y[0] = True
    direction = rng.normal(size=_COLUMNS)
    direction *= apart / np.linalg.norm(direction)
    positive = np.concatenate([np.ones(n_labeled, dtype=bool), y])
    x = rng.normal(size=(len(positive), _COLUMNS)) + positive[:, None] * direction
    return x, np.arange(len(x)) < n_labeled, y


def calibration_error(p: np.ndarray, y: np.ndarray) -> float:
    """Expected calibration error of probabilities p [n] for classes y [n], in ten bins."""
    bins = np.minimum((10 * p).astype(int), 9)
    return sum(abs(p[bins == b].sum() - y[bins == b].sum()) for b in range(10)) / len(p)


if __name__ == "__main__":
    main()
