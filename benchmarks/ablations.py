"""An ablation on one set of shards: orders of the same data, and subsets of it by tags.

Generates the small plan once, trains each variant with the trainer as a user would (one override
each, several seeds), and writes `table.md` and `curves.png`. Run again, it resumes: complete runs
are not repeated.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import torch
from how_many import count
from small_plan import PLAN, evaluated, make_shards, small_config
from where_to import output_folder

from puicl_config import exit_on_input_error
from puicl_model import load_model
from shard_io import slice_shards
from trainer import draw_curves
from trainer.heldout import HeldoutSet
from trainer.ledger import read_ledger
from trainer.world import World

MAIN = Path(__file__).resolve().parent.parent / "trainer" / "main.py"
VARIANTS = {
    "curriculum": (),
    "shuffled": ("train.sampler=shuffled",),
    "interleaved": ("train.sampler=interleaved",),
    "reverse": ("train.sampler=reverse",),
    "fixed stage 1": ("train.sampler=fixed_stage", "train.fixed_stage=1"),
    "fixed stage 5": ("train.sampler=fixed_stage", "train.fixed_stage=5"),
    "tail only": ("train.sampler=tail_only",),
    "causal only": ("train.where=causal",),
    "non-causal only": ("train.where=not causal",),
    "supervised peer": ("train.reveal=both",),
}
SUBSETS = {"causal": "causal", "non-causal": "not causal"}


def folder_of(out: Path, variant: str, seed: int) -> Path:
    """The folder of a variant's run."""
    return out / f"{variant.replace(' ', '-')}-{seed}"


def is_done(run: Path) -> bool:
    """Whether a run has completed all its steps."""
    card = run / "model.json"
    if not card.is_file():
        return False
    facts = json.loads(card.read_text())
    return facts["steps"] == facts["of_steps"]


def train(run: Path, shards: Path, heldout: Path, overrides: tuple[str, ...], seed: int) -> None:
    """Run the trainer once, in a separate process."""
    command = [sys.executable, MAIN, "--config", "demo", "--shards", shards, "--out", run]
    options = [f"train.heldout={heldout}", "train.heldout_every=100", "train.log_every=25"]
    command += [*PLAN, *options, f"train.seed={seed}", *overrides]
    run_or_exit(command, stdout=subprocess.DEVNULL)


def run_or_exit(command: list, **options) -> None:
    """Run a command; if it fails, exit with its status, since it has printed the reason."""
    if status := subprocess.run([str(word) for word in command], check=False, **options).returncode:
        sys.exit(status)


def figures_of(run: Path, folders: dict[str, Path]) -> dict[str, float]:
    """AUC of a run's final weights on each folder, cached beside the weights."""
    path = run / "heldout.json"
    if not path.is_file():
        figures = {name: heldout_auc(run, folder) for name, folder in folders.items()}
        path.write_text(json.dumps(figures), encoding="utf-8")
    return json.loads(path.read_text(encoding="utf-8"))


def after_steps(run: Path, step: int) -> float:
    """Held-out AUC that the run logged at `step`."""
    lines = read_ledger(run / "metrics.jsonl")
    figures = [line for line in lines if "heldout_auc" in line]
    return next(line["heldout_auc"] for line in figures if line["step"] == step)


def heldout_auc(run: Path, heldout: Path) -> float:
    """AUC of a run's final weights on 100 microbatches of a held-out folder or slice."""
    model, _ = load_model(run / "model.safetensors")
    config = small_config(
        f"train.heldout={heldout}", "train.heldout_microbatches=100", "train.precision=float32"
    )
    config = config.model_copy(update={"model": model.config})
    world = World(0, 1, torch.device("cpu"))
    return evaluated(HeldoutSet(config, world), model.state_dict()).auc


def table(out: Path, folders: dict[str, Path], seeds: list[int]) -> str:
    """Markdown: AUC on all, causal and non-causal held-out tasks, mean over seeds and each seed."""
    lines = [
        "| variant | override | AUC after 100 steps | AUC at the end (each seed) | on causal | "
        "on non-causal | reuse |",
        "|---|---|---|---|---|---|---|",
    ]
    for variant, overrides in VARIANTS.items():
        runs = [folder_of(out, variant, seed) for seed in seeds]
        runs = [run for run in runs if is_done(run)]
        if not runs:
            continue
        each_run = [figures_of(run, folders) for run in runs]
        figures = {name: [run[name] for run in each_run] for name in folders}
        each = ", ".join(f"{value:.3f}" for value in figures["heldout"])
        early = ", ".join(f"{after_steps(run, 100):.3f}" for run in runs)
        reuse = json.loads((runs[0] / "model.json").read_text())["reuse"]
        means = [f"{np.mean(figures[name]):.3f}" for name in ("heldout", "causal", "non-causal")]
        lines.append(
            f"| {variant} | `{' '.join(overrides) or '–'}` | {early} | **{means[0]}** ({each}) | "
            f"{means[1]} | {means[2]} | {reuse:.3g} |"
        )
    return "\n".join(lines) + "\n"


@exit_on_input_error
def main() -> None:
    """Train missing runs while time allows, then write table and curves of the finished ones."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("results/ablations"))
    parser.add_argument("--seeds", type=count, default=2)
    parser.add_argument("--jobs", type=count, default=1, help="workers that generate the shards")
    parser.add_argument(
        "--seconds", type=float, default=float("inf"), help="start no run after this many seconds"
    )
    parser.add_argument("--variants", nargs="*", default=list(VARIANTS), choices=list(VARIANTS))
    options = parser.parse_args()
    out, seeds = output_folder(options.out), list(range(options.seeds))
    shards, heldout = make_shards(out, options.jobs)
    folders = {"heldout": heldout}
    for name, where in SUBSETS.items():
        folders[name] = out / f"heldout-{name}"
        slice_shards(heldout, where, folders[name])
    began = time.monotonic()
    for seed in seeds:
        for variant in options.variants:
            run = folder_of(out, variant, seed)
            if not is_done(run) and time.monotonic() - began < options.seconds:
                train(run, shards, heldout, VARIANTS[variant], seed)
    text = table(out, folders, seeds)
    (out / "table.md").write_text(text, encoding="utf-8")
    print(text)
    drawn = [folder_of(out, variant, 0) for variant in VARIANTS]
    if runs := [run for run in drawn if is_done(run)]:
        draw_curves(runs, out / "curves.png", smooth=50)


if __name__ == "__main__":
    main()
