import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from puicl_cli.main import main
from puicl_model import PUICLClassifier

TABLE = """a,s,b
1.5,1,20
2.5,,-3
3,0,11
4,1,4
0.25,,0
-7,0,8
"""


FEW = (
    "warning: only 2 labelled positives: with fewer than 10 the scores depend on which ones they "
    "happen to be, and the estimated share of positives is little more than a guess\n"
)


@pytest.fixture
def predict(tmp_path, weights, monkeypatch, called):
    """Run `puicl predict` on a text; exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "table.csv").write_text(TABLE, encoding="utf-8")

    def run(text=None, **options):
        if text is not None:
            content = text if isinstance(text, bytes) else text.encode()
            (tmp_path / "table.csv").write_bytes(content)
        options = {
            "data": "table.csv",
            "label-column": "s",
            "out": "scores.csv",
            "model": weights,
            **options,
        }
        words = [item for key, value in options.items() for item in (f"--{key}", value)]
        code, out, err = called(main, "puicl", "predict", *words)
        return code, out, err.replace(FEW, "")

    return run


def check_refused(result, folder: Path, *mentioned: str) -> None:
    """Exit code 2, one sentence on stderr, nothing on stdout, nothing written."""
    code, out, err = result
    assert code == 2
    assert out == ""
    assert err.startswith("error: ")
    assert err.endswith("\n")
    assert err.count("\n") == 1, f"more than one line: {err!r}"
    assert "Traceback" not in err
    for part in mentioned:
        assert part in err
    assert not (folder / "scores.csv").exists()
    assert {path.name for path in folder.iterdir()} <= {"table.csv", "shelf"}


def test_a_columns_name_gives_no_orders_to_the_terminal(predict, tmp_path):
    """What clears the screen, say, in a table from somebody else."""
    head, *lines = TABLE.splitlines()
    table = "\n".join([f"{head},\x1b[2Jc", *(f"{line},name {k}" for k, line in enumerate(lines))])
    check_refused(predict(table, **{"label-column": "t"}), tmp_path, "it has a, s, b, \\x1b[2Jc\n")
    code, _, err = predict(table)
    assert code == 0
    assert "left out: \\x1b[2Jc (" in err
    assert "\x1b" not in err


def test_scores_stand_in_the_inputs_order_and_are_the_classifiers(predict, tmp_path, weights):
    code, _, err = predict()
    assert code == 0
    assert err.startswith("warning: column s holds 0 in some rows and nothing in others")
    assert err.count("\n") == 1
    table = pd.read_csv(tmp_path / "table.csv")
    scores = pd.read_csv(tmp_path / "scores.csv")
    assert list(scores.columns) == ["row", "labeled", "p_positive"]
    assert list(scores["row"]) == [0, 1, 2, 3, 4, 5]
    assert list(scores["labeled"]) == [1, 0, 0, 1, 0, 0]
    assert list(scores["p_positive"].isna()) == [True, False, False, True, False, False]
    with pytest.warns(UserWarning, match="only 2 labelled"):
        fitted = PUICLClassifier(weights).fit(table[["a", "b"]], table["s"])
    np.testing.assert_allclose(
        scores["p_positive"].dropna(), fitted.unlabeled_proba_, rtol=0, atol=1e-15
    )
    assert np.ptp(fitted.unlabeled_proba_) > 1e-4


def test_the_answer_names_the_file_the_rows_and_the_estimated_share(predict, tmp_path):
    _, out, _ = predict()
    share = pd.read_csv(tmp_path / "scores.csv")["p_positive"].mean()
    assert out.count("\n") == 1
    assert out.startswith("scores.csv: 4 unlabelled rows scored from 2 labelled positives")
    assert out.endswith(f"estimated share of positives among the unlabelled: {share:.3f}\n")


def test_nothing_but_the_scores_is_written(predict, tmp_path):
    predict()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["scores.csv", "table.csv"]
    assert (tmp_path / "table.csv").read_text(encoding="utf-8") == TABLE


def test_old_scores_are_replaced(predict, tmp_path):
    (tmp_path / "scores.csv").write_text("old\n" * 100, encoding="utf-8")
    predict()
    assert len(pd.read_csv(tmp_path / "scores.csv")) == 6


@pytest.mark.parametrize(
    ("zero", "one"), [("-1", "1"), ("False", "True"), ("", "True"), ("0.0", "1.0"), ('""', "1")]
)
def test_every_way_to_write_the_label_column_gives_the_same_scores(predict, tmp_path, zero, one):
    predict()
    expected = (tmp_path / "scores.csv").read_bytes()
    rows = [line.split(",") for line in TABLE.splitlines()]
    rows[1:] = [[a, one if s == "1" else zero, b] for a, s, b in rows[1:]]
    code, _, err = predict("\n".join(map(",".join, rows)) + "\n")
    assert (code, err) == (0, "")
    assert (tmp_path / "scores.csv").read_bytes() == expected


def test_true_and_false_are_features_like_one_and_zero(predict, tmp_path):
    predict("a,s,b\n1,1,1\n2,0,0\n3,0,1\n5,1,0\n")
    expected = (tmp_path / "scores.csv").read_bytes()
    assert predict("a,s,b\n1,1,True\n2,0,False\n3,0,True\n5,1,False\n")[0] == 0
    assert (tmp_path / "scores.csv").read_bytes() == expected


def test_a_missing_file_is_refused_by_name(predict, tmp_path):
    check_refused(predict(data="nowhere.csv"), tmp_path, "no file nowhere.csv")


def test_a_folder_instead_of_a_file_is_refused(predict, tmp_path):
    (tmp_path / "shelf").mkdir()
    check_refused(predict(data="shelf"), tmp_path, "shelf")


@pytest.mark.parametrize(
    "content",
    [b"", b"\n\n", b"a,s\n1,1\n1,2,3,4\n", bytes(range(256)) * 8, "a,s\n1,0".encode("utf-16")],
    ids=["empty", "blank lines", "ragged", "binary", "utf-16"],
)
def test_a_file_that_is_no_csv_is_refused(predict, tmp_path, content):
    check_refused(predict(content), tmp_path, "table.csv", "cannot be read as CSV")


def test_a_header_without_rows_is_refused(predict, tmp_path):
    check_refused(predict("a,s,b\n"), tmp_path, "table.csv has no rows")


def test_a_missing_label_column_is_refused_with_the_columns_there_are(predict, tmp_path):
    result = predict(**{"label-column": "label"})
    check_refused(result, tmp_path, "table.csv has no column 'label'", "a, s, b")


def test_a_table_of_labels_alone_is_refused(predict, tmp_path):
    check_refused(predict("s\n1\n0\n"), tmp_path, "no feature columns")


def test_no_labelled_positive_is_refused(predict, tmp_path):
    result = predict(TABLE.replace(",1,", ",0,"))
    check_refused(result, tmp_path, "table.csv", "column s", "no labelled positive")


def test_no_unlabelled_row_is_refused(predict, tmp_path):
    result = predict(TABLE.replace(",,", ",1,").replace(",0,", ",1,"))
    check_refused(result, tmp_path, "table.csv", "column s", "no unlabelled row")


@pytest.mark.parametrize("value", ["2", "yes", "0.5", "inf"])
def test_another_value_in_the_label_column_is_refused_with_its_row(predict, tmp_path, value):
    result = predict(TABLE.replace("3,0,", f"3,{value},"))
    check_refused(result, tmp_path, "column s", "row 2", value)


@pytest.mark.parametrize("value", ["red", "2020-01-01", "1+2j", '"1,00"'])
def test_text_among_numbers_is_refused_with_its_place(predict, tmp_path, value):
    result = predict(TABLE.replace("4,1,4", f"4,1,{value}"))
    where = "table.csv, column b: row 3 holds"
    check_refused(result, tmp_path, where, value.strip('"'), "not a number")


@pytest.mark.parametrize("value", ["inf", "-inf", "Infinity", "1e999"])
def test_an_infinite_cell_is_refused_with_its_place(predict, tmp_path, value):
    result = predict(TABLE.replace("4,1,4", f"{value},1,4"))
    check_refused(result, tmp_path, "table.csv, column a: row 3 holds infinity")


@pytest.mark.parametrize("value", ["", "NA", "nan", '""', "?"])
def test_empty_cells_are_missing_values(predict, tmp_path, value):
    predict(TABLE.replace("4,1,4", ",1,4"))
    expected = (tmp_path / "scores.csv").read_bytes()
    assert predict(TABLE.replace("4,1,4", f"{value},1,4"))[0] == 0
    assert (tmp_path / "scores.csv").read_bytes() == expected
    assert pd.read_csv(tmp_path / "scores.csv")["p_positive"].notna().sum() == 4


def test_a_number_too_long_for_an_integer_is_read_or_refused_but_no_crash(predict, tmp_path):
    code, out, err = predict(TABLE.replace("3,0,11", f"3,0,{'1234567890' * 3}"))
    if code == 0:
        assert len(pd.read_csv(tmp_path / "scores.csv")) == 6
    else:
        check_refused((code, out, err), tmp_path, "column b: row 2")


def test_rows_with_one_cell_more_than_the_header_are_refused(predict, tmp_path):
    """Else the cells' columns would shift, and the first would vanish."""
    result = predict("a,s,b\n9,1,1,20\n9,2,0,3\n8,3,0,11\n7,4,1,4\n")
    check_refused(result, tmp_path, "table.csv")


