"""Entry point of `puicl`."""

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
    help="In-context positive-unlabeled learning on tables.",
)
app.command()(predict)
app.command()(compare)
app.command()(bench)
app.command()(plot)
app.command()(average)
app.add_typer(weights, name="weights")


def main() -> None:
    """Run the command; bad input prints one sentence and exits with 2."""
    exit_on_input_error(app)()
