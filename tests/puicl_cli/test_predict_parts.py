"""`puicl predict` on parts of one table, which share their labelled positives."""

import json

import numpy as np
import pandas as pd
import pytest
from tables_in_folders import make_table, read, scores_of, whole_records, write

from puicl_model import PUICLClassifier
from puicl_model.files import Options, folder

pytestmark = pytest.mark.filterwarnings("ignore:only", "ignore:hardly", "ignore:nearly")


def test_parts_of_one_table_share_their_labelled_positives(predict_folder, tmp_path, weights):
    whole = make_table(5, n=60)
    parts = {"data/p0.csv": whole[:20], "data/p1.csv": whole[20:40].assign(s=0)}
    last = whole[40:][["b", "s", "name", "a"]]  # in whatever order
    for name, part in {**parts, "data/p2.csv": last}.items():
        write(tmp_path / name, part)
    labeled = whole[(whole["s"] == 1) & ~whole.index.isin(range(20, 40))]
    code, _, err = predict_folder("--one-table")
    assert code == 0, err
    scores = read(tmp_path / "out" / "p1.csv")
    assert list(scores["name"]) == list(whole["name"][20:40])
    assert (scores["labeled"] == 0).all()
    both = pd.concat([whole[20:40].assign(s=0), labeled])
    fitted = PUICLClassifier(weights).fit(both[["a", "b"]], both["s"])
    np.testing.assert_allclose(scores["p_positive"], fitted.unlabeled_proba_, rtol=0, atol=1e-6)
    first = read(tmp_path / "out" / "p0.csv")
    assert list(first["labeled"]) == list(whole["s"][:20])
    for name, part, features in (("p0", whole[:20], ["a", "b"]), ("p2", last, ["b", "a"])):
        # A part's own labelled rows are read once, those of the others along with them.
        both = pd.concat([part, labeled.drop(index=part.index, errors="ignore")])
        fitted = PUICLClassifier(weights).fit(both[features], both["s"])
        found = read(tmp_path / "out" / f"{name}.csv")["p_positive"].dropna()
        np.testing.assert_allclose(found, fitted.unlabeled_proba_, rtol=0, atol=1e-6)
    assert predict_folder()[0] == 2  # without --one-table these would be other scores

    write(tmp_path / "data" / "p3.csv", make_table(6).rename(columns={"b": "B"}))
    code, _, err = predict_folder("--one-table")
    assert code == 2
    assert "are no parts of one table: only one of them has the column 'B'" in err


@pytest.mark.parametrize("label", [None, "1"])
@pytest.mark.parametrize("odd", ["lacks", "has"])
def test_parts_without_positives_have_the_columns_of_the_others(
    predict_folder, tmp_path, label, odd
):
    """A column less was no error: such a part was scored on fewer columns without a word."""
    whole = make_table(5, n=60)
    write(tmp_path / "data" / "p0.csv", whole[:30])
    part = whole[30:].assign(s=0)
    part = part.drop(columns="b") if odd == "lacks" else part.assign(c=1.0)
    write(tmp_path / "data" / "p1.csv", part)
    code, _, err = predict_folder("--one-table", **{"positive-label": label})
    assert code == 2
    column = "b" if odd == "lacks" else "c"
    assert f"no parts of one table: only one of them has the column '{column}'" in err
    assert err.count("\n") == 1
    assert scores_of(tmp_path / "out") == {}


def test_when_positives_of_one_part_change_all_parts_are_scored_anew(predict_folder, tmp_path):
    whole, data = make_table(5, n=60), tmp_path / "data"
    write(data / "p0.csv", whole[:20])
    write(data / "p1.csv", whole[20:40].assign(s=0))
    assert predict_folder("--one-table")[0] == 0
    assert "2 of 2 tables scored (2 were there)" in predict_folder("--one-table")[1]

    write(data / "p2.csv", whole[40:].assign(s=0))  # lends nothing
    assert "3 of 3 tables scored (2 were there)" in predict_folder("--one-table")[1]

    write(data / "p0.csv", whole[:20].assign(a=lambda t: t["a"] + 5 * (t["s"] == 1)))
    code, told, _ = predict_folder("--one-table")
    assert code == 0
    assert "3 of 3 tables scored, " in told
    went_on = {name: path.read_bytes() for name, path in scores_of(tmp_path / "out").items()}
    assert predict_folder("--one-table", out="fresh")[0] == 0
    fresh = {name: path.read_bytes() for name, path in scores_of(tmp_path / "fresh").items()}
    assert went_on == fresh

    write(data / "p3.csv", whole[40:])  # has positives: all read them along
    assert "4 of 4 tables scored, " in predict_folder("--one-table")[1]
    (data / "p3.csv").unlink()
    assert "3 of 3 tables scored, " in predict_folder("--one-table")[1]
    again = {name: path.read_bytes() for name, path in scores_of(tmp_path / "out").items()}
    assert {name: again[name] for name in fresh} == fresh


