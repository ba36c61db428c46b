"""Write `report.md`, `report.html` and `figures/` from a results folder."""

from pathlib import Path
from typing import Any

from pu_bench.data import left_out_words
from pu_bench.report import figures, figures_probability, tables
from pu_bench.report.blocks import Block, Heading, Paragraph, to_html, to_markdown
from pu_bench.report.results import Results, load_results
from pu_bench.report.statistics import FEWEST_TASKS, friedman
from pu_bench.report.style import Picture
from puicl_config import counted, write_atomically

MARKDOWN, PAGE, PICTURES = "report.md", "report.html", "figures"


def write_report(folder: Path) -> Path:
    """Write the report of a results folder into that folder; returns the HTML page's path.

    Raises `InputError` as `load_results` does.
    """
    results = load_results(folder)
    blocks = report_blocks(results)
    title = (
        f"PU benchmark: {counted(len(results.methods) + len(results.references), 'method')} on "
        f"{counted(len(results.tasks), 'task')}"
    )
    (folder / PICTURES).mkdir(exist_ok=True)
    for block in blocks:
        if isinstance(block, Picture):
            write_atomically(folder / PICTURES / f"{block.name}.png", block.png)
    write_atomically(folder / MARKDOWN, to_markdown(title, blocks, PICTURES).encode())
    write_atomically(folder / PAGE, to_html(title, blocks).encode())
    return folder / PAGE


def report_blocks(results: Results) -> list[Block]:
    """The blocks of the whole report, which depend on the results alone."""
    comparable = len(results.methods) > 1
    n_judged, methods_judged = results.judged_auc().shape
    tested = methods_judged > 1 and n_judged >= FEWEST_TASKS
    blocks: list[Block | None] = [
        *_introduction(results),
        Heading("Summary"),
        tables.summary(results),
    ]
    if results.is_paper:
        beside = [tables.beside_the_paper(results, m) for m in ("auc", "accuracy", "f1_negative")]
        if any(beside):
            blocks += [Heading("Beside the paper"), Paragraph(_F1), *beside]
    blocks += [Heading("AUC by task")]
    if comparable:
        blocks.append(figures.dots_by_task(results))
    blocks += [
        tables.by_task(results, "auc"),
        Heading("Accuracy and F1 by task"),
        *(tables.by_task(results, m) for m in ("accuracy", "f1_negative", "f1_positive")),
    ]
    blocks += [Heading("Ranks and tests"), *(_tests(results) if tested else _too_few(results))]
    blocks += [
        Heading("Estimated share of positives"),
        figures_probability.prior_errors(results),
        Heading("Calibration"),
        figures_probability.calibration(results),
        Heading("Time"),
        figures.time_against_auc(results),
        Heading("Failures"),
        tables.failures(results) or Paragraph("No cell failed."),
        Heading("How it was run"),
        *_environment(results),
    ]
    return [block for block in blocks if block is not None]


_F1 = (
    "The paper does not say of which class its F1 is; its printed values are arithmetically "
    "possible only for the negative one (Haberman: accuracy 0.682 and F1 0.395 with 65 % "
    "positives), so F1 (negative) is the column to hold against it. The splits are ours, drawn by "
    "the same protocol."
)


def _introduction(results: Results) -> list[Block]:
    cells = results.cells
    repeats = cells.groupby(["task", "method"]).repeat.nunique()
    whole = len(results.tasks) * (len(results.methods) + len(results.references)) * repeats.max()
    some = f"{cells.repeat.nunique()} repeats" if repeats.max() > 1 else "1 repeat"
    parts: list[Block] = [
        Paragraph(
            f"{len(cells):,} finished cells of {whole:,} (methods x tasks x {some}). Each split "
            "labels a third of at most 600 positives and hides the rest among as many negatives; "
            "every method sees the same rows, in one thread. All figures are on the unlabelled "
            "rows."
        )
    ]
    for name, reason in results.run.get("unavailable", {}).items():
        parts.append(Paragraph(f"Task {name} could not be had: {reason}."))
    for name, reason in results.run.get("skipped", {}).items():
        parts.append(Paragraph(f"Method {name} was not run: {reason}."))
    for task in results.tasks:
        if left_out := results.run["tables"][task].get("left_out"):
            parts.append(Paragraph(f"Of table {task}, {left_out_words(left_out)}."))
    return parts


def _tests(results: Results) -> list[Block]:
    scores = results.judged_auc()
    p = friedman(scores)
    reference = "puicl" if "puicl" in scores else scores.columns[0]
    blocks: list[Block] = _left_out(results)
    if p is not None:
        blocks.append(
            Paragraph(f"Friedman's test that all methods are alike: p = {p:.2g} (by AUC).")
        )
    if scores.shape[1] > 2:
        blocks.append(figures.critical_differences(results))
    blocks.append(tables.against_one(results, reference))
    if scores.shape[1] > 2:
        blocks.append(tables.pair_matrix(results))
    return blocks


def _left_out(results: Results) -> list[Block]:
    """A note on methods and tasks left out of ranks and tests; empty if there are none."""
    scores = results.judged_auc()
    methods = [results.title(name) for name in results.methods if name not in scores]
    tasks = [results.task_title(task) for task in results.tasks if task not in scores.index]
    if not methods and not tasks:
        return []
    left_out = " and ".join(
        f"{kind} {', '.join(names)}"
        for kind, names in (("methods", methods), ("tasks", tasks))
        if names
    )
    return [
        Paragraph(
            "Not every method was run on every task, or as often. Ranks and tests compare methods "
            f"on the same tasks and splits, here without the {left_out}."
        )
    ]


def _too_few(results: Results) -> list[Block]:
    tasks, methods = results.judged_auc().shape
    few = f"{counted(methods, 'method')} on {counted(tasks, 'task')}"
    needed = f"paired tests need two methods and {FEWEST_TASKS} tasks"
    return [*_left_out(results), Paragraph(f"{few}: {needed}.")]


def _environment(results: Results) -> list[Block]:
    weights = results.run.get("weights", {})
    blocks: list[Block] = [
        Paragraph(f"{_words(environment)}.") for environment in results.environments
    ]
    blocks += [
        Paragraph(f"Weights of {name}: SHA-256 {digest}.") for name, digest in weights.items()
    ]
    return blocks


def _words(environment: dict[str, Any]) -> str:
    return ", ".join(f"{key} {value}" for key, value in environment.items() if value is not None)
