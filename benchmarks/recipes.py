"""Compare recipes at equal processor time: optimizer, architecture, precision, shapes of tasks.

Each recipe changes one thing. All read the same shards, except the two whose tasks have other
shapes. Runs one process with one thread. Processor time of the steps alone is counted, so that
other work on the machine neither favours nor harms a recipe. Appends a line for each run to
`results.jsonl`; run again, it does only what is missing. The measure is the AUC of the moving
average on held-out tasks.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
import torch
from how_many import count
from small_plan import evaluated, make_shards, shards_of, small_config
from torch import Tensor
from where_to import output_folder

from puicl_config import Config, exit_on_input_error
from shard_io import open_shards
from trainer.gradient import microbatch_gradient
from trainer.heldout import HeldoutSet
from trainer.loader import load, rounded
from trainer.reveal import revealed_share
from trainer.sampler import addresses_of_step
from trainer.schedule import learning_rate
from trainer.state import TrainState
from trainer.world import World

# The learning rate is constant after warm-up: a schedule would favour recipes that complete it.
BASE = (
    "train.sampler=shuffled",
    "train.precision=float32",
    "train.phase2={peak: 1.0e-3, floor: 1.0e-3, warmup_steps: 0}",
)
MUON = ("train.optimizer=muon", "train.muon_lr_ratio=6")
TOGETHER = ("model.norm=rmsnorm", "model.thinking_rows=16", "model.feature_group=[0,1,3]")
WIDE_HEADS = ("model.feature_heads=2", "model.row_heads=1")
# Other shapes of tasks, with about as many cells; held-out tasks are the base's.
MORE_ROWS = ("prior.n_features=[2, 4]", "prior.n_labeled=[27, 80]")
MORE_COLUMNS = ("prior.n_features=[3, 16]", "prior.n_labeled=[8, 26]")


def rate(value: str) -> tuple[str, ...]:
    """Overrides that set a constant learning rate for both phases."""
    return tuple(f"train.{phase}.{end}={value}" for phase in ("phase1", "phase2")
                 for end in ("peak", "floor"))  # fmt: skip


RECIPES = {
    "base: AdamW, LayerNorm, 4 heads of 16": (),
    "Muon for the blocks' matrices": MUON,
    "RMSNorm": ("model.norm=rmsnorm",),
    "16 thinking rows": ("model.thinking_rows=16",),
    "feature groups (0, 1, 3)": ("model.feature_group=[0,1,3]",),
    "2 and 1 heads (of 32 and 64)": WIDE_HEADS,
    "negatives shown at first": (
        "model.reveals_negatives=true",
        "train.reveal_negatives={share: 0.5, until: 0.5}",
    ),
    "scalable softmax": ("model.scalable_softmax=true",),
    "bfloat16": ("train.precision=bfloat16",),
    "rows in multiples of 8": ("train.round_rows=8",),
    "more rows, fewer columns": MORE_ROWS,
    "fewer rows, more columns": MORE_COLUMNS,
    "learning rate 3e-3": rate("3.0e-3"),
    "learning rate 3e-4": rate("3.0e-4"),
    "Muon, RMSNorm, thinking rows, groups, heads": (*MUON, *TOGETHER, *WIDE_HEADS),
}
VERSION = 2  # incremented when lines do not compare: since 2, compilation is not timed
LAWA = 5  # snapshots, one every 4 % of the time


def config_of(recipe: str, seed: int, heldout: Path) -> Config:
    """A recipe's config, with the base's warm-up."""
    options = (f"train.seed={seed}", "train.device=cpu", f"train.heldout={heldout}")
    return small_config(*BASE, *options, *RECIPES[recipe])


def plan_overrides(recipe: str) -> list[str]:
    """The recipe's overrides that need other shards."""
    return [option for option in RECIPES[recipe] if option.startswith("prior.")]


