"""Real tables of R packages as a folder of the benchmark."""

import gzip
import importlib.metadata
import json
import sys

import numpy as np
import pandas as pd
import pytest
import unseen_tables
from unseen_tables import SPECS, half_of, prepare, read_specs, two_classes

from pu_bench.data import load_collection
from puicl_config import InputError

FRAME = pd.DataFrame(
    {
        "id": range(8),
        "a1": [1.5, np.nan, 3, 4, 5, 6, 7, 8],
        "a2": list("xyxyxyxy"),
        "code": [1, 2, 3, 1, 2, 3, 1, 2],
        "seen": [0.0, 1.0, 1.0, np.nan, 1.0, 0.0, 1.0, 1.0],
        "amount": [10, 20, 30, 40, 50, 60, 70, 80],
    }
)
SPEC = {"from": "p/i", "title": "T", "target": "seen"}


def test_rows_without_a_response_and_dropped_columns_are_left_out_and_the_target_is_last():
    table, facts = prepare(FRAME, SPEC | {"drop": ["id", "a?"], "categorical": ["code"]})
    assert list(table.columns) == ["code", "amount", "target"]
    assert list(table["amount"]) == [10, 20, 30, 50, 60, 70, 80]
    assert list(table["target"]) == ["0", "1", "1", "1", "0", "1", "1"]
    assert facts["positive"] == "1"
    assert (facts["rows"], facts["features"]) == (7, 2)
    assert facts["categorical"] == ["code"]


def test_cases_may_be_those_of_one_value():
    table, _ = prepare(FRAME, SPEC | {"only": {"a2": "x"}})
    assert list(table["id"]) == [0, 2, 4, 6]


@pytest.mark.parametrize(
    "spec",
    [
        {"target": "gone"},
        {"drop": ["gone"]},
        {"drop": ["b*"]},
        {"only": {"gone": 1}},
        {"categorical": ["gone"]},
        {"drop": ["code"], "categorical": ["code"]},
    ],
)
def test_a_column_that_is_not_there_is_refused(spec):
    with pytest.raises(InputError, match="p/i has no column"):
        prepare(FRAME, SPEC | spec)


def test_numbers_are_cut_at_the_median_or_at_a_number():
    amounts = FRAME["amount"]
    assert list(two_classes(amounts, "median")) == ["low"] * 4 + ["high"] * 4
    assert list(two_classes(amounts, 20)) == ["low"] + ["high"] * 7


def test_of_more_than_two_classes_the_most_frequent_is_told_from_the_others():
    assert list(two_classes(FRAME["code"], None)) == [
        "1", "other", "other", "1", "other", "other", "1", "other",
    ]  # fmt: skip


def test_of_two_classes_as_frequent_the_first_in_the_alphabet_is_positive():
    assert prepare(FRAME, SPEC | {"target": "a2"})[1]["positive"] == "x"
    assert prepare(FRAME[::-1], SPEC | {"target": "a2"})[1]["positive"] == "x"


def test_what_is_written_is_a_folder_of_the_benchmark(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(unseen_tables, "check_package", lambda: None)
    monkeypatch.setattr(unseen_tables, "source", lambda item: pd.concat([FRAME, FRAME]))
    specs = {"small": SPEC | {"drop": ["id"]}}
    monkeypatch.setattr(unseen_tables, "read_specs", lambda path: specs)
    monkeypatch.setattr(sys, "argv", ["unseen_tables.py", "--out", str(tmp_path / "new")])
    unseen_tables.main()
    assert "small: 14 rows, 4 features, '1' in 71%" in capsys.readouterr().out
    table = load_collection(tmp_path / "new").tables["small"]
    assert table.positive.sum() == 10
    assert table.x.shape == (14, 4)
    first = (tmp_path / "new/small.csv.gz").read_bytes()
    assert gzip.decompress(first).decode().startswith("a1,a2,code,amount,target\n")
    assert json.loads((tmp_path / "new/index.json").read_text())["small"]["source"] == "p/i"
    unseen_tables.main()
    assert (tmp_path / "new/small.csv.gz").read_bytes() == first


def test_an_unknown_table_is_refused(tmp_path, refused):
    said = refused("unseen_tables", "--out", tmp_path, "--tables", "wdbc")
    assert "there is no table 'wdbc'; there are credit_card" in said


@pytest.mark.parametrize(
    ("version", "words"), [("0.2.9", "this is 0.2.9"), (None, "not installed")]
)
def test_another_version_of_the_package_is_refused(version, words, monkeypatch):
    def found(name):
        if version is None:
            raise importlib.metadata.PackageNotFoundError(name)
        return version

    monkeypatch.setattr(importlib.metadata, "version", found)
    with pytest.raises(InputError, match=words):
        unseen_tables.check_package()


def test_a_key_that_nothing_reads_is_refused(tmp_path):
    (tmp_path / "s.yaml").write_text("a: {from: p/i, title: T, target: t, droop: [x]}")
    with pytest.raises(InputError, match="droop"):
        read_specs(tmp_path / "s.yaml")
    (tmp_path / "s.yaml").write_text("a: {from: p/i, title: T}")
    with pytest.raises(InputError, match="lacks from, title or target"):
        read_specs(tmp_path / "s.yaml")


def test_no_data_set_is_taken_twice_and_none_that_was_looked_at_before():
    items = [spec["from"] for spec in read_specs(SPECS).values()]
    assert len(items) == len(set(items)) == 95
    # What the development tables were made of, and other versions of them and of the benchmark's.
    seen = """psych/bfi carData/Chile ISLR/College MASS/crabs openintro/email openintro/email_test
        Ecdat/Fair AER/Affairs MASS/fgl DAAG/headInjury carData/Mroz Ecdat/Mroz AER/PSID1976
        causaldata/Mroz sampleSelection/Mroz87 wooldridge/mroz survival/pbc survival/pbcseq
        rpart/solder survival/solder MASS/Pima.tr MASS/Pima.te MASS/Pima.tr2 dslabs/brca DAAG/spam7
        wooldridge/affairs COUNT/affairs"""
    assert not set(items) & set(seen.split())


def test_halves_stay_what_they_are(tmp_path, monkeypatch):
    names = list(read_specs(SPECS))
    choosing = [name for name in names if half_of(name) == "choosing"]
    assert len(choosing) == 43
    assert choosing[:4] == ["hmda", "health_insurance", "resumes", "salaries"]
    monkeypatch.setattr(unseen_tables, "check_package", lambda: None)
    monkeypatch.setattr(unseen_tables, "source", lambda item: FRAME)
    monkeypatch.setattr(unseen_tables, "read_specs", lambda path: {"hmda": SPEC, "nmes": SPEC})
    for half, name in (("choosing", "hmda"), ("unseen", "nmes")):
        monkeypatch.setattr(sys, "argv", ["u", "--out", str(tmp_path / half), "--half", half])
        unseen_tables.main()
        assert list(json.loads((tmp_path / half / "index.json").read_text())) == [name]
