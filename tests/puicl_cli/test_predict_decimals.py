"""What `puicl predict` reads in files with decimal commas: numbers, thousands, labels."""

import numpy as np
import pandas as pd
import pytest

from puicl_model.files import Options, read_table
from puicl_model.files.csv_files import Dialect
from puicl_model.files.decimals import POINTS

N = 60
COMMAS = {"separator": ";", "decimal": ","}


def table_of_numbers() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(size=N), "b": 1e-6 * rng.normal(size=N)})
    return table.assign(state=np.where(np.arange(N) % 4 == 0, "sick", "unknown"))


def test_beside_a_decimal_comma_points_part_thousands(tmp_path):
    lines = ["income;share;version;part;day;code;s", "1.234;0,125;1.5;0.125;1.12.2024;1.234;1"]
    lines += ["?; ;?;?;?;1.234;1", "900;1.000,5;2.25;0.250;24.12.2024;1.500;0"]
    lines += ["12.000;;0.125;0.500;3.1.2024;2.000;0"]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    table = read_table(str(tmp_path / "t.csv"), "s", "code", Dialect(separator=";", decimal=","))
    assert table["income"].dropna().tolist() == [1234, 900, 12000]
    assert table["share"].dropna().tolist() == [0.125, 1000.5]
    # With a group that no thousands have, a point is a point; dates and ids are as they stand.
    assert table["version"].tolist() == ["1.5", "?", "2.25", "0.125"]
    assert table["part"].tolist() == ["0.125", "?", "0.250", "0.500"]
    assert table["day"].tolist() == ["1.12.2024", "?", "24.12.2024", "3.1.2024"]
    assert table["code"].tolist() == ["1.234", "1.234", "1.500", "2.000"]
    points = {"thousands": ["income", "share"], "fractions": ["part", "version"]}
    told = {name: what for what, names in points.items() for name in names}
    assert table.attrs[POINTS] == told


@pytest.mark.parametrize(
    ("cells", "numbers"),
    [
        # By themselves 1,250 beside 2 would be thousands, and 1.250 beside them said nothing.
        ("1,250 kg|2 kg|3,125 kg", [1.25, 2, 3.125]),
        ("1.250 kg|2 kg|3.125,5 kg", [1250, 2, 3125.5]),
        ("1,459 €|2 €|1.000 €", [1.459, 2, 1000]),
        ("1,5|€2|€2,25", [1.5, 2, 2.25]),
        ("12,5 %|?|7 %", [12.5, np.nan, 7]),
    ],
)
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_amounts_with_commas_have_units_and_currencies(tmp_path, cells, numbers, ending):
    table, path = pd.DataFrame({"a": cells.split("|"), "s": [1, 0, 0]}), tmp_path / f"t.{ending}"
    if ending == "csv":
        table.to_csv(path, sep=";", index=False)
    else:
        pytest.importorskip("pyarrow")
        table.to_parquet(path)
    read = read_table(str(path), "s", None, Dialect(separator=";", decimal=","))
    np.testing.assert_array_equal(read["a"].to_numpy(), numbers)


@pytest.mark.parametrize("amount", ["{},5", "1,{:03} kg"])
def test_placeholders_beside_commas_are_missing_cells_and_told_as_beside_points(
    predict, tmp_path, amount
):
    table = table_of_numbers()
    numbers = pd.Series([amount.format(k) for k in range(1, N + 1)])
    table["b"] = numbers.where(table.index % 5 != 2, "-")
    table.to_csv(tmp_path / "t.csv", sep=";", decimal=",", index=False)
    code, _, err = predict(data="t.csv", out="scores.csv", **COMMAS)
    assert code == 0
    assert "taken for missing cells: b ('-')" in err
    read = read_table(str(tmp_path / "t.csv"), "state", None, Dialect(separator=";", decimal=","))
    assert str(read["b"][3]) == amount.format(4).replace(",", ".").removesuffix(" kg")


@pytest.mark.parametrize("cells", ["18 kg|20|7 kg", "5|7|9 rooms", "10a|10b|11a", "1,5|2|some"])
def test_amounts_with_commas_are_all_of_one_unit(tmp_path, cells):
    (tmp_path / "t.csv").write_text("a;s\n" + "".join(f"{cell};1\n" for cell in cells.split("|")))
    read = read_table(str(tmp_path / "t.csv"), "s", None, Dialect(separator=";", decimal=","))
    assert read["a"].tolist() == cells.replace(",", ".").split("|")