def test_parts_that_an_older_version_scored_are_scored_anew_and_whole_tables_kept(
    predict_folder, tmp_path
):
    """It wrote down size and time of the part alone, and not from what positives."""
    whole = make_table(5, n=60)
    write(tmp_path / "data" / "p0.csv", whole[:30])
    write(tmp_path / "data" / "p1.csv", whole[30:])
    for flags, out, there in (((), "apart", " (2 were there)"), (("--one-table",), "parts", "")):
        assert predict_folder(*flags, out=out)[0] == 0
        for path in whole_records(tmp_path / out):
            record = json.loads(path.read_text(encoding="utf-8"))
            record["stamp"] = record["stamp"][:2]
            path.write_text(json.dumps(record), encoding="utf-8")
        code, told, _ = predict_folder(*flags, out=out)
        assert code == 0
        assert f"2 of 2 tables scored{there}, " in told
        assert "(2 were there)" in predict_folder(*flags, out=out)[1]


def test_of_many_shared_positives_evenly_spaced_ones_are_read_along(tmp_path, monkeypatch):
    monkeypatch.setattr(folder, "_MOST_SHARED", 5)
    for name in ("p0", "p1", "p2"):
        write(tmp_path / "data" / f"{name}.csv", make_table(5)[:20].assign(s=1))
    write(tmp_path / "data" / "p3.csv", make_table(6).assign(s=0))
    places = folder.find_tables(tmp_path / "data", tmp_path / "out")
    shared = folder.share_labeled(places, Options("s"))
    assert shared.index.tolist() == ["p0.csv", "p0.csv", "p1.csv", "p1.csv", "p2.csv"]
    assert shared["name"].tolist() == ["r0", "r12", "r4", "r16", "r8"]


def test_a_part_of_positives_alone_lends_them_and_is_not_scored(predict_folder, tmp_path, weights):
    whole = make_table(5, n=60)
    positives, rest = whole[whole["s"] == 1], whole[whole["s"] == 0]
    write(tmp_path / "data" / "positives.csv", positives)
    write(tmp_path / "data" / "unlabelled.csv", rest)
    code, _, err = predict_folder("--one-table")
    assert code == 0, err
    of_positives = read(tmp_path / "out" / "positives.csv")
    assert (of_positives["labeled"] == 1).all()
    assert of_positives["p_positive"].isna().all()
    both = pd.concat([rest, positives])
    fitted = PUICLClassifier(weights).fit(both[["a", "b"]], both["s"])
    scores = read(tmp_path / "out" / "unlabelled.csv")
    np.testing.assert_allclose(scores["p_positive"], fitted.unlabeled_proba_, rtol=0, atol=1e-6)
    summary = pd.read_csv(tmp_path / "out" / "_summary.csv").set_index("table")
    assert summary.loc["positives.csv", "n_unlabeled"] == 0
    assert summary["error"].isna().all()
    (tmp_path / "data" / "unlabelled.csv").unlink()
    code, _, err = predict_folder("--one-table", out="other")
    assert code == 2
    assert "no file has an unlabelled row" in err


def test_parts_may_spell_the_positive_label_in_several_ways(predict_folder, tmp_path):
    """Of such parts some lost their positives without a word, and others ended in an IndexError."""
    whole = make_table(5, n=60)
    write(tmp_path / "data" / "p0.csv", whole[:30])
    blank = whole[30:].assign(s=whole["s"][30:].where(whole["s"][30:] == 1).map({1: "1.0"}))
    write(tmp_path / "data" / "p1.csv", blank)
    code, _, err = predict_folder("--one-table", "--positive-label", "1")
    assert code == 0, err
    for name, rows in (("p0", whole[:30]), ("p1", whole[30:])):
        assert list(read(tmp_path / "out" / f"{name}.csv")["labeled"]) == list(rows["s"])


def test_a_class_prior_is_each_parts(predict_folder, tmp_path):
    whole = make_table(5, n=60)
    write(tmp_path / "data" / "p0.csv", whole[:30])
    write(tmp_path / "data" / "p1.csv", whole[30:])
    write(tmp_path / "data" / "p2.csv", whole[:25].assign(s=0))
    code, _, err = predict_folder("--one-table", **{"class-prior": 0.3})
    assert code == 0, err
    for name in ("p0", "p1", "p2"):
        scores = read(tmp_path / "out" / f"{name}.csv")["p_positive"]
        assert scores.mean() == pytest.approx(0.3, abs=1e-6)
    summary = pd.read_csv(tmp_path / "out" / "_summary.csv")
    assert list(summary["class_prior"]) == pytest.approx([0.3] * 3)
