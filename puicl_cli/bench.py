"""`puicl bench`: comparison of methods on real tables with known classes."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from puicl_config import InputError
from puicl_config.workers import stops_with, take_sigterm_for_ctrl_c

QUICK_REPEATS = 3
# The keys of `pu_bench.SWEEPS`.
_SWEEPS = "pi, labeled, eta, features, scar_score, scar_feature"


def bench(
    data: Annotated[
        Path | None,
        typer.Option(help="Folder of tables; default: download them and keep them in a cache."),
    ] = None,
    methods: Annotated[
        str | None, typer.Option(help="Methods, comma-separated; default: all that can run here.")
    ] = None,
    tasks: Annotated[str | None, typer.Option(help="Tasks, comma-separated; default: all.")] = None,
    repeats: Annotated[int, typer.Option(min=1, help="Splits of each task.")] = 10,
    quick: Annotated[bool, typer.Option("--quick", help="The same as --repeats 3.")] = False,
    out: Annotated[
        Path, typer.Option(help="Folder of the results; a stopped run resumes there.")
    ] = Path("results/bench"),
    model: Annotated[
        Path | None, typer.Option(help="PUICL's weights: a shipped name or a path.")
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Processes, one thread each; default: all cores.")
    ] = None,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Run failed cells again.")
    ] = False,
    new_weights: Annotated[
        bool,
        typer.Option(
            "--new-weights", help="Run again the cells that were made with other weights."
        ),
    ] = False,
    only: Annotated[
        str | None,
        typer.Option(
            help="Run one cell (task:method:repeat) again, print it and compare it with --out.",
            metavar="T:M:R",
        ),
    ] = None,
    sweep: Annotated[
        str | None,
        typer.Option(help=f"Run a sweep instead: {_SWEEPS}, or all.", metavar="NAME"),
    ] = None,
    shards: Annotated[
        str | None, typer.Option(help="Held-out shards of configs/bench.yaml, for --sweep.")
    ] = None,
    report: Annotated[
        Path | None, typer.Option(help="Only write the report of this folder of results.")
    ] = None,
) -> None:
    """Compare methods on the 20 tasks or on your own tables; write tables, tests and pictures."""
    from pu_bench import bench_command, only_command, report_command, sweep_command

    wanted, named = _names(methods, "--methods"), _names(tasks, "--tasks")
    repeats = QUICK_REPEATS if quick else repeats
    if report is not None:
        report_command(report)
        return
    take_sigterm_for_ctrl_c()
    with stops_with(f"the same command goes on from what {out} holds"):
        again = {"retry_failed": retry_failed, "new_weights": new_weights}
        if sweep is not None:
            sweep_command(sweep, data, shards, wanted, named, repeats, out, model, jobs, **again)
        elif only is not None:
            if not only_command(only, data, model, out):
                sys.exit(1)
        else:
            bench_command(data, wanted, named, repeats, out, model, jobs, **again)


def _names(text: str | None, option: str) -> list[str] | None:
    if text is None:
        return None
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise InputError(f"{option} names nothing")
    return names
