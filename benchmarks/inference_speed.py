"""Milliseconds and errors of a forward pass without gradient, against a plain float32 one.

Runs in one process; the variants take turns, and the median of each counts.
"""

import argparse
import statistics
import time

import torch
from how_many import count
from plain_models import Batched, check_logits
from real_tables import weights_file

from puicl_config import exit_on_input_error, load_config
from puicl_model import PUICL, load_model


@exit_on_input_error
def main() -> None:
    """Print the times, their ratios, and the largest difference of a probability."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", help="weights to use; by default the paper's model, untrained")
    parser.add_argument("--labeled", type=count, default=200)
    parser.add_argument("--unlabeled", type=count, default=800)
    parser.add_argument("--features", type=count, default=20)
    parser.add_argument("--threads", type=count, default=2)
    parser.add_argument("--rounds", type=count, default=5)
    options = parser.parse_args()
    weights = weights_file(options.model) if options.model else None
    torch.set_num_threads(options.threads)
    model = load_model(weights)[0] if weights else PUICL(load_config("paper").model)
    model.eval()
    check_logits(model)
    plain = Batched(model)
    generator = torch.Generator().manual_seed(0)
    rows = options.labeled + options.unlabeled
    x = torch.randn(1, rows, options.features, generator=generator)
    # Shift the labelled positives, so that there is something to learn.
    x[:, : options.labeled] += 0.5

    def ours(precision: str):
        def call() -> torch.Tensor:
            model.precision = precision
            return model(x, options.labeled)

        return call

    ways = {
        "plain float32": lambda: plain(x, options.labeled),
        "PUICL, float32": ours("float32"),
        "PUICL, bfloat16": ours("bfloat16"),
    }
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    positive = {}
    with torch.inference_mode():
        for number in range(options.rounds + 1):
            for name, call in ways.items():
                start = time.perf_counter()
                logits = call()
                if number:  # the first round warms up
                    seconds[name].append(time.perf_counter() - start)
                positive[name] = logits.float().softmax(-1)[..., 1]
    print(
        f"{options.labeled} + {options.unlabeled} rows x {options.features} features, "
        f"{options.threads} threads"
    )
    print(f"{'':20}{'ms':>8}{'ratio':>8}{'largest difference of P':>26}{'mean':>10}")
    first = statistics.median(seconds["plain float32"])
    for name in ways:
        median = statistics.median(seconds[name])
        apart = (positive[name] - positive["plain float32"]).abs()
        print(
            f"{name:20}{1e3 * median:8.0f}{first / median:8.2f}{apart.max().item():26.1e}"
            f"{apart.mean().item():10.1e}"
        )


if __name__ == "__main__":
    main()
