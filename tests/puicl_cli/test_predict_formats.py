"""What `puicl predict` reads beyond CSV files of numbers: streams, Parquet, text, codes."""

import gzip
import importlib
import io
import os
import tracemalloc

import numpy as np
import pandas as pd
import pytest

from puicl_model.files import read_table
from puicl_model.preprocessing import TablePreprocessor


@pytest.mark.parametrize(
    ("positive", "other", "label"),
    [
        ("1", "", "1"),
        ("2", "", "2"),
        ("2.0", "1.0", "2"),
        ("true", "false", "true"),
        ("True", "False", "true"),
        ("01", "02", "01"),
        ("sick", "NA", "sick"),
    ],
)
def test_the_positive_label_is_found_as_it_is_written(
    predict, patients, tmp_path, positive, other, label
):
    state = np.where(patients["state"] == "sick", positive, other)
    patients.assign(state=state).to_csv(tmp_path / "p.csv", index=False)
    code, _, err = predict(data="p.csv", out="scores.csv", **{"positive-label": label})
    assert code == 0, err
    scores = pd.read_csv(tmp_path / "scores.csv")
    np.testing.assert_array_equal(scores["labeled"], patients["state"] == "sick")


@pytest.mark.parametrize("label", ["NA", "None", "null"])
def test_the_positive_label_may_be_a_word_for_nothing_and_empty_cells_are_unlabelled(
    predict, patients, tmp_path, label
):
    pytest.importorskip("openpyxl")
    pytest.importorskip("pyarrow")
    labeled = patients["state"] == "sick"
    table = patients.assign(state=np.where(labeled, label, np.where(patients.index < 30, "b", "")))
    table.to_csv(tmp_path / "p.csv", index=False)
    table.assign(state=table["state"].replace("", None)).to_parquet(tmp_path / "p.parquet")
    table.to_excel(tmp_path / "p.xlsx", index=False)
    for name in ("p.csv", "p.parquet", "p.xlsx"):
        code, out, err = predict(data=name, out="-", **{"positive-label": label})
        assert code == 0, err
        assert (pd.read_csv(io.StringIO(out))["labeled"] == labeled).all()


def test_a_column_of_names_that_was_not_named_is_left_out_with_a_warning(
    predict, patients, tmp_path
):
    patients.to_csv(tmp_path / "patients.csv", index=False)
    code, _, err = predict(data="patients.csv", out="scores.csv")
    assert code == 0
    assert err.startswith("warning: left out: patient (text that names rows)")


def test_parquet_and_streams_give_the_scores_of_csv(predict, patients, tmp_path):
    pytest.importorskip("pyarrow")
    patients = patients.drop(columns="patient")
    patients.to_csv(tmp_path / "p.csv", index=False)
    patients.to_parquet(tmp_path / "p.parquet")
    assert predict(data="p.csv", out="a.csv")[0] == 0
    assert predict(data="p.parquet", out="b.parquet")[0] == 0
    code, out, err = predict((tmp_path / "p.csv").read_bytes(), data="-", out="-")
    assert code == 0
    assert "stdout: 45 unlabelled rows scored from 15 labelled positives" in err
    expected = pd.read_csv(tmp_path / "a.csv")
    for found in (pd.read_parquet(tmp_path / "b.parquet"), pd.read_csv(io.StringIO(out))):
        pd.testing.assert_frame_equal(found, expected, check_dtype=False, rtol=0, atol=1e-12)