def measure(recipe: str, seed: int, seconds: float, shards: Path, heldout: Path) -> dict:
    """Train for `seconds` of processor time; returns AUC of EMA, last weights and LAWA."""
    config = config_of(recipe, seed, heldout)
    prior, train = config.prior, config.train
    world = World(0, 1, torch.device("cpu"))
    state, reader = TrainState(config, world.device), open_shards(shards)
    heldout_set = HeldoutSet(config, world)
    spent, early = 0.0, None
    snapshots: list[dict[str, Tensor]] = []
    nothing = torch.zeros(())
    # Compile code before the clock starts.
    first = load(reader, addresses_of_step(prior, train, 0)[0])
    microbatch_gradient(state, rounded(first, train.round_rows), train, 0.0)
    while spent < seconds:
        step = state.step
        # Steps beyond the plan read it again, in the same order.
        addresses = addresses_of_step(prior, train, step % prior.total_steps)
        batches = [rounded(load(reader, a), train.round_rows) for a in addresses]
        share = revealed_share(prior, train, step)
        began = time.process_time()
        gradients = (microbatch_gradient(state, batch, train, share) for batch in batches)
        total = sum(gradients, nothing)
        total /= len(batches)
        state.update(total[:-1], learning_rate(prior, train, min(step, prior.total_steps - 1)))
        spent += time.process_time() - began
        if early is None and spent >= seconds / 3:
            early = evaluated(heldout_set, state.ema).auc
        if spent >= seconds * (1 - 0.04 * (LAWA - len(snapshots))):
            snapshots.append({n: p.detach().double() for n, p in state.parameters.items()})
    mean = {n: sum((s[n] for s in snapshots), nothing) / len(snapshots) for n in snapshots[0]}
    figures = evaluated(heldout_set, state.ema)
    return {
        "version": VERSION,
        "recipe": recipe,
        "seed": seed,
        "seconds": seconds,
        "steps": state.step,
        "parameters": sum(p.numel() for p in state.parameters.values()),
        "auc_early": early,
        "auc": figures.auc,
        "accuracy": figures.accuracy,
        "loss": figures.loss,
        "auc_last": evaluated(heldout_set, {**state.parameters}).auc,
        "auc_lawa": evaluated(heldout_set, mean).auc,
    }


def table(lines: list[dict]) -> str:
    """Markdown: each recipe against the base with the same seeds."""
    rows = [
        "| recipe | weights | steps | AUC after a third | AUC at the end (each seed) | "
        "against base | loss | AUC, last weights | AUC, mean of last 5 |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    base_name = next(iter(RECIPES))
    base = {line["seed"]: line["auc"] for line in lines if line["recipe"] == base_name}
    for recipe in RECIPES:
        runs = sorted((r for r in lines if r["recipe"] == recipe), key=lambda r: r["seed"])
        if not runs:
            continue
        each = ", ".join(f"{run['auc']:.3f}" for run in runs)
        shared = [run["auc"] - base[run["seed"]] for run in runs if run["seed"] in base]
        against = f"{np.mean(shared):+.3f}" if shared and recipe != base_name else "–"
        names = ("steps", "auc_early", "auc", "loss", "auc_last", "auc_lawa")
        mean = {name: np.mean([run[name] for run in runs]) for name in names}
        rows.append(
            f"| {recipe} | {runs[0]['parameters']:,} | {mean['steps']:.0f} | "
            f"{mean['auc_early']:.3f} | **{mean['auc']:.3f}** ({each}) | {against} | "
            f"{mean['loss']:.4f} | {mean['auc_last']:.3f} | {mean['auc_lawa']:.3f} |"
        )
    return "\n".join(rows) + "\n"


@exit_on_input_error
def main() -> None:
    """Measure what is missing while time allows, then print the table of finished runs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("results/recipes"))
    parser.add_argument("--seeds", type=count, default=2)
    parser.add_argument(
        "--train-seconds", type=float, default=20, help="processor seconds of a run"
    )
    parser.add_argument("--jobs", type=count, default=1, help="workers that generate the shards")
    parser.add_argument(
        "--seconds", type=float, default=float("inf"), help="start no run after this many seconds"
    )
    parser.add_argument("--only", nargs="*", default=list(RECIPES), choices=list(RECIPES))
    options = parser.parse_args()
    output_folder(options.out)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    _, heldout = make_shards(options.out, options.jobs)
    began = time.monotonic()
    path = options.out / "results.jsonl"
    done = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    like = (VERSION, options.train_seconds)
    done = [line for line in done if (line.get("version"), line["seconds"]) == like]
    for seed in range(options.seeds):
        for recipe in options.only:
            if any((line["recipe"], line["seed"]) == (recipe, seed) for line in done):
                continue
            if time.monotonic() - began > options.seconds:
                continue
            shards = shards_of(options.out, options.jobs, plan_overrides(recipe))
            done.append(measure(recipe, seed, options.train_seconds, shards, heldout))
            with path.open("a") as file:
                file.write(json.dumps(done[-1]) + "\n")
            print(json.dumps(done[-1]), flush=True)
    text = table(done)
    (options.out / "table.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
