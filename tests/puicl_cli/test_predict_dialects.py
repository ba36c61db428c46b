"""CSV as other programs write it: separators, encodings, line ends, titles, files cut short."""

from pathlib import Path

import numpy as np
import pytest

from puicl_config import InputError
from puicl_model.files import Dialect, read_table


def test_lines_may_end_in_a_return_alone_and_in_empty_cells(predict, patients, tmp_path):
    patients = patients.assign(last=np.where(np.arange(len(patients)) % 3 == 0, 1.5, np.nan))
    patients.to_csv(tmp_path / "p.csv", index=False)
    text = (tmp_path / "p.csv").read_text(encoding="utf-8")
    (tmp_path / "old.csv").write_bytes(text.replace("\n", "\r").encode())
    (tmp_path / "short.csv").write_text(text.replace(",\n", "\n"), encoding="utf-8")
    options = {"out": "-", "id-column": "patient"}
    found = [predict(data=f"{name}.csv", **options) for name in ("p", "old", "short")]
    assert found[0][0] == 0, found[0]
    assert found[0][1] == found[1][1] == found[2][1]


@pytest.mark.parametrize(
    ("written", "options"),
    [
        ({"sep": ";", "decimal": ","}, {"separator": ";", "decimal": ","}),
        ({"sep": "\t", "encoding": "utf-16"}, {"separator": "tab", "encoding": "utf-16"}),
        ({"sep": "|", "encoding": "latin-1"}, {"separator": "|", "encoding": "latin-1"}),
        ({"encoding": "utf-8-sig"}, {}),
    ],
)
def test_csv_in_another_dialect_has_the_same_answer(predict, patients, tmp_path, written, options):
    patients = patients.rename(columns={"age": "größe"})
    patients.to_csv("plain.csv", index=False)
    expected = predict(data="plain.csv", out="-", **{"id-column": "patient"})
    assert expected[0] == 0, expected
    patients.to_csv("other.csv", index=False, **written)
    assert predict(data="other.csv", out="-", **{"id-column": "patient"}, **options) == expected
    (tmp_path / "clinics").mkdir()
    (tmp_path / "other.csv").rename(tmp_path / "clinics" / "a.csv")
    code, _, err = predict(data="clinics", out="scores", **{"id-column": "patient"}, **options)
    assert code == 0, err
    assert Path("scores/a.csv").read_text(encoding="utf-8") == expected[1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"separator": ";;"}, "--separator takes one character"),
        ({"separator": '"'}, "--separator takes one character"),
        ({"decimal": ";"}, "--decimal takes a point or a comma"),
        ({"encoding": "klingon"}, "--encoding klingon: there is no such encoding"),
        ({"encoding": "hex"}, "--encoding hex: there is no such encoding"),
        ({"encoding": "ascii"}, "is not ASCII text"),
        ({"data": "p.json"}, "ending in .json are not read here; give CSV, Parquet or .xlsx\n"),
        ({"data": "p.xls"}, "p.xls: files ending in .xls are not read here; give CSV, "),
    ],
)
def test_a_dialect_that_cannot_be_is_refused_in_one_sentence(predict, patients, options, message):
    patients.rename(columns={"age": "größe"}).to_csv("p.csv", index=False)
    code, out, err = predict(out="scores.csv", **{"data": "p.csv", **options})
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1
    assert not Path("scores.csv").exists()


def test_empty_columns_without_a_name_are_left_out_however_many(predict, patients, tmp_path):
    patients.to_csv(tmp_path / "p.csv", index=False)
    predict(data="p.csv", out="scores.csv")
    lines = (tmp_path / "p.csv").read_text().splitlines()
    (tmp_path / "blank.csv").write_text("".join(f"{line},,\n" for line in lines))
    code, _, err = predict(data="blank.csv", out="more.csv")
    assert code == 0, err
    assert (tmp_path / "more.csv").read_text() == (tmp_path / "scores.csv").read_text()


def test_a_title_above_the_header_is_named(predict, patients, tmp_path):
    (tmp_path / "p.csv").write_text("Export of 2024\n" + patients.to_csv(index=False))
    code, _, err = predict(data="p.csv", out="scores.csv")
    assert code == 2
    assert "the line 'Export of 2024': remove lines above the columns' names" in err


@pytest.mark.parametrize("separator", [",", ";"])
def test_a_file_is_cut_where_its_last_line_alone_is_short(tmp_path, separator):
    whole = ["a,b,s", "1,2,1", "3,4,0"]

    def read(*lines):
        (tmp_path / "t.csv").write_text("\n".join(lines).replace(",", separator))
        return read_table(str(tmp_path / "t.csv"), "s", None, Dialect(separator=separator))

    with pytest.raises(InputError, match="line 4: 2 of the header's 3 cells; is the file cut"):
        read(*whole, "5,6")
    assert read(*whole, "7", "5,6")["s"].isna().sum() == 2  # the writer leaves blanks out
    assert read(*whole, "7", "5,6,1")["s"].isna().sum() == 1
    assert read(*whole, "5,6,")["s"].isna().sum() == 1


@pytest.mark.parametrize("name", ["utf-8", "UTF8", "utf_8", "U8", "UTF-8-sig"])
def test_a_byte_order_mark_is_passed_over_by_whatever_name_utf_8_goes(tmp_path, name):
    (tmp_path / "t.csv").write_bytes(b"\xef\xbb\xbfs,a\n1,2\n,3\n")
    table = read_table(str(tmp_path / "t.csv"), "s", None, Dialect(encoding=name))
    assert list(table) == ["s", "a"]
    (tmp_path / "t.csv").write_bytes(b"\xef\xbb\xbfs,s,a\n1,2,3\n")
    with pytest.raises(InputError, match="more than one column 's'"):
        read_table(str(tmp_path / "t.csv"), "s", None, Dialect(encoding=name))