def test_a_parquet_files_named_index_may_be_the_id_column(predict, patients, tmp_path):
    patients.to_parquet(tmp_path / "plain.parquet", index=False)
    patients.set_index("patient").to_parquet(tmp_path / "index.parquet")
    patients.set_index("patient", drop=False).to_parquet(tmp_path / "both.parquet")
    options = {"out": "-", "id-column": "patient"}
    found = [predict(data=f"{name}.parquet", **options) for name in ("plain", "index", "both")]
    assert found[0][0] == 0, found[0]
    assert found[0][1] == found[1][1] == found[2][1]
    code, out, err = predict(data="index.parquet", out="-")  # otherwise it is no column
    assert code == 0
    assert "left out" not in err
    assert out.startswith("row,labeled,p_positive")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"data": "broken.parquet"}, "broken.parquet cannot be read as Parquet"),
        ({"data": "nowhere.parquet"}, "no file nowhere.parquet"),
        ({"id-column": "name"}, "p.csv has no column 'name'; it has age"),
        (
            {"data": "blanks.csv"},
            "blanks.csv has no column 'state'; it has age, ' state'\n",
        ),
        (
            {"positive-label": "ill"},
            "column state: s holds no labelled positive: no entry equals --positive-label 'ill'; "
            "the entries are 'sick', 'unknown'\n",
        ),
        ({"class-prior": "1.5"}, "--class-prior must lie between 0 and 1"),
        ({"class-prior": "0.5:0.2"}, "0 and 1, or be a range such as 0:0.5, not 0.5:0.2\n"),
        ({"class-prior": "rare"}, "--class-prior rare: give a share such as 0.03, or a range"),
        ({"class-prior": "0:0.2:0.5"}, "--class-prior 0:0.2:0.5: give a share such as 0.03, or"),
        ({"report": "nowhere/page.html"}, "the folder of nowhere/page.html does not exist"),
        ({"out": "link.csv"}, "--out link.csv would overwrite the data"),
        ({"report": "link.csv"}, "--report link.csv would overwrite the data"),
        (
            {"data": "few.csv", "blend": "trees"},
            "few.csv: --blend trees needs two labelled and two unlabelled rows",
        ),
        ({"report": "p.csv"}, "--report p.csv would overwrite the data"),
        ({"out": "p.csv"}, "--out p.csv would overwrite the data"),
        ({"report": "scores.csv"}, "--report and --out are both scores.csv"),
        ({"id-column": "state"}, "--id-column and --label-column are both 'state'"),
        ({"model": "."}, ". is a folder; give the model.safetensors file in it"),
        ({"data": "semicolons.csv"}, "no column 'state'; it has age;state: give the --separator"),
        ({"data": "decimals.csv"}, "more cells than its header: give the --separator of its"),
        (
            {"data": "comment.csv"},
            "its header, the line '# drawn 2024-03-01': remove comments above",
        ),
        (
            {"data": "long.csv"},
            "line 3 has 4 cells, more than the header, which has 3; a cell that holds the",
        ),
        ({"data": "cut.csv"}, "cut.csv, line 4: 1 of the header's 3 cells; is the file cut"),
        (
            {"data": "slip.csv"},
            "row 2 holds 'n/d', not a number, as nearly all others are; correct or",
        ),
        ({"out": "scores.tsv"}, "--out scores.tsv: files ending in .tsv are not written here"),
        ({"data": "packed.csv"}, "packed.csv cannot be read as CSV: it is packed by gzip"),
        ({"data": "latin.csv"}, "latin.csv cannot be read as CSV: it is not UTF-8 text"),
        ({"data": "blank.csv"}, "no column 'state'; it has age state: give the --separator"),
        (
            {"data": "spaced.csv"},
            "which has 2; a cell that holds the separator needs quotes, and no",
        ),
        ({"data": "commas.csv"}, "more than the header: give the --separator of its cells, and"),
        ({"data": "sep.csv"}, "the line 'sep=;': remove it, and give the --separator\n"),
        ({"data": "sep.csv", "separator": ";"}, "the line 'sep=': remove it, and give the"),
        ({"data": "quote.csv"}, "a quote that opens in line 3 is never closed\n"),
        (
            {"data": "wide.csv"},
            "text (invalid start byte); give its --encoding, which may be utf-16",
        ),
        (
            {"data": "nul.csv"},
            "it holds NUL characters; where it is UTF-16, give --encoding utf-16",
        ),
        ({"data": "-"}, "stdin cannot be read as CSV: it is empty\n"),
        ({"data": "twice.csv"}, "twice.csv has more than one column 'age'"),
        ({"id-column": "row"}, "--id-column row: the scores have a column of that name"),
        ({"id-column": "p_positive"}, "--id-column p_positive: the scores have a column of that"),
        ({"report": "-"}, "--report needs a file"),
        ({"report": "x/../scores.csv"}, "--report and --out are both scores.csv"),
        ({"out": "scores.csv.gz"}, "--out scores.csv.gz: files ending in .gz are not written"),
        ({"out": "/proc/scores.csv"}, "--out /proc/scores.csv cannot be written: "),
    ],
)
def test_bad_input_is_one_sentence_and_writes_nothing(
    predict, patients, tmp_path, options, message
):
    patients.drop(columns="patient").to_csv(tmp_path / "p.csv", index=False)
    (tmp_path / "link.csv").symlink_to("p.csv")
    few = "age,crp,state\n1,2,sick\n4,3,\n2,7,\n5,1,\n"
    (tmp_path / "few.csv").write_text(few, encoding="utf-8")
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 and nothing else")
    (tmp_path / "semicolons.csv").write_text("age;state\n7;sick\n8;unknown\n", encoding="utf-8")
    (tmp_path / "blanks.csv").write_text("age, state\n7,sick\n8,unknown\n", encoding="utf-8")
    (tmp_path / "decimals.csv").write_text("age;state\n7,5;sick\n8,1;unknown\n", encoding="utf-8")
    commas = "age;note;state\n7,5;a;sick\n8,1;a, b, c, d;unknown\n"
    (tmp_path / "commas.csv").write_text(commas, encoding="utf-8")
    (tmp_path / "blank.csv").write_text("age state\n7 sick\n8 unknown\n", encoding="utf-8")
    spaced = 'age, state\n7, sick\n8, "un, known"\n'
    (tmp_path / "spaced.csv").write_text(spaced, encoding="utf-8")
    (tmp_path / "sep.csv").write_text("sep=;\n" + commas, encoding="utf-8")
    (tmp_path / "quote.csv").write_text('age,state\n7,sick\n8,"un\n9,sick\n', encoding="utf-8")
    (tmp_path / "wide.csv").write_text(few, encoding="utf-16")
    (tmp_path / "nul.csv").write_text(few, encoding="utf-16-le")
    comment = "# drawn 2024-03-01\nage,state\n7,sick\n8,unknown\n"
    (tmp_path / "comment.csv").write_text(comment, encoding="utf-8")
    (tmp_path / "long.csv").write_text("age,crp,state\n1,2,sick\n1,2,sick,4\n", encoding="utf-8")
    cut = 'age,crp,state\n1,2,sick\n"1",2,\n1\n'
    (tmp_path / "cut.csv").write_text(cut, encoding="utf-8")
    slip = [f"{i / 7 if i != 2 else 'n/d'},{'sick' if i % 4 == 0 else ''}\n" for i in range(40)]
    (tmp_path / "slip.csv").write_text("age,state\n" + "".join(slip), encoding="utf-8")
    (tmp_path / "packed.csv").write_bytes(gzip.compress(b"age,state\n7,sick\n"))
    (tmp_path / "latin.csv").write_bytes("größe,state\n7,sick\n".encode("latin-1"))
    (tmp_path / "twice.csv").write_text("\nage,age,state\n7,7,sick\n", encoding="utf-8")
    (tmp_path / "x").mkdir()
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    code, out, err = predict(**{"data": "p.csv", "out": "scores.csv", **options})
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert message in err
    assert "categorical_features" not in err  # the classifier's word for --categorical-column
    assert err.count("\n") == 1
    after = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    assert after == before


