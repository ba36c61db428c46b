"""Corrects the class prior on synthetic tasks, and says how wide its interval must be.

    prior-gen --config cpu --stages 20-21 --split heldout --out heldout/
    python benchmarks/calibrate_class_prior.py --model M.safetensors --shards heldout/ --write
    python benchmarks/calibrate_class_prior.py --model M.safetensors --shards heldout/ \
        --data DIR --rivals

Fits `puicl_model.class_prior.fit_calibration` on held-out synthetic tasks; half of them judge what
the other half gave. `--write` puts the result of all tasks into the weights' card as
`class_prior_calibration`. With `--data` (a folder as for `puicl bench --data`) it is also held
against real tables with the share of positives swept from .1 to .9, and with `--rivals` against
best-bin estimation, KM2 and EMPU on the same rows; with `--widen` the interval is widened until it
covers its share of those tables, too, and what that gives is told by leaving out one table at a
time. Errors are those of the share; the calibration
error (10 bins, all rows pooled) and accuracy are those of the probabilities before and after they
are shifted to the corrected share.
"""

import argparse
import json
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.special import expit

from pu_bench.data import load_collection
from pu_bench.methods import METHODS
from pu_bench.methods.class_prior import best_bin_estimate, km2
from puicl_config import write_atomically
from puicl_model import PUICLClassifier, find_weights
from puicl_model.class_prior import estimate, fit_calibration, shift_to, widened
from shard_io import open_shards

_COVERAGE = 0.9
_SHARES = np.arange(1, 10) / 10


@dataclass(frozen=True)
class Answer:
    """One table: log-odds [n_u] of the unlabelled rows, their classes, and the rows themselves."""

    log_odds: np.ndarray
    y: np.ndarray
    P: np.ndarray
    U: np.ndarray


def main() -> None:
    """Measure, print, and write with `--write`."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="default")
    parser.add_argument("--shards", required=True)
    parser.add_argument("--tasks", type=int, default=600)
    parser.add_argument("--n-estimators", type=int, default=4)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--rivals", action="store_true")
    parser.add_argument("--widen", action="store_true")
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    if arguments.widen and not arguments.data:
        parser.error("--widen needs --data")
    warnings.simplefilter("ignore")
    path = find_weights(arguments.model)

    def answer(P: np.ndarray, U: np.ndarray, y: np.ndarray) -> Answer:
        classifier = PUICLClassifier(path, n_estimators=arguments.n_estimators, random_state=0)
        x = np.concatenate([P, U])
        fitted = classifier.fit(x, np.arange(len(x)) < len(P))
        return Answer(fitted.estimator_log_odds_.mean(axis=0), y, P, U)

    tasks = synthetic(arguments.shards, arguments.tasks, answer)
    print("| tasks | | error of the share | covered | width | calibration error | accuracy |")
    print("|---|---|---|---|---|---|---|")
    show("synthetic, held out", tasks[1::2], calibration_of(tasks[::2]))
    calibration = calibration_of(tasks)
    if arguments.data:
        tables = real(arguments.data, answer)
        show("real, shares .1 to .9", tables, calibration)
        if arguments.rivals:
            show_rivals(tables)
        if arguments.widen:
            show_left_out(tables, calibration)
            calibration = widened_for(tables, calibration)
            show("synthetic, widened", tasks, calibration)
    if arguments.write:
        card = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
        card["class_prior_calibration"] = calibration
        write_atomically(path.with_suffix(".json"), (json.dumps(card, indent=1) + "\n").encode())
        print(f"written to {path.with_suffix('.json')}: {calibration}")


def calibration_of(answers: list[Answer]) -> dict:
    """The card's entry from these tasks."""
    true = np.array([a.y.mean() for a in answers])
    labeled = np.array([len(a.P) for a in answers])
    return fit_calibration([a.log_odds for a in answers], labeled, true, _COVERAGE)


def widened_for(answers: list[Answer], calibration: dict) -> dict:
    """`calibration` with an interval that covers its share of these tables."""
    true = np.array([a.y.mean() for a in answers])
    labeled = np.array([len(a.P) for a in answers])
    return widened(calibration, [a.log_odds for a in answers], labeled, true)


