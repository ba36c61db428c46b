"""Packages that are commands, for those who have Python but no scripts on their PATH."""

import importlib
import itertools
import re
import runpy
from functools import partial

import pytest
from typer.testing import CliRunner


@pytest.mark.parametrize(("package", "told"), [("prior_gen", "--stages"), ("puicl_cli", "predict")])
def test_a_package_is_its_command(package, told, called):
    run = partial(runpy.run_module, package, run_name="__main__")
    code, out, _ = called(run, package, "--help")
    assert code == 0
    assert told in out
    assert called(run, package, "--no-such-option")[0] == 2


@pytest.mark.parametrize(
    ("app", "words"),
    [("puicl_cli.main", ["predict"]), ("prior_gen.cli", ["convert"]), ("trainer.cli", [])],
)
def test_paragraphs_of_help_are_as_wide_as_the_terminal(app, words, monkeypatch):
    """Not as wide as the lines of the docstring that they come from."""
    monkeypatch.setenv("COLUMNS", "60")
    command = importlib.import_module(app).app
    out = CliRunner().invoke(command, [*words, "--help"]).stdout
    about = out.partition("Usage:")[2].partition("\u256d")[0]
    for paragraph in re.split(r"\n\s*\n", about.strip()):
        for line, following in itertools.pairwise(map(str.strip, paragraph.splitlines())):
            assert len(line) + 1 + len(following.split()[0]) > 57


@pytest.mark.parametrize("package", ["prior_gen", "puicl_cli"])
def test_workers_that_import_it_start_nothing(package, capsys):
    runpy.run_module(f"{package}.__main__", run_name="__mp_main__")
    assert capsys.readouterr() == ("", "")
