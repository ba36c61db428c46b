import subprocess
import sys
from importlib.metadata import version

import pytest
from typer.testing import CliRunner

import puicl_model
from prior_gen.cli import app as generator
from pu_bench import SWEEPS
from puicl_cli.bench import _SWEEPS
from puicl_cli.main import app


@pytest.mark.parametrize(("command", "app"), [("puicl", app), ("prior-gen", generator)])
def test_the_version_is_the_packages(command, app):
    told = CliRunner().invoke(app, ["--version"])
    assert told.exit_code == 0
    assert told.stdout == f"{command} {version('puicl')}\n"
    assert puicl_model.__version__ == version("puicl")


@pytest.mark.parametrize(
    "words", [["--help"], ["--version"], ["predict", "--help"], ["predict", "--misspelled"]]
)
def test_what_needs_no_network_does_not_wait_for_one(words):
    code = (
        "import sys\nfrom puicl_cli.main import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "sys.exit(any(name in sys.modules for name in ('torch', 'pandas', 'matplotlib')))"
    )
    run = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, check=False)
    assert run.returncode == 0


def test_the_sweeps_that_bench_names_are_those_there_are():
    assert _SWEEPS.split(", ") == list(SWEEPS)
