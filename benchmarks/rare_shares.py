"""Estimates of the class prior for shares of positives outside the range of training tasks.

    python benchmarks/rare_shares.py --data DEVELOPMENT --shares 0.01 0.03 0.05 0.95 0.97

Tasks from real tables (a folder as for `puicl bench --data`) have at most 100 labelled positives
and 300 unlabelled rows, of which the given share is positive. Prints one line for each share: the
mean estimate, how often the interval covers the share, its mean width, these two for intervals that
do not open towards shares beyond those trained on, and how often the fit warned that the share may
lie beyond those.
"""

import argparse
import warnings
from pathlib import Path

import numpy as np
from how_many import count, fraction
from real_tables import weights_file

from pu_bench.data import load_collection
from puicl_config import exit_on_input_error
from puicl_model import PUICLClassifier
from puicl_model.class_prior import at_the_limit, estimate, trained_shares


@exit_on_input_error
def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--model", default="default")
    parser.add_argument("--n-estimators", type=count, default=1)
    parser.add_argument(
        "--shares", type=fraction, nargs="+", default=[0.01, 0.03, 0.05, 0.95, 0.97]
    )
    arguments = parser.parse_args()
    weights_file(arguments.model)
    tables = load_collection(arguments.data).tables
    print(
        "| share | tables | estimate | covered | width | covered, closed | width, closed | warned |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for share in arguments.shares:
        found = []
        for table in tables.values():
            rows, n_labeled, true = drawn(table.positive, share)
            classifier = PUICLClassifier(arguments.model, n_estimators=arguments.n_estimators)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                classifier.fit(table.x[rows], np.arange(len(rows)) < n_labeled)
            card = classifier.model_card_
            closed = {"class_prior_interval": card["class_prior_interval"]}
            log_odds = classifier.estimator_log_odds_.mean(axis=0)
            ends = [classifier.class_prior_interval_, estimate(log_odds, n_labeled, closed)[1:]]
            told = [(low <= true <= high, high - low) for low, high in ends]
            prior = classifier.class_prior_
            found.append((prior, *told[0], *told[1], at_the_limit(prior, trained_shares(card))))
        mean = np.mean(found, axis=0)
        cells = [
            f"{value:.{digits}f}" for value, digits in zip(mean, (3, 2, 2, 2, 2, 2), strict=True)
        ]
        print(f"| {share} | {len(found)} | {' | '.join(cells)} |", flush=True)


def drawn(positive: np.ndarray, share: float) -> tuple[np.ndarray, int, float]:
    """Row numbers (labelled first), the number of labelled ones, the others' share of positives."""
    rng = np.random.default_rng(0)
    positives = rng.permutation(np.flatnonzero(positive))
    negatives = rng.permutation(np.flatnonzero(~positive))
    n_labeled = min(100, len(positives) // 3)
    rest = len(positives) - n_labeled
    n = int(min(300, rest / share, len(negatives) / (1 - share)))
    n_positive = round(n * share)
    rows = [positives[: n_labeled + n_positive], negatives[: n - n_positive]]
    return np.concatenate(rows), n_labeled, n_positive / n


if __name__ == "__main__":
    main()
