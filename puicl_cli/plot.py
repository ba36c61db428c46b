"""`puicl plot`: curves of runs as a picture."""

from pathlib import Path
from typing import Annotated

import typer


def plot(
    runs: Annotated[list[Path], typer.Argument(help="Folders of runs.")],
    out: Annotated[Path, typer.Option(help="PNG file to write.")] = Path("curves.png"),
    smooth: Annotated[int, typer.Option(min=1, help="Steps that the loss is averaged over.")] = 50,
) -> None:
    """Draw the runs' loss, and their held-out AUC against steps and time where recorded."""
    from trainer import draw_curves

    draw_curves(runs, out, smooth)
    print(out)
