"""Excel workbooks: which sheet and which lines are the table, and what their cells say."""

import datetime
import re
import shutil
import sys
import zipfile
from pathlib import Path

import pandas as pd
import pytest

from puicl_config import InputError
from puicl_model.files import excel_files, read_table

openpyxl = pytest.importorskip("openpyxl")


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Write a workbook of sheets, each a list of lines; the first, "Sheet", has cells `merged`."""
    monkeypatch.chdir(tmp_path)

    def write(name: str, lines, hidden=(), merged=(), **others) -> str:
        book = openpyxl.Workbook()
        for title, own in {"Sheet": lines, **others}.items():
            sheet = book["Sheet"] if title == "Sheet" else book.create_sheet(title)
            sheet.sheet_state = "hidden" if title in hidden else "visible"
            for line in own:
                sheet.append(line)
        for cells in merged:
            book["Sheet"].merge_cells(cells)
        book.save(name)
        return name

    return write


def lines_of(table: pd.DataFrame) -> list[list]:
    cells = table.astype(object).where(table.notna(), None)
    return [list(table.columns), *cells.to_numpy().tolist()]


def test_a_workbook_gives_the_scores_of_csv(predict, patients, write):
    patients.to_csv("p.csv", index=False)
    expected = predict(data="p.csv", out="-", **{"id-column": "patient"})
    assert expected[0] == 0, expected
    write("p.xlsx", lines_of(patients), notes=[])
    assert predict(data="p.xlsx", out="-", **{"id-column": "patient"}) == expected
    shutil.copy("p.xlsx", "p.XLSM")
    assert predict(data="p.XLSM", out="-", **{"id-column": "patient"}) == expected
    # Numbers as labels, and nothing for the others.
    marked = patients.assign(state=[1 if state == "sick" else None for state in patients.state])
    write("p.xlsx", lines_of(marked))
    options = {"id-column": "patient", "positive-label": None}
    assert predict(data="p.xlsx", out="-", **options) == expected


def test_lines_and_columns_without_entries_are_no_part_of_a_table(write):
    day, hour = datetime.datetime(2024, 5, 31), datetime.time(9, 30)
    read = read_table(
        write(
            "t.xlsx",
            [
                [],
                [None, "code", "age", None, 2019, "day", "hour", "done"],
                [7, "038", 1, None, "#N/A", day, hour, True],
                [None, " "],
                [8, "V57", None, None, 2.5, None, None, False, None, "  "],
                [9, "x"],
            ],
        )
    )
    expected = pd.DataFrame(
        {
            "Unnamed: 0": [7, 8, 9],
            "code": ["038", "V57", "x"],
            "age": [1, None, None],
            "2019": [None, 2.5, None],
            "day": [day, None, None],
            "hour": [hour, None, None],
            "done": [True, False, None],
        }
    )
    assert list(read.columns) == list(expected.columns)
    assert read["age"].dtype == read["2019"].dtype == float
    for name in expected:
        known = read[name].notna()
        assert known.tolist() == expected[name].notna().tolist()
        assert read[name][known].tolist() == expected[name][known].tolist()


def test_cells_merged_over_rows_have_their_value_in_each_of_them(write):
    lines = [["region", "age", None, "s"], ["north", 1, 2, 1], [None, 3, 4], [], [None, 5, 6]]
    lines += [["south", "unknown", None, 0], [None, 7, 8], ["west", 9, 1, 0]]
    merged = ["A2:A5", "D2:D3", "B6:C6", "A6:A7"]
    table = read_table(write("t.xlsx", lines, merged=merged)).astype(object)
    assert table["region"].tolist() == ["north"] * 3 + ["south"] * 2 + ["west"]
    assert table["s"].fillna("").tolist() == [1, 1, "", 0, "", 0]
    assert table["age"].tolist() == [1, 3, 5, "unknown", 7, 9]
    assert table["Unnamed: 2"].fillna("").tolist() == [2, 4, 6, "", 8, 1]  # across it stays empty


def test_merged_cells_make_no_rows_and_a_merged_name_is_no_entry(write):
    lines = [["region", "age", "s"], [None, 1, 1], ["north", 2, 0], [None, 3, 0], [], [" "]]
    table = read_table(write("t.xlsx", lines, merged=["A1:A2", "A3:A30"]))
    assert table["region"].fillna("").tolist() == ["", "north", "north"]
    assert table["age"].tolist() == [1, 2, 3]


def test_merged_cells_of_a_long_sheet_are_found_wherever_they_stand(write, monkeypatch):
    monkeypatch.setattr(excel_files, "_CHUNK", 7)
    lines = [["region", "age"], *([None if k % 5 else k, k] for k in range(1, 100))]
    merged = [f"A{k + 1}:A{k + 5}" for k in range(5, 91, 5)]
    table = read_table(write("t.xlsx", lines, merged=merged))
    assert table["region"].tolist()[4:94] == [k // 5 * 5 for k in range(5, 95)]


def test_the_sheet_is_the_only_one_that_is_seen_and_filled_or_the_one_that_is_named(write):
    own, other = [["a", "s"], [1, 1]], [["b", "s"], [2, 1]]
    assert list(read_table(write("t.xlsx", [], empty=[], filled=other))) == ["b", "s"]
    hidden = write("t.xlsx", own, hidden=["old"], old=other)
    assert list(read_table(hidden)) == ["a", "s"]
    assert list(read_table(hidden, sheet="old")) == ["b", "s"]
    several = write("t.xlsx", own, second=other)
    assert list(read_table(several, sheet="second")) == ["b", "s"]
    for sheet, sentence in (
        (None, "t.xlsx has 2 sheets: give one of 'Sheet', 'second' as --sheet"),
        ("third", "t.xlsx has no sheet 'third'; it has 'Sheet', 'second'"),
    ):
        with pytest.raises(InputError, match=f"^{re.escape(sentence)}$"):
            read_table(several, sheet=sheet)


@pytest.mark.parametrize(
    ("lines", "sheet", "sentence"),
    [
        (
            [["Patients of 2024"], ["age", "s"], [1, 1]],
            None,
            "begins with 'Patients of 2024' alone",
        ),
        ([["a", "s", "a"], [1, 1, 1]], None, "has more than one column 'a'"),
        ([[2019, "2019"], [1, 1]], None, "has more than one column '2019'"),
        ([[], [" "]], None, "t.xlsx has no entries"),
        ([], "Sheet", "t.xlsx has no entries on 'Sheet'"),
        ([["a", "s"]], None, "t.xlsx has no rows"),
    ],
)
def test_what_is_no_table_is_refused(write, lines, sheet, sentence):
    with pytest.raises(InputError, match=re.escape(sentence)):
        read_table(write("t.xlsx", lines), sheet=sheet)


def test_what_is_no_workbook_is_refused_in_one_sentence(predict, patients, write, monkeypatch):
    patients.to_csv("p.csv", index=False)
    shutil.copy("p.csv", "p.xlsx")
    write("whole.xlsx", lines_of(patients))
    with zipfile.ZipFile("whole.xlsx") as whole, zipfile.ZipFile("cut.xlsx", "w") as cut:
        for name in whole.namelist():
            content = whole.read(name)
            cut.writestr(name, content[:-200] if name.endswith("sheet1.xml") else content)
    for options, sentence in (
        ({"data": "p.xlsx"}, "p.xlsx cannot be read as Excel: it is no .xlsx file, or has a pass"),
        ({"data": "cut.xlsx"}, "cut.xlsx cannot be read as Excel: "),
        ({"data": "none.xlsx"}, "no file none.xlsx"),
        ({"data": "p.csv", "sheet": "a"}, "--sheet a: p.csv is no Excel file (.xlsx)"),
        ({"data": "-", "sheet": "a"}, "--sheet a: stdin is no Excel file (.xlsx)"),
        ({"data": "p.csv", "out": "a.xlsx"}, "files ending in .xlsx are not written here"),
    ):
        code, out, err = predict(**{"out": "scores", **options})
        assert (code, out) == (2, "")
        assert sentence in err
        assert err.count("\n") == 1
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    code, _, err = predict(data="whole.xlsx", out="scores")
    assert code == 2
    assert err.startswith("error: Excel files need openpyxl: pip install openpyxl, or save the")


def rewrite_sheet(workbook, other, old, new):
    """Copy a workbook, with `old` replaced in its first sheet, which must hold it."""
    with zipfile.ZipFile(workbook) as whole, zipfile.ZipFile(other, "w") as copy:
        for name in whole.namelist():
            content = whole.read(name)
            if name.endswith("sheet1.xml"):
                assert old in content
                content = content.replace(old, new)
            copy.writestr(name, content)


def test_a_sheet_may_say_that_it_is_smaller_than_it_is(write):
    """Some programs write A1 for its extent, which openpyxl believes."""
    write("t.xlsx", [["a", "s"], [1, 1], [2, 0]])
    rewrite_sheet("t.xlsx", "small.xlsx", b'ref="A1:B3"', b'ref="A1"')
    assert read_table("small.xlsx").to_numpy().tolist() == [[1, 1], [2, 0]]


def test_a_row_that_no_sheet_has_is_refused_before_those_above_it_fill_the_memory(write):
    write("t.xlsx", [["a", "s"], [1, 1], [2, 0]])
    rewrite_sheet("t.xlsx", "far.xlsx", b'<row r="3"', b'<row r="2000000000"')
    with pytest.raises(InputError, match=r"as Excel: a sheet has at most 1,048,576 rows"):
        read_table("far.xlsx")


def test_formulas_that_nobody_computed_are_no_missing_values(write):
    """As openpyxl itself writes them; what was empty from the start stays missing."""
    lines = [["a", "double", "none", "s"], [1, "=A2*2", None, 1], [2, "=A3*2", None, 0]]
    sentence = r"t.xlsx, sheet 'Sheet', holds formulas in column 'double' whose values were never"
    with pytest.raises(InputError, match=sentence):
        read_table(write("t.xlsx", lines))
    empty = read_table(write("t.xlsx", [[line[0], *line[2:]] for line in lines]))
    assert empty["none"].isna().all()


def test_workbooks_of_a_folder_have_the_scores_of_their_own(predict, patients, write):
    """Beside other tables; `~$` begins what Excel keeps of a workbook that is open."""
    options = {"id-column": "patient"}
    for name in ("march", "april"):
        write(f"{name}.xlsx", [[name]], visits=lines_of(patients))
        assert predict(data=f"{name}.xlsx", out=f"{name}.csv", sheet="visits", **options)[0] == 0
    Path("data").mkdir()
    for name in ("march.xlsx", "april.xlsx"):
        shutil.move(name, "data")
    Path("data", "~$march.xlsx").write_text("owner", encoding="utf-8")
    code, out, err = predict(data="data", out="scores", sheet="visits", jobs="1", **options)
    assert code == 0, err
    assert out.startswith("scores: 2 of 2 tables scored")
    for name in ("march", "april"):
        found = Path("scores", f"{name}.xlsx.csv").read_bytes()
        assert found == Path(f"{name}.csv").read_bytes()
    patients.to_csv("data/march.xlsx.csv", index=False)
    code, _, err = predict(data="data", out="scores", sheet="visits", **options)
    assert code == 2
    assert "scores of march.xlsx and of march.xlsx.csv would have the same name: rename one" in err


def test_a_sheet_is_asked_of_workbooks_alone_in_a_folder_too(predict, patients, write):
    Path("data").mkdir()
    patients.to_csv("data/p.csv", index=False)
    write("data/q.xlsx", lines_of(patients))
    code, out, err = predict(
        data="data", out="scores", sheet="Sheet", jobs="1", **{"id-column": "patient"}
    )
    assert code == 2
    assert out.startswith("scores: 1 of 2 tables scored")
    assert "p.csv is no Excel file (.xlsx)" in err
