"""Entry point of `puicl`.

Each command imports what it needs only when it runs. Importing everything takes seconds, too long
for `--help` or a misspelled option.
"""

from typing import Annotated

import typer

from puicl_cli.average import average
from puicl_cli.bench import bench
from puicl_cli.compare import compare
from puicl_cli.plot import plot
from puicl_cli.predict import predict
from puicl_cli.predict_new import predict_new
from puicl_cli.weights import weights
from puicl_config import exit_on_input_error, version_printer

_VERSION = version_printer("puicl")

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)
app.command()(predict)
app.command("predict-new")(predict_new)
app.command()(compare)
app.command()(bench)
app.command()(plot)
app.command()(average)
app.add_typer(weights, name="weights")


@app.callback()
def _options(
    _: Annotated[
        bool,
        typer.Option("--version", callback=_VERSION, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """In-context positive-unlabeled learning on tables."""


def main() -> None:
    """Run the command; on bad input, print one sentence and exit with 2."""
    exit_on_input_error(app)()