def show_left_out(answers: list[Answer], calibration: dict) -> None:
    """Coverage of the shares of each table by an interval that was widened for the others."""
    inside, widths = [], []
    for table in range(0, len(answers), len(_SHARES)):
        own = answers[table : table + len(_SHARES)]
        others = answers[:table] + answers[table + len(_SHARES) :]
        card = {"class_prior_calibration": widened_for(others, calibration)}
        for a in own:
            _, low, high = estimate(a.log_odds, len(a.P), card)
            inside.append(low <= a.y.mean() <= high)
            widths.append(high - low)
    covered, width = np.mean(inside), np.mean(widths)
    print(f"| | widened for the other tables | | {covered:.2f} | {width:.2f} | | |", flush=True)


def synthetic(folder: str, count: int, answer: Callable[..., Answer]) -> list[Answer]:
    """`count` tasks, as many of each microbatch, evenly spaced over the shards."""
    shards = open_shards(folder)
    places = [
        (part, position) for part in shards.published_parts() for position in shards.positions(part)
    ]
    found = []
    for part, position in places[:: max(1, len(places) // count)]:
        batch = shards.part(part)[position]
        each = min(len(batch.x), -(-count // len(places)))
        for x, y in zip(batch.x[:each].astype(float), batch.y[:each], strict=True):
            found.append(answer(x[: batch.n_labeled], x[batch.n_labeled :], y))
    return found


def real(folder: Path, answer: Callable[..., Answer]) -> list[Answer]:
    """Real tables: at most 100 labelled and 300 unlabelled rows, 9 shares of positives."""
    found = []
    for table in load_collection(folder).tables.values():
        for share in _SHARES:
            rng = np.random.default_rng(int(10 * share))
            positives = rng.permutation(np.flatnonzero(table.positive))
            negatives = rng.permutation(np.flatnonzero(~table.positive))
            n_labeled = min(100, len(positives) // 3)
            rest = len(positives) - n_labeled
            n = int(min(300, rest / share, len(negatives) / (1 - share)))
            n_positive = round(n * share)
            hidden = positives[n_labeled : n_labeled + n_positive]
            rows = np.concatenate([hidden, negatives[: n - n_positive]])
            y = table.positive[rows].astype(int)
            found.append(answer(table.x[positives[:n_labeled]], table.x[rows], y))
    return found


def show(name: str, answers: list[Answer], calibration: dict) -> None:
    """Two rows of the table: as the network says, and corrected."""
    true = np.array([a.y.mean() for a in answers])
    raw = np.array([expit(a.log_odds).mean() for a in answers])
    card = {"class_prior_calibration": calibration}
    corrected, low, high = np.array([estimate(a.log_odds, len(a.P), card) for a in answers]).T
    shifts = [shift_to(a.log_odds, pi) for a, pi in zip(answers, corrected, strict=True)]
    covered, width = ((low <= true) & (true <= high)).mean(), (high - low).mean()
    plain = judged(answers, [0.0] * len(answers))
    print(f"| {len(true)} {name} | raw | {np.abs(raw - true).mean():.3f} | | | {plain} |")
    print(
        f"| | corrected | {np.abs(corrected - true).mean():.3f} | {covered:.2f} (nominal "
        f"{_COVERAGE}) | {width:.2f} | {judged(answers, shifts)} |",
        flush=True,
    )


def judged(answers: list[Answer], shifts: list[float]) -> str:
    """Expected calibration error and mean accuracy with log-odds shifted."""
    pairs = list(zip(answers, shifts, strict=True))
    p = np.concatenate([expit(a.log_odds + shift) for a, shift in pairs])
    y = np.concatenate([a.y for a, _ in pairs])
    bins = np.minimum((10 * p).astype(int), 9)
    gaps = [abs(p[bins == b].sum() - y[bins == b].sum()) for b in range(10)]
    accuracy = np.mean([((a.log_odds + shift >= 0) == a.y).mean() for a, shift in pairs])
    return f"{sum(gaps) / len(p):.3f} | {accuracy:.3f}"


def show_rivals(answers: list[Answer]) -> None:
    """Errors of other estimators of the share, on the same rows."""
    empu = METHODS["empu"]()
    rivals = {
        "best-bin estimation": lambda a: best_bin_estimate(a.P, a.U, 0),
        "KM2": lambda a: km2(a.P, a.U),
        "EMPU": lambda a: empu.fit_predict(a.P, a.U, 0).class_prior,
    }
    true = np.array([a.y.mean() for a in answers])
    for name, rival in rivals.items():
        errors = np.abs([rival(a) for a in answers] - true)
        print(f"| | {name} | {errors.mean():.3f} | | | | |", flush=True)


if __name__ == "__main__":
    main()
