"""Generate parts of the model card: origin, benchmark and sweeps.

`python -m pu_bench.report.card docs/model_card.md` rewrites the text between the markers, from the
cards of the shipped weights and from results/published; with `--check` it only tells by its exit
status whether the document would change.
"""

import json
from pathlib import Path
from typing import Any

from pu_bench.report.generated import plain_table, renew_from_results, renewed
from pu_bench.report.results import CHANCE, load_results, read_cells
from pu_bench.report.tables import modelled_on, number
from pu_bench.run.files import RESULTS, SWEEP_RESULTS
from pu_bench.sweeps.sweeps import SWEEPS
from puicl_config import duration, exit_on_input_error
from puicl_model import find_weights, shipped_weights

_NOT_YET = "Not measured for these weights yet."
_OURS = "puicl"


def origin(card: dict[str, Any]) -> str:
    """Markdown: the network and training of shipped weights, from their card."""
    model, prior = card["model"], card["config"]["prior"]
    where = card["environments"][-1]
    tasks = prior["microbatches_per_step"] * prior["tasks_per_microbatch"]
    rows = {
        "network": f"{model['layers']} blocks, {model['embedding_size']} wide, "
        f"{model['feature_heads'] or model['heads']} and {model['row_heads'] or model['heads']} "
        f"heads, {model['norm']}, {model['thinking_rows']} thinking rows, columns embedded in "
        f"groups of {len(model['feature_group'])}",
        "last run": f"{card['steps']:,} steps of {tasks} tasks in "
        f"{duration(card['training_seconds'])}, on {where['gpu'] or where['cpu']}, torch "
        f"{where['torch']}",
        **_between(card),
        "runs before it": ", ".join(f"{a['step']:,} steps" for a in card["lineage"]) or "none",
        "code": _commit(card["git_commit"]),
        "digest of the weights": f"`{card['weights_digest']}`",
        "digest of the run": f"`{card['run_digest']}`",
        "digest of the plan": f"`{card['plan_digest']}`",
        "hash of the parts consumed": f"`{card['data']}`",
    }
    return plain_table(["", ""], [[name, value] for name, value in rows.items()])


def _commit(commit: str | None) -> str:
    if commit is None:
        return "an installed package, no checkout"
    digest, _, changed = commit.partition("-")
    return f"commit `{digest[:12]}`" + (", with changes" if changed else "")


def _between(card: dict[str, Any]) -> dict[str, str]:
    share = card.get("start_share")
    if not share:
        return {}
    start = "those it began from"
    if "back_to" in card:
        start = f"those of its ancestor `{card['back_to'][:12]}`"
    return {"weights": f"{share:.0%} {start}, {1 - share:.0%} those at its end"}


def benchmark(folder: Path) -> str:
    """Markdown: means over the 20 tasks of the shipped weights and their variants."""
    if not (folder / RESULTS).is_file():
        return _NOT_YET
    results = load_results(folder)
    ours = [name for name in results.methods if name.split("_")[0] == _OURS]
    if not ours:
        return _NOT_YET
    metrics = ["accuracy", "f1_negative", "brier", "ece", "pi_error"]
    elsewhere = modelled_on(results)
    rows = []
    for name in ours:
        auc = [results.mean_and_sd(name, "auc")[0]]
        auc += [results.auc_elsewhere(name)] * bool(elsewhere)
        others = [results.mean_and_sd(name, metric)[0] for metric in metrics]
        rows.append([results.title(name), *map(number, auc + others)])
    head = ["", "AUC", *["AUC¹"] * bool(elsewhere)]
    head += ["accuracy", "F1 (negative)", "Brier", "ECE", "error of π̂"]
    return plain_table(head, rows) + (elsewhere and f"\n\n¹ {elsewhere}")


# Without this note, the table seems to say that more columns help, and that five labelled rows say
# more about the share than three hundred.
_READ_WITH_CARE = (
    "Tasks are counted by the table they are drawn from; of columns as many tables as have enough, "
    "so that this curve compares other tables, too. But for the sweep of their share, half of the "
    "unlabelled rows are positive. Who can tell nothing says one half and is right: the small "
    "errors of π̂ with 5 and 10 labelled rows are no skill "
    "([few rows](weights/sizes.md#few-rows) has shares that vary)."
)


def sweeps(folder: Path) -> str:
    """Markdown: AUC, accuracy and error of the class prior by the varied property."""
    if not (folder / SWEEP_RESULTS).is_file():
        return _NOT_YET
    cells = read_cells(folder / SWEEP_RESULTS)
    cells = cells[cells.method == _OURS]
    if cells.empty:
        return _NOT_YET
    metrics = ["auc", "accuracy", "pi_error"]
    cells = cells.assign(auc=cells.auc.where(cells.error.isna(), CHANCE))  # as in the report
    by_pool = cells.groupby(["sweep", "kind", "value", "pool"])[metrics].mean()
    points = by_pool.groupby(["sweep", "kind", "value"])
    n_tasks = points.size()
    rows = []
    for point, mean in points.mean().iterrows():
        sweep, kind, value = point
        figures = [number(mean[metric]) for metric in metrics]
        rows.append([SWEEPS[sweep].label, f"{value:g}", f"{n_tasks[point]} {kind}", *figures])
    table = plain_table(["varied", "value", "tasks", "AUC", "accuracy", "error of π̂"], rows)
    return f"{table}\n\n{_READ_WITH_CARE}"


def with_blocks(text: str, results: Path) -> str:
    """A model card with its blocks renewed; raises `InputError` if a marker is missing."""
    blocks = {}
    for name in shipped_weights():
        card = json.loads(find_weights(name).with_suffix(".json").read_text(encoding="utf-8"))
        blocks[f"origin of {name}"] = origin(card)
    blocks |= {"benchmark": benchmark(results), "sweeps": sweeps(results)}
    return renewed(text, blocks)


@exit_on_input_error
def main() -> None:
    """Command line."""
    renew_from_results(__doc__, Path("docs/model_card.md"), with_blocks)


if __name__ == "__main__":
    main()
