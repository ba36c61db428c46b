"""CPU seconds for new rows: the context read once a call, against once for each batch of rows.

    python benchmarks/new_rows.py --model M.safetensors

One estimator, random numbers. "again" is a second call on a classifier that kept its context.
"""

import argparse
import time
import warnings

import numpy as np
import torch

from puicl_model import PUICLClassifier
from puicl_model.read_context import KEPT, KEPT_BYTES


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--batch-rows", type=int, nargs="*", default=[256, 1024])
    parser.add_argument("--most", type=int, default=4096, help="new rows in the largest call")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(options.threads)
    print(f"{options.threads} threads; at most {KEPT_BYTES / 1e6:.0f} MB kept between calls\n")
    print(
        "| context | new rows | batch_rows | read for each batch | read once | ratio | again | "
        "context, MB |\n|---|---|---|---|---|---|---|---|"
    )
    for n_labeled, n_unlabeled, d in ((50, 150, 8), (300, 1000, 20)):
        x = np.random.default_rng(0).normal(size=(n_labeled + n_unlabeled, d))
        s = np.arange(len(x)) < n_labeled
        for batch_rows in options.batch_rows:
            for m in (1, options.most):
                new = np.random.default_rng(1).normal(size=(m, d))
                fitted = PUICLClassifier(
                    options.model, n_estimators=1, device="cpu", batch_rows=batch_rows
                ).fit(x, s)
                show(fitted, new)


def show(fitted: PUICLClassifier, new: np.ndarray) -> None:
    """One row."""
    for_each, expected = timed(lambda: read_for_each_batch(fitted, new))
    once, found = timed(lambda: fitted._new_rows(new, fitted.batch_rows)[0])
    np.testing.assert_allclose(found, expected, atol=1e-3)
    again, _ = timed(lambda: fitted._new_rows(new, fitted.batch_rows))
    (reference,) = fitted._new_rows.references
    read = KEPT.get(reference, 0, lambda: None)
    rows, columns = reference.rows.shape
    print(
        f"| {rows} x {columns} | {len(new)} | {fitted.batch_rows} | {for_each:.3f} s | "
        f"{once:.3f} s | {for_each / once:.2f} | {again:.3f} s | {read.n_bytes / 1e6:.0f} |",
        flush=True,
    )


@torch.inference_mode()
def read_for_each_batch(fitted: PUICLClassifier, new: np.ndarray) -> np.ndarray:
    """Log-odds [m] from `PUICL.score_new_rows`, which reads the table each time."""
    (reference,) = fitted._new_rows.references
    scaled = fitted._new_rows.scalings[reference.scaling](new)[:, reference.columns]
    table, rows = (torch.from_numpy(a.copy())[None] for a in (reference.rows, scaled))
    logits = torch.cat(
        [
            fitted.network_.score_new_rows(table, reference.n_labeled, part)[0]
            for part in rows.split(fitted.batch_rows, dim=1)
        ]
    )
    return (logits[:, 1] - logits[:, 0]).numpy()


def timed(action) -> tuple[float, np.ndarray]:
    """Seconds, and what came out."""
    start = time.process_time()
    answer = action()
    return time.process_time() - start, answer


if __name__ == "__main__":
    main()
