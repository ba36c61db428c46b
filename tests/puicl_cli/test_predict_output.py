"""Where and how `puicl predict` writes scores: names of rows, links, pipes, streams."""

import os
import re
import stat
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from puicl_model import PUICLClassifier

ROOT = Path(__file__).resolve().parents[2]
N = 60


def test_the_id_column_is_kept_and_is_no_feature(predict, patients, weights, tmp_path):
    patients.to_csv(tmp_path / "patients.csv", index=False)
    code, _, err = predict(data="patients.csv", out="scores.csv", **{"id-column": "patient"})
    assert (code, err) == (0, "")
    scores = pd.read_csv(tmp_path / "scores.csv")
    assert list(scores) == ["row", "patient", "labeled", "p_positive"]
    assert list(scores["patient"]) == list(patients["patient"])
    np.testing.assert_array_equal(scores["labeled"], patients["state"] == "sick")
    fitted = PUICLClassifier(weights, positive_label="sick").fit(
        patients[["age", "ward", "crp", "seen"]], patients["state"]
    )
    found = scores["p_positive"].dropna()
    np.testing.assert_allclose(found, fitted.unlabeled_proba_, rtol=0, atol=1e-12)


def test_names_of_rows_come_back_as_they_are_written(predict, patients, tmp_path):
    names = [f"{i:05d}" for i in range(N)]
    names[3:8] = ["1.10", "1e3", "NA", "", " x "]
    patients.assign(patient=names).to_csv(tmp_path / "patients.csv", index=False)
    options = {"data": "patients.csv", "id-column": "patient"}
    assert predict(**options, out="scores.csv")[0] == 0
    scores = pd.read_csv(tmp_path / "scores.csv", dtype=str, keep_default_na=False)
    assert list(scores["patient"]) == names


@pytest.mark.parametrize("named", ["Unnamed: 0", "Unnamed: 0.1"])
def test_a_saved_index_may_name_the_rows_or_label_them(predict, patients, tmp_path, named):
    names = [f"{i:03d}" for i in range(N)]
    index = {"": names} if named == "Unnamed: 0" else {"": names, "Unnamed: 0": 1.0}
    table = pd.DataFrame(index).join(patients.drop(columns="patient"))
    table.to_csv(tmp_path / "t.csv", index=False)
    assert predict(data="t.csv", out="scores.csv", **{"id-column": named})[0] == 0
    scores = pd.read_csv(tmp_path / "scores.csv", dtype=str)
    assert list(scores[named]) == names
    labels = {"label-column": named, "positive-label": "003"}
    assert predict(data="t.csv", out="scores.csv", **labels)[0] == 0
    assert pd.read_csv(tmp_path / "scores.csv")["labeled"].idxmax() == 3


def test_what_goes_to_stderr_is_lost_without_one_and_no_row_of_the_scores(
    predict, patients, tmp_path, monkeypatch
):
    few = patients.assign(state=np.where(np.arange(N) < 5, "sick", "unknown"))
    few.to_csv(tmp_path / "p.csv", index=False)
    options = {"data": "p.csv", "out": "-", "id-column": "patient", "n-estimators": 1}
    code, scores, err = predict(**options)
    assert (code, err.count("only 5 labelled")) == (0, 1)
    monkeypatch.setattr(sys, "stderr", None)  # as where a service has closed it
    assert predict(**options) == (0, scores, "")


def test_scores_follow_links_keep_permissions_and_go_into_pipes(predict, patients, tmp_path):
    patients.to_csv(tmp_path / "p.csv", index=False)
    (tmp_path / "real.csv").write_text("old", encoding="utf-8")
    (tmp_path / "real.csv").chmod(0o600)
    (tmp_path / "link.csv").symlink_to("real.csv")
    options = {"data": "p.csv", "id-column": "patient", "n-estimators": 1}
    assert predict(**options, out="link.csv")[0] == 0
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "real.csv").stat().st_mode & 0o777 == 0o600
    written = (tmp_path / "real.csv").read_text(encoding="utf-8")
    assert written.startswith("row,patient,labeled,p_positive\n")

    os.mkfifo(tmp_path / "pipe.csv")
    found = []
    reader = threading.Thread(
        target=lambda: found.append((tmp_path / "pipe.csv").read_text(encoding="utf-8"))
    )
    reader.start()
    assert predict(**options, out="pipe.csv")[0] == 0
    reader.join(timeout=20)
    assert found == [written]
    assert stat.S_ISFIFO((tmp_path / "pipe.csv").stat().st_mode)


