"""`puicl average`: the mean of a run's checkpoints."""

from pathlib import Path
from typing import Annotated, Literal

import typer


def average(
    checkpoints: Annotated[
        list[Path],
        typer.Argument(help="Checkpoints of one run (checkpoints/step-...), or the run's folder."),
    ],
    out: Annotated[Path, typer.Option(help="Weights to write (.safetensors).")],
    of: Annotated[
        Literal["model", "ema"],
        typer.Option(help="Average the trained weights, or their moving averages."),
    ] = "model",
) -> None:
    """Average the weights of several checkpoints of one run.

    `train.keep_checkpoints` sets how many a run keeps.
    """
    from trainer import average_checkpoints

    steps = average_checkpoints(checkpoints, out, of)
    print(f"{out}: the mean of {len(steps)} checkpoints, steps {', '.join(map(str, steps))}")
