"""Loss curves of the trainer's float32 and bfloat16 steps against a plain float32 network.

All start from the same weights and use the same batches, optimizer and schedule, on one thread. The
plain network computes all tasks in one forward pass with PyTorch's own layers. Writes a picture and
prints a table.
"""

import argparse
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from matplotlib.figure import Figure
from plain_models import Batched
from small_plan import make_shards, small_config

from puicl_config import exit_on_input_error
from puicl_model.precision import computed_in
from shard_io import open_shards
from trainer.gradient import microbatch_gradient
from trainer.loader import load
from trainer.sampler import addresses_of_step
from trainer.schedule import learning_rate
from trainer.state import TrainState

WAYS = ("plain float32", "float32", "bfloat16")


def curve(way: str, steps: int, shards: Path) -> np.ndarray:
    """Training loss [steps] of one variant."""
    precision = "bfloat16" if way == "bfloat16" else "float32"
    config = small_config("train.device=cpu", f"train.precision={precision}")
    prior, train = config.prior, config.train
    state, reader = TrainState(config, torch.device("cpu")), open_shards(shards)
    plain, losses = Batched(state.model), []
    for step in range(steps):
        (address,) = addresses_of_step(prior, train, step)
        batch = load(reader, address)
        if way == "plain float32":
            state.gradient.zero_()
            logits = plain(batch.x, batch.n_labeled)
            loss = F.cross_entropy(logits.flatten(0, 1), batch.y.flatten())
            loss.backward()
            gradient = state.gradient.clone()
            losses.append(loss.item())
        else:
            row = microbatch_gradient(state, batch, train)
            gradient = row[:-1]
            losses.append(row[-1].item())
        state.update(gradient, learning_rate(prior, train, step))
    return np.array(losses)


def draw(curves: dict[str, np.ndarray], path: Path, window: int = 20) -> None:
    """Draw running means of the curves, over `window` steps or the length of the shortest curve."""
    window = min(window, *map(len, curves.values()))
    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    axes = figure.subplots()
    for way, losses in curves.items():
        smooth = np.convolve(losses, np.ones(window) / window, mode="valid")
        axes.plot(np.arange(window, len(losses) + 1), smooth, label=way)
    axes.set(xlabel="step", ylabel=f"loss, mean of {window} steps")
    axes.legend(frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)


@exit_on_input_error
def main() -> None:
    """Train each variant, draw, and print how far the curves are apart."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("results/loss_curves"))
    parser.add_argument("--steps", type=int, default=300)
    options = parser.parse_args()
    most = small_config().prior.total_steps
    if not 2 <= options.steps <= most:
        parser.error(f"--steps must be from 2 to {most}, the steps of the small plan")
    torch.set_num_threads(1)
    if computed_in("bfloat16", torch.device("cpu")) != "bfloat16":
        print("this processor computes the bfloat16 curve in float32")
    shards, _ = make_shards(options.out, jobs=1)
    curves = {}
    for way in WAYS:
        curves[way] = curve(way, options.steps, shards)
        print(f"{way} done", flush=True)
    draw(curves, options.out / "loss_curves.png")
    plain = curves[WAYS[0]]
    noise = plain.std(ddof=1) / len(plain) ** 0.5
    print(
        f"\n| way | mean loss of {len(plain)} steps | of the last 50 | mean difference to plain |"
    )
    print("|---|---|---|---|")
    for way, losses in curves.items():
        difference = losses - plain
        error = difference.std(ddof=1) / len(plain) ** 0.5
        print(
            f"| {way} | {losses.mean():.5f} | {losses[-50:].mean():.5f} | "
            f"{difference.mean():+.5f} ± {error:.5f} |"
        )
    print(f"\nStandard error of the plain curve's mean, over its steps: {noise:.5f}")


if __name__ == "__main__":
    main()
