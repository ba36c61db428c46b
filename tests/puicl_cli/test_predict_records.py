"""What `puicl predict` writes down of a folder: how scores were made, and of each table what."""

import json

import numpy as np
import pandas as pd
import pytest
from tables_in_folders import make_table, read, scores_of, whole_records, write

from puicl_model import PUICLClassifier
from puicl_model.files import folder

pytestmark = pytest.mark.filterwarnings("ignore:only", "ignore:hardly", "ignore:nearly")
NAMES = ["a.csv", "b.csv", "sub/c.csv"]


@pytest.fixture
def tables(tmp_path) -> dict[str, pd.DataFrame]:
    made = {name: make_table(seed) for seed, name in enumerate(NAMES)}
    for name, table in made.items():
        write(tmp_path / "data" / name, table)
    return made


def test_scores_made_in_another_way_are_not_mixed(
    predict_folder, tables, tmp_path, untrained_weights
):
    predict_folder()
    before = {name: path.read_bytes() for name, path in scores_of(tmp_path / "out").items()}
    others = [({"n-estimators": 1}, "n_estimators"), ({"class-prior": 0.3}, "class_prior")]
    others += [({"random-state": 7}, "random_state")]
    others += [({"model": untrained_weights(layers=1)}, "weights")]
    others += [({"categorical-column": "a"}, "categorical_columns")]
    for options, key in others:
        code, _, err = predict_folder(**options)
        assert code == 2
        assert err.startswith(f"error: out holds scores made with {key}")
        assert err.count("\n") == 1
    assert before == {n: path.read_bytes() for n, path in scores_of(tmp_path / "out").items()}


@pytest.mark.parametrize("name", ["b.csv", "sub/c.csv", "_summary.csv"])
def test_files_that_this_command_did_not_write_are_not_overwritten(
    predict_folder, tables, tmp_path, name
):
    own = tmp_path / "out" / name
    own.parent.mkdir(parents=True)
    own.write_text("mine")
    (tmp_path / "out" / "notes.csv").write_text("in nobody's way")
    code, _, err = predict_folder()
    assert code == 2
    assert err.startswith(f"error: --out out holds {name}, which would be overwritten although")
    assert own.read_text() == "mine"
    own.unlink()
    code, _, err = predict_folder()
    assert code == 0, err


def test_a_folder_goes_on_with_the_same_range_and_not_with_another(predict_folder, tables):
    assert predict_folder(**{"class-prior": "0:0.5"})[0] == 0
    code, out, err = predict_folder(**{"class-prior": "0:0.5"})
    assert code == 0, err
    assert "3 of 3 tables scored (3 were there)" in out
    code, _, err = predict_folder(**{"class-prior": "0:0.4"})
    assert code == 2
    assert "out holds scores made with class_prior [0.0, 0.5], not [0.0, 0.4]" in err


@pytest.mark.parametrize(
    ("flags", "wrong", "told"),
    [
        ((), {"label-column": "typo"}, "has no column 'typo'"),
        (("--one-table",), {"positive-label": "ill"}, "no file has a labelled positive"),
        ((), {"positive-label": "ill"}, "no entry equals --positive-label 'ill'"),
    ],
)
def test_a_run_without_scores_claims_nothing(predict_folder, tables, tmp_path, flags, wrong, told):
    code, _, err = predict_folder(*flags, **wrong)
    assert code == 2
    assert told in err
    code, out, err = predict_folder()
    assert code == 0, err
    assert "3 of 3 tables scored, " in out
    code, _, err = predict_folder(*flags, **wrong)  # now there are scores
    assert code == 2
    assert err.startswith("error: out holds scores made with ")


def test_one_tables_scores_claim_the_folder(predict_folder, tables, tmp_path):
    write(tmp_path / "data" / "sub" / "c.csv", make_table(2).rename(columns={"s": "typo"}))
    assert "1 of 3 tables scored, " in predict_folder(**{"label-column": "typo"})[1]
    code, _, err = predict_folder()
    assert code == 2
    assert "out holds scores made with label_column 'typo', not 's'" in err


def test_settings_of_an_older_version_may_lack_an_option(predict_folder, tables, tmp_path):
    assert predict_folder()[0] == 0
    noted = tmp_path / "out" / ".puicl" / "settings.json"
    settings = json.loads(noted.read_text(encoding="utf-8"))
    older = {key: value for key, value in settings.items() if key != "dialect"}
    noted.write_text(json.dumps(older), encoding="utf-8")
    code, out, err = predict_folder()
    assert code == 0, err
    assert "3 of 3 tables scored (3 were there)" in out
    assert json.loads(noted.read_text(encoding="utf-8")) == settings
    noted.write_text(json.dumps(older | {"n_estimators": 3}), encoding="utf-8")
    assert "made with n_estimators 3, not None" in predict_folder()[2]


@pytest.mark.parametrize("content", ["", '{"n_lab', "\0" * 20])
def test_a_damaged_record_is_none(predict_folder, tables, tmp_path, content):
    assert predict_folder()[0] == 0
    (tmp_path / "out" / ".puicl" / "b.csv.json").write_text(content, encoding="utf-8")
    code, out, err = predict_folder()
    assert code == 0, err
    assert "3 of 3 tables scored (2 were there)" in out
    assert len(whole_records(tmp_path / "out")) == 3


def test_whatever_ends_one_table_ends_no_other(predict_folder, tables, tmp_path, monkeypatch):
    score = folder.score_table

    def fail(table, source, *others, **options):
        if source.endswith("b.csv"):
            raise ZeroDivisionError("by nought\nand more")
        return score(table, source, *others, **options)

    monkeypatch.setattr(folder, "score_table", fail)
    code, out, err = predict_folder()
    assert code == 2
    assert "2 of 3 tables scored" in out
    (line,) = [line for line in err.splitlines() if "ZeroDivisionError" in line]
    assert line.endswith("data/b.csv: ZeroDivisionError: by nought")
    assert set(scores_of(tmp_path / "out")) == {"a.csv", "sub/c.csv"}


def test_the_summary_has_each_tables_interval_and_warnings(
    predict_folder, tables, tmp_path, untrained_weights
):
    spread = {"center": [0.0, 0.0], "spread": [0.0] * 5, "quantile": 0.5, "coverage": 0.9}
    weights = untrained_weights({"class_prior_interval": spread})
    # Few labelled positives, and a column of names: two warnings.
    table = tables["a.csv"].assign(s=np.arange(40) < 5, word=[f"word {k}" for k in range(40)])
    write(tmp_path / "data" / "a.csv", table)
    code, _, err = predict_folder(model=weights)
    assert code == 0, err
    summary = pd.read_csv(tmp_path / "out" / "_summary.csv").set_index("table")
    with pytest.warns(UserWarning, match="left out"):
        fitted = PUICLClassifier(weights).fit(table[["a", "b", "word"]], table["s"])
    line = summary.loc["a.csv"]
    assert (line["low"], line["high"]) == pytest.approx(fitted.class_prior_interval_, abs=1e-6)
    assert line["low"] < line["class_prior"] < line["high"]
    told = line["warnings"]
    assert told.startswith("left out: word")
    assert told.count("; only 5 labelled positives") == 1
    assert len(read(tmp_path / "out" / "a.csv")) == 40