def test_missing_weights_are_refused_by_name(predict, tmp_path):
    result = predict(model="nowhere.safetensors")
    check_refused(result, tmp_path, "no weights at nowhere.safetensors")


def test_a_folder_of_weights_is_refused_with_what_to_give(predict, tmp_path, weights):
    check_refused(predict(model=weights.parent), tmp_path, "is a folder", "model.safetensors")


def test_damaged_weights_are_refused(predict, tmp_path, weights, tmp_path_factory):
    damaged = tmp_path_factory.mktemp("damaged") / "model.safetensors"
    damaged.write_bytes(weights.read_bytes()[:-8])
    shutil.copy(weights.with_suffix(".json"), damaged.with_suffix(".json"))
    check_refused(predict(model=damaged), tmp_path, str(damaged), "damaged")


def test_a_missing_folder_for_the_scores_is_refused(predict, tmp_path):
    result = predict(out="nowhere/scores.csv")
    check_refused(result, tmp_path, "nowhere/scores.csv", "does not exist")


def test_a_folder_in_place_of_the_scores_is_refused(predict, tmp_path):
    (tmp_path / "shelf").mkdir()
    check_refused(predict(out="shelf"), tmp_path, "shelf", "folder")
    assert list((tmp_path / "shelf").iterdir()) == []


