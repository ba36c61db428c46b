"""New rows from the shell: `puicl predict --save`, then `puicl predict-new`."""

import io
import shutil
import sys

import numpy as np
import pandas as pd
import pytest

from puicl_cli.main import main
from puicl_model import PUICLClassifier

READ = ["age", "ward", "crp", "seen"]


@pytest.fixture
def saved(predict, patients, tmp_path):
    """The classifier's file, the table's file and its scores."""
    patients.to_csv(tmp_path / "old.csv", index=False)
    told = predict(
        data="old.csv", out="old_scores.csv", save="clinic.puicl", **{"id-column": "patient"}
    )
    assert told[0] == 0, told
    return tmp_path / "clinic.puicl", patients, pd.read_csv(tmp_path / "old_scores.csv")


@pytest.fixture
def predict_new(tmp_path, monkeypatch, called):
    """Run `puicl predict-new` with the saved classifier; exit code, stdout, stderr."""

    def run(stdin: bytes = b"", **options):
        options = {
            "classifier": "clinic.puicl",
            "data": "new.csv",
            "out": "new_scores.csv",
        } | options
        words = [word for key, value in options.items() for word in (f"--{key}", value)]
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), "utf-8"))
        return called(main, "puicl", "predict-new", *words)

    return run


def test_rows_of_the_table_have_their_scores_again(saved, predict_new, tmp_path):
    _, patients, scores = saved
    chosen = np.flatnonzero(scores.labeled == 0)[[7, 3, 20]]
    patients.iloc[chosen].to_csv("new.csv", index=False)
    code, out, err = predict_new(**{"id-column": "patient"})
    assert (code, out) == (0, "new_scores.csv: 3 new rows scored\n")
    assert err == "note: no features, left out: state\n"
    new = pd.read_csv("new_scores.csv")
    assert list(new) == ["row", "patient", "labeled", "p_positive"] == list(scores)
    assert new.row.tolist() == [0, 1, 2]
    assert new.patient.tolist() == patients.patient[chosen].tolist()
    assert (new.labeled == 0).all()
    np.testing.assert_array_equal(new.p_positive, scores.p_positive[chosen])


def test_new_rows_are_scored_as_in_python_whatever_the_order_of_the_columns(saved, predict_new):
    path, patients, _ = saved
    new = patients[READ].iloc[:2].assign(age=[31, 52])
    new[READ[::-1]].to_csv("new.csv", index=False)
    assert predict_new() == (0, "new_scores.csv: 2 new rows scored\n", "")
    expected = PUICLClassifier.load(path).predict_proba(new)[:, 1]
    np.testing.assert_array_equal(pd.read_csv("new_scores.csv").p_positive, expected)


def test_streams_carry_the_rows_and_nothing_but_the_scores(saved, predict_new):
    _, patients, scores = saved
    text = patients.iloc[[1]].to_csv(index=False).encode()
    code, out, err = predict_new(stdin=text, data="-", out="-")
    assert code == 0
    assert pd.read_csv(io.StringIO(out)).p_positive.tolist() == [scores.p_positive[1]]
    assert err.endswith("stdout: 1 new row scored\n")


def test_what_a_new_row_holds_of_no_known_kind_is_told(saved, predict_new):
    _, patients, _ = saved
    patients.iloc[:3].assign(ward=["west", "west", "east"]).to_csv("new.csv", index=False)
    code, _, err = predict_new(**{"id-column": "patient"})
    assert code == 0
    assert "warning: column ward holds 'east', which the fit has not seen" in err
    patients.iloc[:3].assign(age=[1, 2, "old"]).to_csv("new.csv", index=False)
    code, _, err = predict_new()
    assert code == 2
    assert err.startswith("error: new.csv, column age: ")


def test_points_that_may_mark_fractions_although_the_decimal_mark_is_a_comma_are_told(
    saved, predict_new
):
    _, patients, _ = saved
    comma = {"separator": ";", "decimal": ","}
    new = patients[READ].iloc[:2]
    for crp in (["1.234", "2.000"], ["1.234", "2.000,5"], ["1,234", "2"], ["0.125", "1.234"]):
        new.assign(crp=crp).to_csv("new.csv", index=False, sep=";")
        code, _, err = predict_new(**comma)
        assert code == 0
        told = "warning: points in crp are taken for marks of thousands (1.234 for 1234), since"
        assert err.startswith(told) if crp == ["1.234", "2.000"] else not err


