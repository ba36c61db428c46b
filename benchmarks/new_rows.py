"""CPU seconds to score new rows: the first, another, many; and by batch size.

    python benchmarks/new_rows.py --model M.safetensors

Tables hold random numbers. The second printed table, with one estimator, compares with reading the
context again for each batch of rows; "again" is a second call on a classifier that kept its
context.
"""

import argparse
import time
import warnings

import numpy as np
import torch

from puicl_config import exit_on_input_error
from puicl_model import PUICLClassifier
from puicl_model.read_context import KEPT, KEPT_BYTES


@exit_on_input_error
def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument(
        "--shapes",
        nargs="*",
        type=shape,
        default=[(200, 8), (600, 10), (1000, 20), (600, 60)],
        help="rows x columns: 200x8 600x10",
    )
    parser.add_argument("--estimators", type=int, nargs="*", default=[1, 16])
    parser.add_argument("--batch-rows", type=int, nargs="*", default=[256, 1024])
    parser.add_argument("--most", type=int, default=4096, help="new rows in the largest call")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(options.threads)
    print(f"{options.threads} threads; at most {KEPT_BYTES / 1e6:.0f} MB kept between calls\n")
    print(
        "| rows x columns | `n_estimators` | `keep_context` | fit | first new row | another | "
        "hundred more | kept, MB |\n|---|---|---|---|---|---|---|---|",
        flush=True,
    )
    for n, d in options.shapes:
        x, s = table(n // 4, n - n // 4, d)
        for n_estimators in options.estimators:
            for keep in (False, True):
                show_latencies(options.model, n_estimators, keep, x, s)
    print(
        "\n| context | new rows | `batch_rows` | read for each batch | read once | ratio | again |"
        "\n|---|---|---|---|---|---|---|",
        flush=True,
    )
    for n_labeled, n_unlabeled, d in ((50, 150, 8), (300, 1000, 20)):
        x, s = table(n_labeled, n_unlabeled, d)
        for batch_rows in options.batch_rows:
            fitted = PUICLClassifier(
                options.model, n_estimators=1, device="cpu", batch_rows=batch_rows
            ).fit(x, s)
            show_batches(fitted, rows(options.most, d))


def shape(text: str) -> tuple[int, int]:
    """Parse "200x8" into rows and columns; raises `argparse.ArgumentTypeError` if invalid."""
    n, _, d = text.partition("x")
    if not (n.isdigit() and d.isdigit() and int(n) >= 8 and int(d)):
        raise argparse.ArgumentTypeError(
            f'"{text}": write rows, of which there are 8 or more, and columns, as in 200x8'
        )
    return int(n), int(d)


def table(n_labeled: int, n_unlabeled: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Random features and labels, with the labelled rows first."""
    n = n_labeled + n_unlabeled
    return np.random.default_rng(0).normal(size=(n, d)), np.arange(n) < n_labeled


def rows(m: int, d: int, seed: int = 1) -> np.ndarray:
    """Random new rows [m, d]."""
    return np.random.default_rng(seed).normal(size=(m, d))


def show_latencies(
    model: str | None, n_estimators: int, keep: bool, x: np.ndarray, s: np.ndarray
) -> None:
    """Measure and print one row of the first table."""
    classifier = PUICLClassifier(
        model, n_estimators=n_estimators, device="cpu", keep_context=keep, verbose=False
    )
    seconds = [timed(lambda: classifier.fit(x, s))[0]]
    for seed, m in ((1, 1), (2, 1), (3, 100)):
        new = rows(m, x.shape[1], seed)
        seconds.append(timed(lambda new=new: classifier.predict_proba(new))[0])
    scorer = classifier._new_rows
    own = sum(context.n_bytes for context in scorer._read.values())
    n_bytes = own if keep else KEPT.n_bytes
    print(
        f"| {len(x)} x {x.shape[1]} | {n_estimators} | {keep} | "
        + " | ".join(f"{each:.2f}" for each in seconds)
        + f" | {n_bytes / 1e6:.0f} |",
        flush=True,
    )


def show_batches(fitted: PUICLClassifier, new: np.ndarray) -> None:
    """Measure and print one row of the second table."""
    for_each, expected = timed(lambda: read_for_each_batch(fitted, new))
    once, found = timed(lambda: fitted._new_rows(new, fitted.batch_rows)[0])
    np.testing.assert_allclose(found, expected, atol=1e-3)
    again, _ = timed(lambda: fitted._new_rows(new, fitted.batch_rows))
    n, columns = fitted._new_rows.references[0].rows.shape
    print(
        f"| {n} x {columns} | {len(new)} | {fitted.batch_rows} | {for_each:.3f} s | "
        f"{once:.3f} s | {for_each / once:.2f} | {again:.3f} s |",
        flush=True,
    )


@torch.inference_mode()
def read_for_each_batch(fitted: PUICLClassifier, new: np.ndarray) -> np.ndarray:
    """Log-odds [m] from `PUICL.score_new_rows`, which reads the table again for each batch."""
    (reference,) = fitted._new_rows.references
    scaled = fitted._new_rows.scalings[reference.scaling](new)[:, reference.columns]
    context, asking = (torch.from_numpy(a.copy())[None] for a in (reference.rows, scaled))
    logits = torch.cat(
        [
            fitted.network_.score_new_rows(context, reference.n_labeled, part)[0]
            for part in asking.split(fitted.batch_rows, dim=1)
        ]
    )
    return (logits[:, 1] - logits[:, 0]).numpy()


def timed(action) -> tuple[float, np.ndarray]:
    """Processor seconds and result of `action()`."""
    start = time.process_time()
    answer = action()
    return time.process_time() - start, answer


if __name__ == "__main__":
    main()
