"""What each group of the prior's extensions is worth on real tables: an ablation at equal steps.

    python benchmarks/prior_extensions.py --init CHECKPOINT --data DEVELOPMENT --out DIR

Continues training from one checkpoint (ideally one trained on the paper's prior alone), once for
each variant of the prior, with the same steps, tasks and learning rates; rows and columns are drawn
from the same ranges. Then `puicl bench` scores the folder of tables with each network, one pass a
table. Differences are paired by table; ± is their standard error over the tables. Run again, it
does only what is missing.
"""

import argparse
import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from ablations import is_done, run_or_exit

from prior_gen.generator import generate_shards
from pu_bench.data import load_collection
from puicl_config import exit_on_input_error, load_config
from shard_io import open_shards
from trainer.start import start_digest

MAIN = Path(__file__).resolve().parent.parent / "trainer" / "main.py"
STAGES = 10
ALL = (
    "prior.n_features=[2, 8]",
    "prior.n_labeled=[24, 120]",
    "prior.microbatches_per_step=8",
    "prior.tasks_per_microbatch=2",
    "prior.extensions.max_rows=400",
    "prior.extensions.tree_labels=0.25",
    "prior.extensions.rule_labels=0.4",
    "prior.extensions.factorial=0.3",
    "prior.extensions.proportional=0.12",
)
VARIANTS = {
    "the paper's prior": ("share=0.0",),
    "all extensions": (),
    "no labels from trees and rules": (
        "tree_labels=0.0",
        "rule_labels=0.0",
        "independent=0.0",
        "factorial=0.0",
    ),
    "no other columns": (
        "discrete=0.0",
        "warped=0.0",
        "irrelevant=0.0",
        "duplicated=0.0",
        "proportional=0.0",
        "missing=0.0",
    ),
    "no other classes": ("free_border=0.0", "label_noise=0.0", "eta=null", "pi=null"),
}
WHAT = {
    "the paper's prior": "share = 0",
    "all extensions": "",
    "no labels from trees and rules": "and no designs: all labels are the SCM's",
    "no other columns": "no discrete, warped, irrelevant, duplicated, proportional, missing cells",
    "no other classes": "no border of its own, no noise, eta and pi the paper's",
}


def settings(variant: str, seed: int, options: argparse.Namespace) -> list[str]:
    """Overrides of the config for a variant: its prior and training."""
    return [
        *ALL,
        *(f"prior.extensions.{each}" for each in VARIANTS[variant]),
        f"prior.seed={1000 + seed}",
        f"prior.stages={STAGES}",
        f"prior.steps_per_stage={options.steps // STAGES}",
        "prior.tail_steps=0",
        "train.sampler=shuffled",
        f"train.phase1={{peak: {options.peak}, floor: 0.0, warmup_steps: 10}}",
        "train.decay_exponent=1.0",
        "train.ema_decay=0.97",
        "train.reveal_negatives={share: 0.0, until: 0.5}",
        f"train.seed={seed}",
        "name=prior_extensions",
    ]


def results_of(variant: str, seed: int, options: argparse.Namespace) -> pd.DataFrame:
    """Scores of a variant's network on each table; trains and measures it if not done yet."""
    folder = options.out / f"{'-'.join(re.findall(r'[a-z]+', variant))}-{seed}"
    overrides = settings(variant, seed, options)
    overrides.append(f"train.init_from={options.init}")
    config = load_config(options.config, overrides)
    generate_shards(config, folder / "shards", range(1, config.prior.total_stages + 1), jobs=1)
    run, bench = folder / "run", folder / "bench"
    # Both commands resume, do nothing if all is done, or refuse a folder made with other options.
    if not is_done(run) or load_config(run / "config.yaml") != config:
        command = [sys.executable, MAIN, "--config", options.config, "--shards", folder / "shards"]
        command += ["--out", run, *overrides]
        run_or_exit(command)
    command = [Path(sys.executable).parent / "puicl", "bench", "--data", options.data]
    command += ["--methods", "puicl_single", "--model", run / "model.safetensors"]
    command += ["--repeats", options.repeats, "--jobs", 1, "--out", bench, "--new-weights"]
    run_or_exit(command)
    results = pd.read_csv(bench / "results.csv")
    results = results[results.repeat < options.repeats]
    return results.assign(seed=seed, cells=cells_of(folder / "shards"))


def cells_of(shards: Path) -> float:
    """Mean number of feature cells in a step."""
    reader = open_shards(shards)
    cells, steps = 0, set()
    for part in reader.published_parts():
        for position in reader.positions(part):
            batch = reader.part(part)[position]
            cells += int(np.prod(batch.x.shape))
            steps.add(tuple(batch.address[:2]))
    return cells / len(steps)


@exit_on_input_error
def main() -> None:
    """Train and measure what is missing; print one Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--init", type=Path, required=True, help="checkpoint from which to continue training"
    )
    parser.add_argument("--data", type=Path, required=True, help="tables, as for `puicl bench`")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--config", default="cpu")
    parser.add_argument("--steps", type=int, default=150, help="a multiple of ten")
    parser.add_argument("--peak", type=float, default=6e-4)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--variants", nargs="+", default=list(VARIANTS), choices=list(VARIANTS))
    options = parser.parse_args()
    if options.steps < STAGES or options.steps % STAGES:
        parser.error(f"--steps must be a multiple of {STAGES}: a plan has as many stages")
    # Check now: otherwise missing tables are noticed only after shards and a network are made.
    start_digest(str(options.init))
    load_collection(options.data)
    found = {
        variant: pd.concat([results_of(variant, seed, options) for seed in options.seeds])
        for variant in options.variants
    }
    print("| prior | | cells a step | AUC (each seed) | accuracy | AUC against all extensions |")
    print("|---|---|---|---|---|---|")
    for variant, results in found.items():
        each = results.groupby("seed").auc.mean()
        against = ""
        if variant != "all extensions" and "all extensions" in found:
            base = found["all extensions"].groupby("task").auc.mean()
            difference = results.groupby("task").auc.mean() - base
            error = difference.std() / np.sqrt(len(difference))
            against = f"{difference.mean():+.4f} ± {error:.4f}"
        print(
            f"| {variant} | {WHAT[variant]} | {results.cells.mean():,.0f} | **{each.mean():.4f}** "
            f"({', '.join(f'{x:.4f}' for x in each)}) | {results.accuracy.mean():.3f} | {against} |"
        )


if __name__ == "__main__":
    main()
