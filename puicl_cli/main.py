"""Entry point of `puicl`.

Each command imports what it needs when it runs: all of it takes seconds, which nobody should wait
for who asks for `--help` or has misspelled an option.
"""

from importlib.metadata import version
from typing import Annotated

import typer

from puicl_cli.average import average
from puicl_cli.bench import bench
from puicl_cli.compare import compare
from puicl_cli.plot import plot
from puicl_cli.predict import predict
from puicl_cli.weights import weights
from puicl_config import exit_on_input_error

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.command()(predict)
app.command()(compare)
app.command()(bench)
app.command()(plot)
app.command()(average)
app.add_typer(weights, name="weights")


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"puicl {version('puicl')}")
        raise typer.Exit()


@app.callback()
def _options(
    _: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """In-context positive-unlabeled learning on tables."""


def main() -> None:
    """Run the command; bad input prints one sentence and exits with 2."""
    exit_on_input_error(app)()