def test_parquet_that_cannot_be_written_is_refused_before_anything_is_scored(
    predict, patients, tmp_path, monkeypatch
):
    patients.to_csv(tmp_path / "p.csv", index=False)

    def none(name):
        raise ModuleNotFoundError(f"No module named {name!r}")

    # pandas itself, which is loaded with it here, would not do without.
    monkeypatch.setattr(importlib, "import_module", none)
    code, _, err = predict(data="p.csv", out="scores.parquet", report="page.html")
    assert code == 2
    assert "pyarrow" in err
    assert [path.name for path in tmp_path.iterdir()] == ["p.csv"]


def test_a_files_name_need_not_be_unicode(predict, patients, tmp_path):
    name = os.fsdecode(b"caf\xe9.csv")
    patients.to_csv(tmp_path / name, index=False)
    code, _, err = predict(data=name, out="scores.csv", report="page.html")
    assert code == 0, err
    assert "caf\\udce9.csv" in (tmp_path / "page.html").read_text(encoding="utf-8")
    assert (tmp_path / "scores.csv").exists()


def test_text_is_not_held_many_times_over(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(40_000, 20))).rename(columns=str)
    table.assign(s=1, name=[f"row {row}" for row in range(len(table))]).to_csv(
        tmp_path / "t.csv", index=False
    )
    size = (tmp_path / "t.csv").stat().st_size
    read_table(str(tmp_path / "t.csv"), "s", "name")  # what is loaded but once
    tracemalloc.start()
    read_table(str(tmp_path / "t.csv"), "s", "name")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * size


def test_a_code_is_the_same_wherever_in_a_large_file_it_stands(tmp_path):
    table = pd.DataFrame(np.zeros((10_000, 64), dtype=int)).rename(columns=str)
    table["code"] = np.resize(["038", "250"], len(table))
    table.loc[len(table) - 3 :, "code"] = "V57"
    table.assign(s=1).to_csv(tmp_path / "t.csv", index=False)
    read = read_table(str(tmp_path / "t.csv"), "s")
    assert list(read["code"]) == list(table["code"])


@pytest.mark.parametrize("sign", [1, -1])
def test_whole_numbers_that_floats_skip_keep_their_digits_beside_blanks(tmp_path, sign):
    pyarrow = pytest.importorskip("pyarrow")
    pytest.importorskip("pyarrow.parquet")
    numbers = [sign * (2**53 + 1 + 2 * k) for k in range(40)]
    column = pd.array([*numbers, None], dtype="Int64")
    written = pd.DataFrame({"number": column, "half": 1e300, "s": "1"})
    written.loc[3, "half"] = None
    written.to_csv(tmp_path / "t.csv", index=False)
    written.to_parquet(tmp_path / "t.parquet")
    # As others write them, and pandas from cells of no type, whose index may be anything.
    plain = pyarrow.Table.from_pandas(written).replace_schema_metadata(None)
    pyarrow.parquet.write_table(plain, tmp_path / "plain.parquet")
    index = [None, *np.arange(40) // 2]
    objects = written.assign(number=pd.Series([*numbers, None], dtype=object)).set_axis(index)
    objects.to_parquet(tmp_path / "objects.parquet")
    for name in ("t.csv", "t.parquet", "plain.parquet", "objects.parquet"):
        table = read_table(str(tmp_path / name), "s")
        assert [int(cell) for cell in table["number"].dropna()] == numbers
        assert table["half"].dtype == "float64"
        read = TablePreprocessor(drop_identifiers=False).fit_transform(table[["number"]])
        assert np.array_equal(np.diff(read[:40, 0]), np.full(39, 2.0 * sign))
    named = read_table(str(tmp_path / "t.csv"), "s", "number")
    assert list(named["number"]) == [*map(str, numbers), ""]
