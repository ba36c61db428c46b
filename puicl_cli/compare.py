"""`puicl compare`: the first difference between two runs."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from puicl_config import InputError, visible


def compare(
    run_a: Annotated[Path, typer.Argument(help="Folder of a run.")],
    run_b: Annotated[Path, typer.Argument(help="Folder of another.")],
    plot: Annotated[
        Path | None, typer.Option(help="Also draw both runs' curves into this PNG file.")
    ] = None,
) -> None:
    """Name the first step where two runs differ, and what differs there; exit with 1 if any."""
    from trainer import compare_runs, draw_curves

    for run in (run_a, run_b):
        if not (run / "ledger.jsonl").is_file():
            raise InputError(f"{run} holds no run: there is no ledger.jsonl")
    if plot:
        draw_curves([run_a, run_b], plot, smooth=50)
    result = compare_runs(run_a, run_b)
    print(visible(result.sentence))
    if not result.equal:
        sys.exit(1)
