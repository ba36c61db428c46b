"""Corrects the class prior on synthetic tasks, and says how wide its interval must be.

    prior-gen --config cpu --stages 20 --split heldout --out heldout/
    python benchmarks/calibrate_class_prior.py --model M.safetensors --shards heldout/ --write
    python benchmarks/calibrate_class_prior.py --model M.safetensors --shards heldout/ --data DIR

Takes one task of each microbatch. On the log-odds scale a line is fitted from the mean probability
of the unlabelled rows to their true share of positives, and the quantile of its absolute
residuals by number of unlabelled rows; half of the tasks judge what the other half gave. `--write`
puts the result of all tasks into the weights' card as `class_prior_calibration`. With `--data`
(a folder as for `ensembling.py`) it is also held against real tables with the share of positives
swept from .1 to .9. The defaults take some five minutes on one core, `--data` as much again.
"""

import argparse
import json
import warnings
from pathlib import Path

import numpy as np
from ensembling import read_tables
from scipy.special import logit

from puicl_config import write_atomically
from puicl_model import PUICLClassifier
from puicl_model.class_prior import correct
from shard_io import open_shards

_COVERAGE = 0.9
_GROUPS = 3
_EDGE = 1e-3


def main() -> None:
    """Measure, print, and write with `--write`."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--shards", required=True)
    parser.add_argument("--tasks", type=int, default=200)
    parser.add_argument("--n-estimators", type=int, default=1)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    raw, true, n_unlabeled = synthetic(arguments)
    first = np.arange(len(raw)) % 2 == 0
    judged = fit_calibration(raw[first], true[first], n_unlabeled[first])
    print("| tasks | mean error, raw | corrected | covered | mean width of the interval |")
    print("|---|---|---|---|---|")
    show("synthetic, held out", raw[~first], true[~first], n_unlabeled[~first], judged)
    calibration = fit_calibration(raw, true, n_unlabeled)
    if arguments.data:
        show("real", *real(arguments), calibration)
    if arguments.write:
        path = arguments.model.with_suffix(".json")
        card = json.loads(path.read_text(encoding="utf-8"))
        card["class_prior_calibration"] = calibration
        write_atomically(path, (json.dumps(card, indent=1) + "\n").encode())
        print(f"written to {path}: {calibration}")


def fit_calibration(raw: np.ndarray, true: np.ndarray, n_unlabeled: np.ndarray) -> dict:
    """The card's entry from estimates, true shares and sizes of tasks, each [tasks]."""
    x, y = logit(np.clip(raw, _EDGE, 1 - _EDGE)), logit(np.clip(true, _EDGE, 1 - _EDGE))
    slope, intercept = np.polyfit(x, y, 1)
    residual = np.abs(y - intercept - slope * x)
    groups = np.array_split(np.argsort(n_unlabeled, kind="stable"), _GROUPS)
    return {
        "intercept": float(intercept),
        "slope": float(slope),
        "coverage": _COVERAGE,
        "n_unlabeled": [float(np.median(n_unlabeled[group])) for group in groups],
        "half_width": [float(np.quantile(residual[group], _COVERAGE)) for group in groups],
        "n_tasks": len(raw),
    }


def synthetic(arguments) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Estimates, true shares and sizes, one task a microbatch, evenly spaced over the shards."""
    shards = open_shards(arguments.shards)
    places = [
        (part, position) for part in shards.published_parts() for position in shards.positions(part)
    ]
    found = []
    for part, position in places[:: max(1, len(places) // arguments.tasks)]:
        batch = shards.part(part)[position]
        x, y = batch.x[0].astype(float), batch.y[0]
        found.append((estimate(arguments, x, batch.n_labeled), y.mean(), len(y)))
    return tuple(np.array(found).T)


def real(arguments) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The same for real tables: 100 labelled, up to 300 unlabelled rows, 9 shares of positives."""
    found = []
    for _, table, positive in read_tables(arguments.data, None):
        for share in np.arange(1, 10) / 10:
            rng = np.random.default_rng(int(10 * share))
            positives = rng.permutation(np.flatnonzero(positive))
            negatives = rng.permutation(np.flatnonzero(~positive))
            n_labeled = min(100, len(positives) // 3)
            rest = len(positives) - n_labeled
            n = int(min(300, rest / share, len(negatives) / (1 - share)))
            n_positive = round(n * share)
            rows = np.concatenate(
                [positives[: n_labeled + n_positive], negatives[: n - n_positive]]
            )
            x = table.iloc[rows].reset_index(drop=True)
            found.append((estimate(arguments, x, n_labeled), n_positive / n, n))
    return tuple(np.array(found).T)


def estimate(arguments, x, n_labeled: int) -> float:
    """The mean probability of the unlabelled rows, those after the first `n_labeled`."""
    classifier = PUICLClassifier(arguments.model, n_estimators=arguments.n_estimators)
    return classifier.fit(x, np.arange(len(x)) < n_labeled).unlabeled_proba_.mean()


def show(name: str, raw, true, n_unlabeled, calibration: dict) -> None:
    """One row of the table."""
    card = {"class_prior_calibration": calibration}
    corrected, low, high = np.array(
        [correct(r, n, card) for r, n in zip(raw, n_unlabeled, strict=True)]
    ).T
    covered = (low <= true) & (true <= high)
    print(
        f"| {len(raw)} {name} | {np.abs(raw - true).mean():.3f} | "
        f"{np.abs(corrected - true).mean():.3f} | {covered.mean():.2f} (nominal {_COVERAGE}) | "
        f"{(high - low).mean():.2f} |",
        flush=True,
    )


if __name__ == "__main__":
    main()