@pytest.mark.parametrize("blank", ["?", " "])
def test_beside_a_cell_for_nothing_numbers_are_numbers_as_they_are_with_points(
    predict, tmp_path, blank
):
    table = table_of_numbers()
    for decimal in ".,":
        cells = table["a"].astype(str).str.replace(".", decimal).where(table.index != 5, blank)
        written = table.assign(a=cells).to_csv(sep=";", decimal=decimal, index=False)
        (tmp_path / f"{decimal}.csv").write_text(written)
    expected = predict(data="..csv", out="-", separator=";")
    assert expected[0] == 0, expected
    assert predict(data=",.csv", out="-", **COMMAS) == expected
    assert "left out" not in expected[2]


@pytest.mark.parametrize("in_thousands", [False, True])
def test_another_word_is_refused_with_its_place_as_it_is_with_points(
    predict, tmp_path, in_thousands
):
    table = table_of_numbers()
    numbers = table["a"].map("{:.5f}".format).str.replace(".", ",")
    if in_thousands:
        numbers = pd.Series([f"{k}.500,25" for k in range(1, N + 1)])
    table["a"] = numbers.where(table.index != 5, "n/d")
    table.to_csv(tmp_path / "t.csv", sep=";", decimal=",", index=False)
    code, _, err = predict(data="t.csv", out="scores.csv", **COMMAS)
    assert code == 2
    assert "column a: row 5 holds 'n/d', not a number" in err


def test_words_stay_as_they_stand_but_for_numbers_among_them(tmp_path):
    lines = ["a;b;s", "x,y;1,5 mg;1", "1,5;2,25;0", ";,5e3;0", "a.b;3,;0"]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    table = read_table(str(tmp_path / "t.csv"), "s", None, Dialect(separator=";", decimal=","))
    assert table["a"].fillna("").tolist() == ["x,y", "1.5", "", "a.b"]
    assert table["b"].tolist() == ["1,5 mg", "2.25", ".5e3", "3."]


@pytest.mark.parametrize("separator", [",", ";"])
def test_decimal_commas_in_text_cells_of_any_file_are_told_by_the_decimal_mark_alone(
    predict, tmp_path, separator
):
    """Cells of CSV are quoted then; workbooks and Parquet have no separator, whatever is given."""
    pytest.importorskip("openpyxl")
    pytest.importorskip("pyarrow")
    table = table_of_numbers()
    table.to_csv(tmp_path / "points.csv", index=False)
    expected = predict(data="points.csv", out="-")
    assert expected[0] == 0, expected
    table["a"] = table["a"].astype(str).str.replace(".", ",")
    table.to_csv(tmp_path / "t.csv", sep=separator, index=False)
    table.to_excel(tmp_path / "t.xlsx", index=False)
    table.to_parquet(tmp_path / "t.parquet")
    for name in ("t.csv", "t.xlsx", "t.parquet"):
        assert predict(data=name, out="-", decimal=",", separator=separator) == expected


def test_in_a_workbook_numbers_beside_text_with_commas_are_what_they_are(tmp_path):
    pytest.importorskip("openpyxl")
    day = pd.Timestamp("2024-05-31")
    table = pd.DataFrame({"a": [1.234, "0,5", "1.234", 7], "b": ["1,5", day, True, "?"]})
    table.assign(s=["1,0", 0, None, 0]).to_excel(tmp_path / "t.xlsx", index=False)
    options = Options("s", dialect=Dialect(decimal=","))
    read = options.read(str(tmp_path / "t.xlsx"))
    assert read["a"].tolist() == [1.234, 0.5, 1234, 7]
    assert read["b"].tolist()[:3] == ["1.5", day, True]
    assert read["s"].tolist()[:2] == ["1.0", 0]
    assert read.attrs[POINTS] == {"a": "thousands"}


@pytest.mark.parametrize(("zero", "label"), [("0,0", None), ("", None), ("2,0", "1"), ("", "1,0")])
def test_labels_may_be_whole_floats_with_commas(predict, tmp_path, zero, label):
    table = table_of_numbers()
    labeled = table["state"] == "sick"
    table["state"] = np.where(labeled, "1,0", zero)
    table.to_csv(tmp_path / "t.csv", sep=";", decimal=",", index=False)
    dialect = Dialect(separator=";", decimal=",")
    options = Options("state", label, dialect=dialect)
    assert set(options.read(str(tmp_path / "t.csv"))["state"].dropna()) <= {"1.0", "0.0", "2.0"}
    options = COMMAS | {"positive-label": label}
    code, _, err = predict(data="t.csv", out="scores.csv", **options)
    assert code == 0, err
    assert (pd.read_csv(tmp_path / "scores.csv")["labeled"] == labeled).all()
