"""`puicl weights verify`, for the tests of what it finds."""

from typer.testing import CliRunner

from puicl_cli.main import app
from puicl_config import InputError


def verify(*arguments):
    """Exit status, and what was printed or raised."""
    result = CliRunner().invoke(app, ["weights", "verify", *map(str, arguments)])
    told = str(result.exception) if isinstance(result.exception, InputError) else result.output
    return result.exit_code, told
