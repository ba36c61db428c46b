"""Fit the interval of the class prior: its errors on synthetic tasks and on real tables.

    benchmarks/calibration_tasks.sh shards/calibration
    python benchmarks/calibrate_class_prior.py --model M.safetensors --shards shards/calibration \
        --write

Fits the interval (`puicl_model.class_prior_fit.fit_interval`) on half of the held-out synthetic
tasks and judges it on the other half. `--write` fits it on all tasks and writes the result into the
weights' card as `class_prior_interval`. With `--data` (a folder as for `puicl bench --data`) it is
also judged on real tables, with the share of positives swept from .1 to .9 and with the benchmark's
splits. With `--rivals`, best-bin estimation, KM2 and EMPU estimate the shares of the same rows.
With `--widen`, the interval is widened until it also covers the required share of the real tables;
leaving out one table at a time shows how well an interval widened for the others covers it. The
folder `--kept` caches every answer, by weights and rows, so that a stopped run resumes. Errors are
those of the share; the calibration error (10 bins, all rows pooled) and accuracy are those of the
probabilities.
"""

import argparse
import json
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from how_many import count
from joblib import Memory, Parallel, delayed
from overlapping_classes import calibration_error
from real_tables import digest, weights_file
from scipy.special import expit
from weak_spots import spread
from where_to import output_folder

from pu_bench.data import load_collection
from pu_bench.methods import METHODS
from pu_bench.methods.class_prior import best_bin_estimate, km2
from pu_bench.protocol import split_pu
from puicl_config import exit_on_input_error, write_atomically
from puicl_model import PUICLClassifier
from puicl_model.class_prior import estimate
from puicl_model.class_prior_fit import BANDS, fit_interval, widened
from shard_io import open_shards

_COVERAGE = 0.9
_SHARES = np.arange(1, 10) / 10
_SPLITS = 3


@dataclass(frozen=True)
class Task:
    """Labelled rows P [n_p, d], unlabelled rows U [n_u, d], classes y of U [n_u], name of table."""

    P: np.ndarray
    U: np.ndarray
    y: np.ndarray
    table: str = ""


@dataclass(frozen=True)
class Answer(Task):
    """One task and the classifier's log-odds [n_u] of its unlabelled rows."""

    log_odds: np.ndarray = field(kw_only=True)


@exit_on_input_error
def main() -> None:
    """Measure and print; with `--write`, also write the card."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="default")
    parser.add_argument("--shards", required=True)
    parser.add_argument("--tasks", type=count, default=600)
    parser.add_argument("--n-estimators", type=count, default=PUICLClassifier().n_estimators)
    parser.add_argument("--jobs", type=count, default=1, help="processes; they change no figure")
    parser.add_argument("--data", type=Path)
    parser.add_argument(
        "--kept", type=Path, help="folder that caches answers; not valid for other code"
    )
    parser.add_argument("--rivals", action="store_true")
    parser.add_argument("--widen", action="store_true")
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    for option in ("rivals", "widen"):
        if getattr(arguments, option) and not arguments.data:
            parser.error(f"--{option} needs --data")
    if arguments.kept:
        output_folder(arguments.kept, "--kept")
    path = weights_file(arguments.model)
    kept = Memory(arguments.kept, verbose=0).cache(ask, ignore=["model"])
    model = (path, digest(arguments.model))

    def answers(tasks: Iterable[Task]) -> list[Answer]:
        tasks = list(tasks)
        asked = (delayed(kept)(*model, arguments.n_estimators, task.P, task.U) for task in tasks)
        said = Parallel(n_jobs=arguments.jobs)(asked)
        return [
            Answer(**vars(task), log_odds=log_odds)
            for task, log_odds in zip(tasks, said, strict=True)
        ]

    tasks = answers(synthetic(arguments.shards, arguments.tasks))
    print(
        "| tasks | error of the share | too high by | covered | of shares below .3, to .7, above | "
        "width | calibration error | acc. |"
    )
    print("|---|---|---|---|---|---|---|---|")
    show("synthetic, held out", tasks[1::2], interval_of(tasks[::2]))
    interval = interval_of(tasks)
    if arguments.data:
        swept = answers(shares(arguments.data))
        splits = answers(as_in_benchmark(arguments.data))
        show("real, shares .1 to .9", swept, interval)
        show("real, the benchmark's splits", splits, interval)
        if arguments.rivals:
            show_rivals(swept)
        if arguments.widen:
            show_left_out(swept, splits, interval)
            interval = interval_of(swept + splits, interval)
            show("synthetic, widened", tasks, interval)
    if arguments.write:
        card = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
        card["class_prior_interval"] = interval
        write_atomically(path.with_suffix(".json"), (json.dumps(card, indent=1) + "\n").encode())
        print(f"written to {path.with_suffix('.json')}: {interval}")


def ask(model: Path, weights: str, n_estimators: int, P: np.ndarray, U: np.ndarray) -> np.ndarray:
    """The classifier's log-odds [n_u] of the rows U; `weights` is the digest of `model`."""
    warnings.simplefilter("ignore")
    classifier = PUICLClassifier(model, n_estimators=n_estimators, random_state=0)
    x = np.concatenate([P, U])
    return classifier.fit(x, np.arange(len(x)) < len(P)).estimator_log_odds_.mean(axis=0)


