"""Packages that are commands, for those who have Python but no scripts on their PATH."""

import runpy
import sys

import pytest


@pytest.mark.parametrize(("package", "told"), [("prior_gen", "--stages"), ("puicl_cli", "predict")])
def test_a_package_is_its_command(package, told, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [package, "--help"])
    with pytest.raises(SystemExit) as stop:
        runpy.run_module(package, run_name="__main__")
    assert stop.value.code == 0
    assert told in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", [package, "--no-such-option"])
    with pytest.raises(SystemExit) as stop:
        runpy.run_module(package, run_name="__main__")
    assert stop.value.code == 2


@pytest.mark.parametrize("package", ["prior_gen", "puicl_cli"])
def test_workers_that_import_it_start_nothing(package):
    runpy.run_module(f"{package}.__main__", run_name="__mp_main__")