def test_bad_input_leaves_old_scores_as_they_were(predict, tmp_path):
    (tmp_path / "scores.csv").write_text("old\n", encoding="utf-8")
    assert predict(TABLE.replace("4,1,4", "4,1,red"))[0] == 2
    assert (tmp_path / "scores.csv").read_text(encoding="utf-8") == "old\n"


def test_as_a_process_the_command_exits_with_two_and_one_line_on_bad_input(
    run_command, tmp_path, weights
):
    data, out = tmp_path / "table.csv", tmp_path / "scores.csv"
    data.write_text(TABLE, encoding="utf-8")
    program = "from puicl_cli.main import main; main()"
    options = ["--data", data, "--label-column", "label", "--out", out, "--model", weights]
    done = run_command("-c", program, "predict", *options, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"error: {data} has no column 'label'; it has a, s, b\n"
    assert not out.exists()


def test_a_categorical_column_and_a_random_state_are_the_classifiers(predict, tmp_path, weights):
    rng = np.random.default_rng(0)
    codes, size = rng.integers(1, 4, 60), rng.normal(size=60).round(3)
    table = pd.DataFrame({"ward": 100 * codes, "size": size, "s": rng.random(60) < 0.3})
    text = table.to_csv(index=False)
    found = {}
    for column, seed in ((None, None), ("ward", None), ("ward", 5)):
        options = {"categorical-column": column, "random-state": seed}
        assert predict(text, **{k: v for k, v in options.items() if v is not None})[0] == 0
        scores = pd.read_csv(tmp_path / "scores.csv")["p_positive"].dropna().to_numpy()
        chosen = {} if seed is None else {"random_state": seed}
        named = None if column is None else [column]
        fitted = PUICLClassifier(weights, categorical_features=named, **chosen)
        fitted.fit(table[["ward", "size"]], table["s"])
        np.testing.assert_allclose(scores, fitted.unlabeled_proba_, rtol=1e-6)
        found[column, seed] = scores
    assert not np.allclose(found[None, None], found["ward", None])
    assert not np.array_equal(found["ward", None], found["ward", 5])


@pytest.mark.parametrize("column", ["s", "name", "d"])
def test_a_categorical_column_that_is_no_feature_is_refused(predict, tmp_path, column):
    text = "a,s,name\n1,1,x\n2,0,y\n3,0,z\n5,1,w\n"
    result = predict(text, **{"categorical-column": column, "id-column": "name"})
    check_refused(
        result, tmp_path, "no column 'd'" if column == "d" else f"--categorical-column {column}"
    )


def test_the_help_names_the_classifiers_defaults(called):
    told = " ".join(called(main, "puicl", "predict", "--help")[1].replace("│", " ").split())
    defaults = PUICLClassifier().get_params()
    for name in ("n_estimators", "precision", "random_state"):
        assert f"(default: {defaults[name]})" in told


@pytest.mark.filterwarnings("ignore:.*")
@pytest.mark.parametrize(
    ("options", "parameters"),
    [
        ({"n-estimators": 1}, {"n_estimators": 1}),
        ({"blend": "trees"}, {"blend": "trees"}),
        ({"precision": "bfloat16"}, {"precision": "bfloat16"}),
    ],
)
def test_passes_blend_and_precision_are_the_classifiers(
    predict, tmp_path, weights, monkeypatch, options, parameters
):
    # The students of an untrained network do not follow it.
    monkeypatch.setattr("puicl_model.blend.weights_of", lambda *_: np.array([600, 200, 200]))
    monkeypatch.setattr("puicl_model.precision.multiplies_bfloat16", lambda: True)
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(60, 3)).round(3), columns=list("abc"))
    table["s"] = rng.random(60) < 0.3
    assert predict(table.to_csv(index=False), **options)[0] == 0
    scores = pd.read_csv(tmp_path / "scores.csv")["p_positive"].dropna().to_numpy()
    told, plain = (
        PUICLClassifier(weights, **chosen).fit(table[[*"abc"]], table["s"]).unlabeled_proba_
        for chosen in (parameters, {})
    )
    np.testing.assert_allclose(scores, told, rtol=1e-6)
    assert not np.allclose(told, plain, rtol=1e-6)