def test_a_classifier_of_a_machine_with_a_gpu_is_of_use_without_one(saved, predict_new):
    path, patients, scores = saved
    PUICLClassifier.load(path).set_params(device="cuda:77").save(path)
    patients.iloc[1:3].to_csv("new.csv", index=False)
    assert predict_new()[0] == 0
    told = pd.read_csv("new_scores.csv").p_positive
    np.testing.assert_array_equal(told, scores.p_positive[1:3])


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"data": "lacks.csv"}, "lacks.csv has no column 'ward'; it has age, crp, seen"),
        ({"id-column": "name"}, "new.csv has no column 'name'; it has patient, age, ward"),
        ({"id-column": "age"}, "--id-column age: the classifier reads that column as a feature"),
        ({"id-column": "row"}, "--id-column row: the scores have a column of that name"),
        ({"data": "empty.csv"}, "empty.csv has no rows"),
        ({"data": "."}, ". is a folder; give one file"),
        ({"data": "gone.csv"}, "no file gone.csv"),
        ({"out": "clinic.puicl"}, "--out clinic.puicl would overwrite the classifier"),
        ({"out": "new.csv"}, "--out new.csv would overwrite the data"),
        ({"out": "nowhere/a.csv"}, "the folder of nowhere/a.csv does not exist"),
        ({"classifier": "new.csv"}, "new.csv is no saved classifier"),
        ({"classifier": "gone.puicl"}, "no file gone.puicl"),
        ({"sheet": "one"}, "--sheet one: new.csv is no Excel file"),
    ],
)
def test_what_cannot_be_scored_is_refused(saved, predict_new, tmp_path, options, sentence):
    _, patients, _ = saved
    patients.iloc[:3].to_csv("new.csv", index=False)
    patients.iloc[:3][["age", "crp", "seen"]].to_csv("lacks.csv", index=False)
    patients.iloc[:0].to_csv("empty.csv", index=False)
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    code, out, err = predict_new(**options)
    assert (code, out) == (2, "")
    assert err.startswith(f"error: {sentence}")
    assert err.count("\n") == 1
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


@pytest.mark.parametrize("form", [np.asarray, lambda x: pd.DataFrame(x, columns=[2019, 2020])])
def test_a_classifier_without_names_that_are_text_is_for_python(
    saved, predict_new, weights, tmp_path, form
):
    table = form(np.random.default_rng(0).normal(size=(30, 2)))
    classifier = PUICLClassifier(weights, n_estimators=1)
    classifier.fit(table, np.arange(30) < 12).save(tmp_path / "nameless.puicl")
    pd.DataFrame({"2019": [1.0], "2020": [2.0]}).to_csv("new.csv", index=False)
    code, _, err = predict_new(classifier="nameless.puicl")
    assert code == 2
    assert "fitted to an array, or to a frame whose names of columns are no text: score" in err


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"save": "-"}, "--save needs a file: - is for --data and --out"),
        ({"save": "old.csv"}, "--save old.csv would overwrite the data"),
        ({"save": "x.csv"}, "--save and --out are both x.csv; give two files"),
        ({"save": "p", "report": "p"}, "--save and --report are both p; give two files"),
        ({"save": "w.safetensors", "model": "w.safetensors"}, "--save and --model are both w.safe"),
        ({"out": "w.safetensors", "model": "w.safetensors"}, "--out and --model are both w.safet"),
        ({"save": "nowhere/c.puicl"}, "the folder of nowhere/c.puicl does not exist"),
        ({"data": "folder", "out": "scores", "save": "c.puicl"}, "--save is for one table"),
    ],
)
def test_what_is_written_takes_no_other_files_place(
    predict, patients, weights, tmp_path, options, sentence
):
    (tmp_path / "folder").mkdir()
    patients.to_csv(tmp_path / "old.csv", index=False)
    for ending in (".safetensors", ".json"):
        shutil.copy(weights.with_suffix(ending), tmp_path / f"w{ending}")
    before = {file.name: file.stat().st_mtime_ns for file in tmp_path.iterdir()}
    code, _, err = predict(**{"data": "old.csv", "out": "x.csv", "id-column": "patient", **options})
    assert code == 2
    assert err.startswith(f"error: {sentence}")
    assert {file.name: file.stat().st_mtime_ns for file in tmp_path.iterdir()} == before


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), ValueError("too long")])
def test_a_classifier_that_cannot_be_saved_takes_neither_scores_nor_warnings_along(
    predict, patients, tmp_path, monkeypatch, error
):
    def fail(*_):
        raise error

    patients.to_csv(tmp_path / "old.csv", index=False)
    monkeypatch.setattr("puicl_model.saving.save_classifier", fail)
    code, _, err = predict(data="old.csv", out="x.csv", save="c.puicl")
    assert code == 2
    warning, told = err.splitlines()
    assert warning.startswith("warning: left out: patient")
    assert told == f"error: --save c.puicl: {error}; the scores are written"
    assert len(pd.read_csv(tmp_path / "x.csv")) == len(patients)
