"""Tables: one form whatever the source, the protocol's encoding, and checksums."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

from pu_bench.data import TASKS, left_out_words, load_collection
from pu_bench.data.canonical import (
    CanonicalTable,
    canonical_table,
    encode,
    read_csv_rows,
    task_digest,
)
from pu_bench.data.sources import Monk
from pu_bench.data.tasks import TaskSpec, larger_group

EMBEDDED = ["wdbc", "monk1", "monk2", "monk3"]


def real_tables(variable: str) -> Path:
    folder = os.environ.get(variable)
    if not folder:
        pytest.skip(f"{variable} names no folder with the tables")
    return Path(folder)


def test_spelling_and_order_of_rows_do_not_change_the_canonical_table():
    columns = ("a", "b", "target")
    one = canonical_table(columns, [("1.0", " x", "p"), ("0.50", "y", "q"), ("?", "x", "p")])
    other = canonical_table(columns, [(np.nan, "x", "p"), (0.5, "y ", "q"), (1, "x", "p")])
    assert one.text() == other.text() == "a,b,target\n,x,p\n0.5,y,q\n1,x,p\n"
    changed = canonical_table(columns, [(0.5, "y", "q"), (1, "x", "p"), (np.nan, "x", "q")])
    assert one.digest() == other.digest() != changed.digest()


def test_what_files_write_where_there_is_nothing_is_missing_here_as_for_the_classifier():
    texts = [1, "NA", "N/A", "#N/A", "null", "<NA>", " NA ", "2.5"]
    table = canonical_table(("a", "target"), [(text, "p") for text in texts])
    assert table.column("a") == ["", "", "", "", "", "", "1", "2.5"]


def test_a_sources_class_names_are_translated_only_where_all_are_known():
    codes = {"tested_negative": "0", "tested_positive": "1"}
    rows = [(1, "tested_negative"), (2, "tested_positive")]
    assert canonical_table(("a", "target"), rows, codes).column("target") == ["0", "1"]
    rows = [(1, "tested_negative"), (2, "unknown")]
    assert canonical_table(("a", "target"), rows, codes).column("target")[1] == "unknown"


def test_a_row_of_another_length_is_refused():
    with pytest.raises(ValueError, match="row 1 has 1 cells, not 2"):
        canonical_table(("a", "target"), [(1, 2), (1,)])


def test_columns_are_encoded_as_the_protocol_says():
    rows = [
        (number, f"level{number}", ("10", "9", "2")[number % 3], "", ("u", "", "b")[number % 3], 1)
        for number in range(12)
    ]
    rows[3] = ("", *rows[3][1:])
    table = canonical_table(("number", "text12", "code", "void", "text3", "target"), rows)
    encoded = encode(table, "t", "T", lambda c: np.ones(len(c), bool), categorical=["code"])
    assert encoded.columns == ("number", "code", "void", "text3")  # 12 levels of text are dropped
    numbers, codes, void, texts = encoded.x.T
    known = [number for number in range(12) if number != 3]
    assert sorted(numbers) == sorted([*known, np.median(known)])
    by_code = dict(zip(table.column("code"), codes, strict=True))
    assert by_code == {"2": 0, "9": 1, "10": 2}  # in order of the numbers, not of their spelling
    assert dict(zip(table.column("text3"), texts, strict=True)) == {"": 0, "b": 1, "u": 2}
    assert not void.any()


def test_of_codes_that_are_numbers_a_missing_one_comes_first_too():
    rows = [(code, 1) for code in ("10", "", "9")]
    table = canonical_table(("code", "target"), rows)
    encoded = encode(table, "t", "T", lambda c: np.ones(len(c), bool), categorical=["code"])
    by_code = dict(zip(table.column("code"), encoded.x[:, 0], strict=True))
    assert by_code == {"": 0, "9": 1, "10": 2}


def test_a_quoted_cell_behind_a_space_may_hold_the_delimiter():
    assert read_csv_rows('a, "x, y"\n1,  "2, 3" \n') == [["a", "x, y"], ["1", "2, 3"]]


def test_rows_of_another_shape_are_another_task_whatever_their_bytes():
    # Nine rows of two columns and seventeen of one are 153 bytes, classes included.
    shapes = [(9, 2), (17, 1)]
    assert len({task_digest(np.zeros(shape), np.zeros(shape[0])) for shape in shapes}) == 2


def test_eleven_levels_are_too_many_and_ten_are_not():
    for levels, kept in ((10, True), (11, False)):
        rows = [(f"x{number % levels}", number, 1) for number in range(40)]
        table = canonical_table(("text", "number", "target"), rows)
        columns = encode(table, "t", "T", lambda c: np.ones(len(c), bool)).columns
        assert ("text" in columns) is kept


@pytest.mark.parametrize(
    ("cells", "odd"),
    [
        ([*map(str, range(20)), "<0.1", "<0.1", "n.d."], "<0.1"),  # the most frequent
        ([f"{number},000" for number in range(20)], "0,000"),
        ([*map(str, range(20)), "inf", ""], "inf"),
        ([f"2024-01-{number:02}" for number in range(1, 21)], None),
        ([f"x{number}" for number in range(20)] + ["7"], None),
        ([*map(str, range(10)), *(f"x{number}" for number in range(10))], None),  # half: not most
    ],
)
def test_a_column_that_is_left_out_is_told_with_an_odd_cell_among_its_numbers(cells, odd):
    rows = [(cell, place, 1) for place, cell in enumerate(cells)]
    table = canonical_table(("a", "number", "target"), rows)
    encoded = encode(table, "t", "T", lambda c: np.ones(len(c), bool))
    assert encoded.columns == ("number",)
    assert encoded.left_out == {"a": odd}
    marked = encode(table, "t", "T", lambda c: np.ones(len(c), bool), categorical=["a"])
    assert marked.left_out == {"a": None}  # codes on purpose


def test_of_many_columns_left_out_numbers_with_odd_cells_are_named_first():
    columns = {f"text{number}": None for number in range(9)}
    assert left_out_words({**columns, "price": "<0.1"}) == (
        "10 columns are left out, categorical with more than 10 levels: price ('<0.1' makes text "
        "of its numbers), text0, text1, text2, text3, text4, text5, text6 and 2 more"
    )
    assert left_out_words({"a\x1b": "9" * 50 + "\n"}) == (
        "1 column is left out, categorical with more than 10 levels: "
        f"a\\x1b ('{'9' * 37}...' makes text of its numbers)"
    )


def test_the_larger_group_is_positive_and_the_first_where_they_tie():
    assert larger_group([True, True, False]).tolist() == [True, True, False]
    assert larger_group([True, False, False]).tolist() == [False, True, True]
    assert larger_group([True, False]).tolist() == [True, False]


def test_embedded_tables_need_neither_files_nor_network(no_network, own_cache):
    collection = load_collection()
    assert not own_cache.exists()
    assert sorted(collection.tables) == sorted(EMBEDDED)
    assert set(collection.unavailable) == set(TASKS) - set(EMBEDDED)
    assert all("no network here" in reason for reason in collection.unavailable.values())
    sizes = {name: (t.positive.sum(), (~t.positive).sum()) for name, t in collection.tables.items()}
    assert sizes == {
        "monk1": (216, 216),
        "monk2": (290, 142),
        "monk3": (228, 204),
        "wdbc": (357, 212),
    }
    bundled = load_breast_cancer()
    wdbc = collection.tables["wdbc"]
    assert set(map(tuple, wdbc.x[wdbc.positive])) == set(
        map(tuple, bundled.data[bundled.target == 1])
    )


def test_monk_rows_follow_the_published_rules():
    rows = {number: {row[:6]: row[6] for row in Monk(number).rows(())} for number in (1, 2, 3)}
    assert all(len(table) == 432 for table in rows.values())
    # Problem 1: a1 = a2, or a5 = 1.
    assert [rows[1][a] for a in ((2, 2, 1, 1, 3, 1), (1, 2, 1, 1, 1, 1), (1, 2, 1, 1, 2, 1))] == [
        *(1, 1, 0)
    ]
    # Problem 2: exactly two of the six are 1.
    assert [rows[2][a] for a in ((1, 1, 2, 2, 2, 2), (1, 1, 1, 2, 2, 2), (2, 2, 2, 2, 2, 1))] == [
        *(1, 0, 0)
    ]
    # Problem 3: a5 = 3 and a4 = 1, or a5 not 4 and a2 not 3.
    assert [rows[3][a] for a in ((1, 3, 1, 1, 3, 1), (1, 1, 1, 2, 3, 1), (1, 1, 1, 1, 4, 1))] == [
        *(1, 1, 0)
    ]


def test_all_twenty_tables_have_the_pinned_checksum_and_the_protocols_sizes(no_network):
    collection = load_collection(real_tables("PUICL_BENCH_DATA"))
    assert not collection.unavailable
    assert list(collection.tables) == list(TASKS)
    sizes = {
        name: (table.x.shape[1], int(table.positive.sum()), int((~table.positive).sum()))
        for name, table in collection.tables.items()
    }
    assert sizes["adult"] == (11, 22654, 7508)  # complete rows of 32,561; 3 long columns dropped
    assert sizes["car"] == (6, 1594, 134)
    assert sizes["letter"] == (16, 813, 736)
    assert sizes["mushroom"] == (20, 4208, 3916)  # stalk_root and a column of 12 levels dropped
    assert sizes["abalone"] == (8, 2770, 1407)
    assert sizes["wine_quality"] == (11, 4113, 2384)
    assert sizes["ilpd"] == (10, 416, 167)
    for table in collection.tables.values():
        assert np.isfinite(table.x).all()


def test_other_tables_of_the_same_format_load_with_their_index():
    folder = real_tables("PUICL_BENCH_DEV_DATA")
    index = json.loads((folder / "index.json").read_text(encoding="utf-8"))
    collection = load_collection(folder)
    assert list(collection.tables) == list(index)
    for name, table in collection.tables.items():
        assert len(table.x) == index[name]["rows"]
        assert table.positive.mean() >= 0.5


def test_a_task_is_without_the_columns_classes_and_rows_that_it_leaves_out():
    spec = TaskSpec(
        *("t", "T", (), lambda text: {"p": True, "q": False}.get(text), "nowhere"),
        dropped=frozenset({"b"}),
        complete_rows=True,
    )
    rows = (("1", "", "p"), ("", "2", "p"), ("3", "4", "q"), ("5", "6", "r"))
    reduced = spec.reduce(CanonicalTable(("a", "b", "target"), rows))
    assert reduced == CanonicalTable(("a", "target"), (("1", "p"), ("3", "q")))


def test_a_task_may_keep_a_sources_first_rows_alone(monkeypatch):
    pins = {"t": {"columns": ["a", "target"], "rows": 2, "sha256": ""}}
    monkeypatch.setattr("pu_bench.data.tasks.PINS", pins)
    spec = TaskSpec("t", "T", (), lambda text: True, "nowhere", max_rows=2)
    assert spec.canonical([(3, "p"), (1, "q"), (2, "p")]).rows == (("1", "q"), ("3", "p"))


@pytest.mark.parametrize(
    ("task", "classes"),
    [
        ("wine_quality", {"5": False, "6": True}),
        ("abalone", {"8": False, "9": True}),
        ("car", {"unacc": True, "acc": True, "good": False, "vgood": False}),
        ("letter", {"C": False, "U": True, "O": None}),
    ],
)
def test_classes_of_more_than_two_are_parted_as_the_docs_say(task, classes):
    assert {label: TASKS[task].rule(label) for label in classes} == classes
