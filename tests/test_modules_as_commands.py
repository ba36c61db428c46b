"""Packages that are commands, for those who have Python but no scripts on their PATH."""

import runpy
from functools import partial

import pytest


@pytest.mark.parametrize(("package", "told"), [("prior_gen", "--stages"), ("puicl_cli", "predict")])
def test_a_package_is_its_command(package, told, called):
    run = partial(runpy.run_module, package, run_name="__main__")
    code, out, _ = called(run, package, "--help")
    assert code == 0
    assert told in out
    assert called(run, package, "--no-such-option")[0] == 2


@pytest.mark.parametrize("package", ["prior_gen", "puicl_cli"])
def test_workers_that_import_it_start_nothing(package):
    runpy.run_module(f"{package}.__main__", run_name="__mp_main__")