def interval_of(answers: list[Answer], known: dict | None = None) -> dict:
    """The card's entry fitted on these tasks; or `known`, widened to cover its share of them."""
    log_odds, true = [a.log_odds for a in answers], np.array([a.y.mean() for a in answers])
    n_labeled = np.array([len(a.P) for a in answers])
    if known is None:
        return fit_interval(log_odds, n_labeled, true, _COVERAGE)
    return widened(known, log_odds, n_labeled, true)


def show_left_out(swept: list[Answer], splits: list[Answer], interval: dict) -> None:
    """Print how often an interval widened for the other tables covers each table's shares."""
    for name, answers in (("shares .1 to .9", swept), ("the benchmark's splits", splits)):
        found = []
        for table in dict.fromkeys(a.table for a in answers):
            others = [a for a in swept + splits if a.table != table]
            widened_for_others = interval_of(others, interval)
            found += [_covered(a, widened_for_others) for a in answers if a.table == table]
        covered, width = np.mean(found, axis=0)
        print(f"| {name}, widened for the other tables | | | {covered:.2f} | | {width:.2f} | | |")


def synthetic(folder: str, count: int) -> Iterator[Task]:
    """`count` tasks, spread evenly over the microbatches of the shards."""
    shards = open_shards(folder)
    places = [(part, n) for part in shards.published_parts() for n in shards.positions(part)]
    chosen = spread(places, count)
    for number, (part, position) in enumerate(chosen):
        batch = shards.part(part)[position]
        each = min(len(batch.x), (count + number) // len(chosen))
        for x, y in zip(batch.x[:each].astype(float), batch.y[:each], strict=True):
            yield Task(x[: batch.n_labeled], x[batch.n_labeled :], y)


def shares(folder: Path) -> Iterator[Task]:
    """Tasks from real tables: at most 100 labelled and 300 unlabelled rows, at 9 shares."""
    for name, table in load_collection(folder).tables.items():
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
            yield Task(table.x[positives[:n_labeled]], table.x[rows], y, name)


def as_in_benchmark(folder: Path) -> Iterator[Task]:
    """Tasks from real tables, split by the benchmark's protocol: half of U is positive."""
    for name, table in load_collection(folder).tables.items():
        for seed in range(_SPLITS):
            task = split_pu(table.x, table.positive, seed)
            yield Task(task.P, task.U, task.y, name)


def show(name: str, answers: list[Answer], interval: dict) -> None:
    """Print one row of the table."""
    probabilities = [expit(a.log_odds) for a in answers]
    true = np.array([a.y.mean() for a in answers])
    errors = np.array([p.mean() for p in probabilities]) - true
    covered, width = np.array([_covered(a, interval) for a in answers]).T
    bands = np.searchsorted(BANDS, true, side="right")
    by_band = [covered[bands == band] for band in range(len(BANDS) + 1)]
    told = ", ".join(f"{some.mean():.2f}" if len(some) else "-" for some in by_band)
    p, y = np.concatenate(probabilities), np.concatenate([a.y for a in answers])
    accuracy = np.mean([((a.log_odds >= 0) == a.y).mean() for a in answers])
    print(
        f"| {len(answers)} {name} | {np.abs(errors).mean():.3f} | {errors.mean():.3f} | "
        f"{covered.mean():.2f} (nominal {_COVERAGE}) | {told} | {width.mean():.2f} | "
        f"{calibration_error(p, y):.3f} | {accuracy:.3f} |",
        flush=True,
    )


def _covered(answer: Answer, interval: dict) -> tuple[bool, float]:
    card = {"class_prior_interval": interval}
    _, low, high = estimate(answer.log_odds, len(answer.P), card)
    return low <= answer.y.mean() <= high, high - low


def show_rivals(answers: list[Answer]) -> None:
    """Print the errors of other estimators of the share, on the same rows."""
    warnings.simplefilter("ignore")
    empu = METHODS["empu"]()
    rivals = {
        "best-bin estimation": lambda a: best_bin_estimate(a.P, a.U, 0),
        "KM2": lambda a: km2(a.P, a.U),
        "EMPU": lambda a: empu.fit_predict(a.P, a.U, 0).class_prior,
    }
    true = np.array([a.y.mean() for a in answers])
    for name, rival in rivals.items():
        errors = np.abs([rival(a) for a in answers] - true)
        print(f"| {name} | {errors.mean():.3f} | | | | | | |", flush=True)


if __name__ == "__main__":
    main()
