"""Tables in a folder: files of the twenty, or a collection of its own with an index."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from pu_bench.data import load_collection
from pu_bench.data.sources import Monk
from puicl_config import InputError


def test_a_task_whose_local_file_was_altered_is_left_out_with_the_reason(tmp_path, no_network):
    lines = ["a1,a2,a3,a4,a5,a6,target"]
    lines += [",".join(map(str, row)) for row in Monk(1).rows(())]
    (tmp_path / "monk1.csv").write_text("\n".join(lines), encoding="utf-8")
    assert "monk1" in load_collection(tmp_path, ["monk1"]).tables
    lines[-1] = lines[-1][:-1] + str(1 - int(lines[-1][-1]))
    (tmp_path / "monk1.csv").write_text("\n".join(lines), encoding="utf-8")
    collection = load_collection(tmp_path, ["monk1", "monk2"])
    assert list(collection.tables) == ["monk2"]
    assert "monk1.csv is not the pinned table" in collection.unavailable["monk1"]


def test_a_task_whose_local_file_is_damaged_is_left_out_and_the_rest_is_there(tmp_path, no_network):
    (tmp_path / "wdbc.csv.gz").write_bytes(b"no gzip")
    collection = load_collection(tmp_path, ["wdbc", "monk1"])
    assert list(collection.tables) == ["monk1"]
    assert "wdbc.csv.gz cannot be read" in collection.unavailable["wdbc"]


def test_a_task_whose_local_file_has_other_columns_is_left_out_with_the_reason(
    tmp_path, no_network
):
    lines = ["a2,a1,a3,a4,a5,a6,target", *(",".join(map(str, row)) for row in Monk(1).rows(()))]
    (tmp_path / "monk1.csv").write_text("\n".join(lines), encoding="utf-8")
    collection = load_collection(tmp_path, ["monk1"])
    assert collection.tables == {}
    assert "monk1.csv has other columns than the pinned" in collection.unavailable["monk1"]


def test_a_folder_with_an_index_is_a_collection_of_its_own(little_tables):
    collection = load_collection(little_tables)
    assert list(collection.tables) == ["easy", "hard", "mixed"]
    assert collection.name == little_tables.name
    mixed = collection.tables["mixed"]
    assert mixed.columns == ("colour", "code", "size")
    assert mixed.positive.sum() == 70
    assert np.isfinite(mixed.x).all()


def test_compressed_and_plain_files_are_the_same_table(little_tables, tmp_path):
    (tmp_path / "easy.csv.gz").write_bytes(gzip.compress((little_tables / "easy.csv").read_bytes()))
    (tmp_path / "index.json").write_text(json.dumps({"easy": {"positive": "yes"}}))
    one, other = load_collection(little_tables, ["easy"]), load_collection(tmp_path)
    assert one.tables["easy"].digest == other.tables["easy"].digest


SIX = "a,target\n1,x\n2,x\n3,x\n4,y\n5,y\n6,y\n"


def test_tables_are_in_the_collections_order_whatever_order_they_are_asked_for_in(little_tables):
    assert list(load_collection(little_tables, ["mixed", "easy", "mixed"]).tables) == [
        *("easy", "mixed")
    ]


def test_a_collection_has_its_folders_name_from_within_too(little_tables, monkeypatch):
    monkeypatch.chdir(little_tables)
    assert load_collection(Path()).name == little_tables.name


def test_a_byte_order_mark_is_no_part_of_a_columns_name(tmp_path):
    (tmp_path / "index.json").write_text('{"t": {"positive": "x"}}')
    (tmp_path / "t.csv").write_text(SIX, encoding="utf-8-sig")
    assert load_collection(tmp_path).tables["t"].columns == ("a",)


def test_a_table_has_the_title_that_its_index_says_or_its_name(tmp_path):
    index = {"t": {"positive": "x", "title": "A table"}, "u": {"positive": "x"}}
    (tmp_path / "index.json").write_text(json.dumps(index))
    for name in index:
        (tmp_path / f"{name}.csv").write_text(SIX)
    tables = load_collection(tmp_path).tables
    assert {name: table.title for name, table in tables.items()} == {"t": "A table", "u": "u"}


def test_a_class_may_be_called_none(tmp_path):
    (tmp_path / "index.json").write_text('{"t": {"positive": "None"}}')
    (tmp_path / "t.csv").write_text(SIX.replace("x", "None").replace("y", "NA"))
    table = load_collection(tmp_path).tables["t"]
    assert table.positive.tolist() == [True] * 3 + [False] * 3


def test_notes_in_an_index_harm_nobody(tmp_path):
    notes = ("source", "package", "version", "rule", "rows", "features", "licence", "category")
    facts = {"positive": "x", **dict.fromkeys((*notes, "positives", "_titles", "x-title"), 1)}
    (tmp_path / "index.json").write_text(json.dumps({"t": facts}))
    (tmp_path / "t.csv").write_text(SIX)
    assert load_collection(tmp_path).tables["t"].columns == ("a",)


@pytest.mark.parametrize("there", [[], ["mine.csv"]])
def test_a_folder_without_index_or_any_of_the_twenty_is_refused(tmp_path, no_network, there):
    for name in there:
        (tmp_path / name).write_text(SIX)
    with pytest.raises(InputError, match=r"none of the 20 tables .* write .*index\.json, such as"):
        load_collection(tmp_path, ["monk1"])


@pytest.mark.parametrize(
    ("index", "table", "mentioned"),
    [
        ("[1]", "a,target\n1,x\n2,y\n", "must map names"),
        ('{"t": {}}', "a,target\n1,x\n2,y\n", "must say `positive`"),
        ('{"t": {"positive": "z"}}', "a,target\n1,x\n2,y\n", "one of them 'z'"),
        ('{"t": {"positive": "x"}}', "a,target\n1,x\n2,y\n3,w\n", "must have two values"),
        ('{"t": {"positive": "x"}}', "target,a\nx,1\n", "last column is target"),
        ('{"t": {"positive": "x"}}', "a,target\n", "last column is target, and rows"),
        ('{"t": {"positive": "x"}}', "a,target\n1,x\n2\n", "row 1 has 1 cells"),
        ('{"t": {"positive": "x", "categorical": ["b"]}}', "a,target\n1,x\n2,y\n", "no column 'b'"),
        ('{"t": {"positive": "x"}, "u": {"positive": "x"}}', SIX, "no u.csv or u.csv.gz"),
        ("{", "a,target\n1,x\n2,y\n", "is no JSON"),
        ('{"../t": {"positive": "x"}}', SIX, "names ../t, which leads out of "),
        ('{"/t": {"positive": "x"}}', SIX, "names /t, which leads out of "),
        (
            '{"t": {"positive": "x", "categorical": [["a"]]}}',
            SIX,
            "must be a list of columns' names",
        ),
        ('{"t": {"positive": "x", "categorial": ["a"]}}', SIX, "of t; did you mean categorical?"),
        ('{"t": {"POSITIVE": "x"}}', SIX, "unknown key POSITIVE of t; did you mean positive?"),
        ('{"t": {"positive": "x", "title": 5}}', SIX, "`title` of t must be text"),
        (
            '{"t": {"positive": "x"}}',
            SIX.replace("2,x\n", ""),
            "2 rows of class 'x'; a split needs",
        ),
        (
            '{"t": {"positive": "x"}}',
            SIX + "".join(f"<{number},x\n{number}.5,y\n" for number in range(5)),
            "t has no feature column with at most 10 levels: a ('<0' makes text of its numbers)",
        ),
        ('{"t": {"positive": "x"}}', SIX + "7,\n", "1 of 7 rows have no target"),
        ('{"t": {"positive": "x"}}', SIX + "7,NA\n", "must have two values"),
        (
            '{"t": {"positive": "x"}}',
            SIX.replace("a,", "target,"),
            "two columns are named 'target'",
        ),
        ('{"t": {"positive": "x"}}', "a,target\r1,x\r2,y\r", "t.csv cannot be read: new-line"),
        ('{"t": {"positive": "x"}}', SIX + f'"{"9" * 200_000}",x\n', "t.csv cannot be read: field"),
    ],
)
def test_a_bad_collection_is_refused_in_one_sentence(tmp_path, index, table, mentioned):
    (tmp_path / "index.json").write_text(index, encoding="utf-8")
    (tmp_path / "t.csv").write_text(table, encoding="utf-8")
    with pytest.raises(InputError) as refused:
        load_collection(tmp_path)
    assert mentioned in str(refused.value)
    assert "\n" not in str(refused.value)