def test_stdout_is_utf8_whatever_the_terminal_says(weights, patients, tmp_path):
    patients.assign(patient="Zoë").to_csv(tmp_path / "p.csv", index=False)
    words = ["predict", "--data", "p.csv", "--out", "-", "--label-column", "state"]
    words += ["--positive-label", "sick", "--id-column", "patient", "--model", weights]
    done = subprocess.run(
        [sys.executable, "-c", "from puicl_cli.main import main; main()", *map(str, words)],
        cwd=tmp_path,
        capture_output=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "ascii"},
        timeout=120,
    )
    assert done.returncode == 0, done.stderr.decode()
    assert "Zoë" in done.stdout.decode("utf-8")
    # What is said of the answer is no part of it.
    assert done.stdout.startswith(b"row,patient,labeled,p_positive")
    assert done.stdout.count(b"\n") == len(patients) + 1
    assert b"share of positives among the unlabelled" in done.stderr


def test_a_known_class_prior_is_the_mean_of_the_scores(predict, patients, tmp_path):
    patients.drop(columns="patient").to_csv(tmp_path / "p.csv", index=False)
    code, out, _ = predict(data="p.csv", out="scores.csv", **{"class-prior": "0.2"})
    assert code == 0
    assert out.endswith("positives; share of positives among the unlabelled: 0.200, as given\n")
    assert pd.read_csv(tmp_path / "scores.csv")["p_positive"].mean() == pytest.approx(0.2)


def test_of_a_range_the_share_is_estimated_within_it(predict, patients, tmp_path):
    patients.drop(columns="patient").to_csv(tmp_path / "p.csv", index=False)
    code, out, _ = predict(data="p.csv", out="scores.csv", **{"class-prior": "0:0.15"})
    assert code == 0
    told = re.search(r"estimated share of positives among the unlabelled: (\S+) \((\S+) to", out)
    share, low = map(float, told.groups())
    assert low < share <= 0.15
    scores = pd.read_csv(tmp_path / "scores.csv")["p_positive"]
    assert scores.mean() == pytest.approx(share, abs=0.0006)


@pytest.mark.parametrize("given", ["0:0.5:1", "half", "", "0:"])
def test_a_class_prior_is_a_share_or_a_range(predict, patients, tmp_path, given):
    patients.drop(columns="patient").to_csv(tmp_path / "p.csv", index=False)
    code, _, said = predict(data="p.csv", out="scores.csv", **{"class-prior": given})
    assert code == 2
    assert said.startswith(f"error: --class-prior {given}: give a share such as 0.03, or a range")


@pytest.mark.parametrize(
    ("report", "sentence"),
    [
        ("-", "error: --report needs a file: - is for --data and --out\n"),
        ("HERE/scores.csv", "error: --report and --out are both scores.csv; give two files\n"),
        ("nowhere/page.html", "error: the folder of nowhere/page.html does not exist"),
        ("p.csv", "error: --report "),
    ],
)
def test_a_page_needs_a_file_of_its_own(predict, patients, tmp_path, report, sentence):
    patients.drop(columns="patient").to_csv(tmp_path / "p.csv", index=False)
    before = (tmp_path / "p.csv").read_bytes()
    page = report.replace("HERE", str(tmp_path))
    code, _, said = predict(data="p.csv", out="scores.csv", report=page)
    assert code == 2
    assert said.startswith(sentence)
    assert [path.name for path in tmp_path.iterdir()] == ["p.csv"]
    assert (tmp_path / "p.csv").read_bytes() == before


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_an_answer_that_finds_its_disk_full_is_told(predict, patients, tmp_path):
    patients.drop(columns="patient").to_csv(tmp_path / "p.csv", index=False)
    (tmp_path / "scores.csv").symlink_to("/dev/full")
    code, _, said = predict(data="p.csv", out="scores.csv")
    assert code == 2
    assert said.splitlines()[-1].startswith("error: the answer cannot be written: ")


def test_a_seed_is_one_that_numpy_takes(predict, patients, tmp_path):
    patients.drop(columns="patient").to_csv(tmp_path / "p.csv", index=False)
    code, _, said = predict(data="p.csv", out="scores.csv", **{"random-state": 2**32})
    assert code == 2
    assert "--random-state" in said
    assert "4294967295" in said
