"""`puicl predict` on a folder: file by file, in parallel, restartable, failing files named."""

import os
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from launched import launch, wait_until
from tables_in_folders import make_table, read, scores_of, whole_records, write

from puicl_model import PUICLClassifier

pytestmark = pytest.mark.filterwarnings("ignore:only", "ignore:hardly", "ignore:nearly")


@pytest.fixture
def tables(tmp_path) -> dict[str, pd.DataFrame]:
    """A folder `data` of tables, with things beside them that are none."""
    made = {"a.csv": make_table(0), "year=2024/b.parquet": make_table(1), "c.CSV": make_table(2)}
    for name, table in made.items():
        write(tmp_path / "data" / name, table)
    for name in ("_SUCCESS", "_metadata.parquet", ".hidden.csv", "notes.txt", ".trash/d.csv"):
        path = tmp_path / "data" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("not a table", encoding="utf-8")
    return made


def test_each_table_has_the_scores_of_a_run_of_its_own(predict_folder, tables, tmp_path, weights):
    code, out, _ = predict_folder()
    assert code == 0
    assert out.startswith("out: 3 of 3 tables scored, 84 unlabelled rows")
    assert set(scores_of(tmp_path / "out")) == set(tables)
    summary = pd.read_csv(tmp_path / "out" / "_summary.csv").set_index("table")
    assert list(summary.index) == ["a.csv", "c.CSV", "year=2024/b.parquet"]
    for name, table in tables.items():
        scores = read(tmp_path / "out" / name)
        fitted = PUICLClassifier(weights).fit(table[["a", "b"]], table["s"])
        assert list(scores["name"]) == list(table["name"])
        found = scores["p_positive"].dropna()
        np.testing.assert_allclose(found, fitted.unlabeled_proba_, rtol=0, atol=1e-6)
        line = summary.loc[name]
        assert (line["n_labeled"], line["n_unlabeled"]) == (12, 28)
        assert line["class_prior"] == pytest.approx(fitted.class_prior_, abs=1e-6)


def test_what_is_finished_is_kept_and_what_changed_is_made_again(predict_folder, tables, tmp_path):
    predict_folder()
    first = {name: path.read_bytes() for name, path in scores_of(tmp_path / "out").items()}
    stamps = {name: path.stat().st_mtime_ns for name, path in scores_of(tmp_path / "out").items()}
    write(tmp_path / "data" / "a.csv", make_table(7))
    (tmp_path / "out" / "c.CSV").unlink()
    code, out, _ = predict_folder()
    assert code == 0
    assert "3 of 3 tables scored (1 were there)" in out
    again = scores_of(tmp_path / "out")
    assert {name for name, path in again.items() if path.read_bytes() != first[name]} == {"a.csv"}
    kept = {name for name, path in again.items() if path.stat().st_mtime_ns == stamps[name]}
    assert kept == {"year=2024/b.parquet"}


@pytest.mark.parametrize("damaged", ["", "{}", "[]", "7"])
def test_a_damaged_record_is_no_record_and_damaged_settings_are_refused(
    predict_folder, tables, tmp_path, damaged
):
    predict_folder()
    records = tmp_path / "out" / ".puicl"
    (records / "a.csv.json").write_text(damaged)
    code, out, _ = predict_folder()
    assert code == 0
    assert "3 of 3 tables scored (2 were there)" in out
    (records / "settings.json").write_text("7")
    code, _, err = predict_folder()
    assert code == 2
    assert "settings.json is damaged, and it alone tells the options of the scores" in err


def test_failing_tables_are_named_and_the_rest_goes_on(predict_folder, tables, tmp_path):
    data = tmp_path / "data"
    write(data / "bad" / "unlabeled.csv", make_table(3).assign(s=0))
    write(data / "bad" / "infinite.csv", make_table(3).assign(b=np.inf))
    write(data / "bad" / "columns.csv", make_table(3).rename(columns={"s": "t"}))
    (data / "bad" / "broken.parquet").write_bytes(b"PAR1 and nothing else")
    for _ in range(2):  # a second run tries them again and says the same
        code, out, err = predict_folder()
        assert code == 2
        assert out.startswith("out: 3 of 7 tables scored")
        for name, sentence in {
            "unlabeled.csv": "column s: s holds no labelled positive",
            "infinite.csv": "column b: row 0 holds infinity",
            "columns.csv": "has no column 's'; it has name, a, b, t",
            "broken.parquet": "cannot be read as Parquet",
        }.items():
            (line,) = [line for line in err.splitlines() if f"bad/{name}" in line]
            assert sentence in line
        assert err.splitlines()[-1].startswith("error: 4 of 7 tables could not be scored")
        assert "Traceback" not in err
        assert set(scores_of(tmp_path / "out")) == set(tables)
        summary = pd.read_csv(tmp_path / "out" / "_summary.csv").set_index("table")
        assert "no labelled positive" in summary.loc["bad/unlabeled.csv", "error"]
        assert summary["error"].notna().sum() == 4
    write(data / "bad" / "unlabeled.csv", make_table(3))
    for name in ("infinite.csv", "columns.csv", "broken.parquet"):
        (data / "bad" / name).unlink()
    code, out, _ = predict_folder()
    assert code == 0
    assert "4 of 4 tables scored (3 were there)" in out


def test_a_table_that_went_bad_leaves_no_old_scores(predict_folder, tables, tmp_path):
    predict_folder()
    write(tmp_path / "data" / "a.csv", make_table(0).assign(s=0))
    assert predict_folder()[0] == 2
    assert set(scores_of(tmp_path / "out")) == set(tables) - {"a.csv"}


@pytest.mark.parametrize(
    ("options", "flags", "message"),
    [
        ({"data": "empty"}, (), "empty is a folder without CSV, Parquet or Excel files"),
        ({"out": "data/scores"}, (), "or contain each other"),
        ({"data": "data/year=2024", "out": "data"}, (), "or contain each other"),
        ({"data": "data", "out": "data"}, (), "or contain each other"),
        ({"out": "-"}, (), "--out - is for one table: give a folder for those of data"),
        ({"out": "a.txt"}, (), "a.txt is a file; give a folder"),
        ({"out": "nowhere/out"}, (), "the folder of nowhere/out does not exist"),
        ({"report": "page.html"}, (), "--report is for one table"),
        ({"model": "nowhere.safetensors"}, (), "no weights at nowhere.safetensors"),
        ({"class-prior": 2}, (), "--class-prior must lie between 0 and 1"),
        ({"address": "tcp://x:1"}, (), "--address is for the backends dask and ray"),
        ({"data": "data/a.csv"}, (), "--jobs is for a folder of tables"),
        ({"data": "data/a.csv", "jobs": None}, ("--one-table",), "--one-table is for a folder"),
        ({"data": "data/a.csv", "jobs": None, "address": "x"}, (), "--address is for a folder"),
        ({"data": "data/a.csv", "jobs": None, "backend": "dask"}, (), "--backend is for a folder"),
        ({"data": "nowhere"}, (), "--jobs is for a folder of tables, but nowhere is not"),
    ],
)
def test_bad_options_are_one_sentence_and_no_scores(
    predict_folder, tables, tmp_path, options, flags, message
):
    (tmp_path / "empty").mkdir()
    (tmp_path / "a.txt").write_text("", encoding="utf-8")
    code, out, err = predict_folder(*flags, **options)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert message in err
    assert err.count("\n") == 1
    assert scores_of(tmp_path / "out") == {}
    assert not (tmp_path / "-").exists()


def test_jobs_backend_and_address_are_the_folders(predict_folder, tables, tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr("puicl_model.files.folder.score_folder", lambda *given: asked.append(given))
    where = {"jobs": 3, "backend": "dask", "address": "tcp://x:1"}
    assert predict_folder("--one-table", **where)[0] == 0
    data, out, _, *rest = asked[0]
    assert (str(data), out, rest) == ("data", "out", [3, "dask", "tcp://x:1", True])


def started(folder: Path, weights: Path, *words) -> subprocess.Popen:
    """The command as a process in a session of its own."""
    options = ("--data", "data", "--out", "out", "--label-column", "s", "--model", weights)
    code = "from puicl_cli.main import main; main()"
    return launch("predict", *options, *words, code=code, cwd=folder)


@pytest.mark.parametrize(
    ("number", "send", "jobs"),
    [
        (signal.SIGKILL, os.killpg, 1),
        pytest.param(signal.SIGTERM, os.kill, 2, marks=pytest.mark.slow),
    ],
)
def test_a_run_stopped_half_way_goes_on_to_the_scores_of_one_that_never_was(
    tmp_path, weights, number, send, jobs
):
    n = 50
    for seed in range(n):
        write(tmp_path / "data" / f"{seed:03}.csv", make_table(seed).drop(columns="name"))
    run = started(tmp_path, weights, "--jobs", jobs)
    wait_until(lambda: len(whole_records(tmp_path / "out")) > 2 or run.poll() is not None)
    assert run.poll() is None, run.communicate()
    send(run.pid, number)
    told, complaint = run.communicate(timeout=60)
    if number == signal.SIGTERM:
        assert run.returncode == 143
        assert complaint.splitlines()[-1].startswith("stopped; finished tables are kept")
        assert told == ""
    time.sleep(0.2)
    half_way = scores_of(tmp_path / "out")
    assert 2 < len(half_way) < n
    kept = {name: path.stat().st_mtime_ns for name, path in half_way.items()}
    for path in half_way.values():
        assert len(pd.read_csv(path)) == 40  # whole
    recorded = {p.name.removesuffix(".json") for p in whole_records(tmp_path / "out")}
    assert recorded <= set(kept)

    run = started(tmp_path, weights, "--jobs", jobs)
    told, complaint = run.communicate(timeout=300)
    assert run.returncode == 0, complaint
    assert f"{n} of {n} tables scored ({len(recorded)} were there)" in told
    finished = scores_of(tmp_path / "out")
    assert len(finished) == n
    assert all(finished[name].stat().st_mtime_ns == kept[name] for name in recorded)
    for seed in (0, n // 2, n - 1):
        table = make_table(seed)
        fitted = PUICLClassifier(weights).fit(table[["a", "b"]], table["s"])
        scores = pd.read_csv(finished[f"{seed:03}.csv"])["p_positive"].dropna()
        np.testing.assert_allclose(scores, fitted.unlabeled_proba_, rtol=0, atol=1e-6)
    assert not [path for path in (tmp_path / "out").rglob(".*") if path.name != ".puicl"]


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["dask", "ray"])
def test_clusters_give_the_same_scores(predict_folder, tables, tmp_path, backend, weights):
    pytest.importorskip({"dask": "distributed", "ray": "ray"}[backend])
    predict_folder(out="here")
    run = started(tmp_path, weights, "--backend", backend, "--jobs", 2, "--id-column", "name")
    _, complaint = run.communicate(timeout=300)
    assert run.returncode == 0, complaint
    found = scores_of(tmp_path / "out")
    assert set(found) == set(tables)
    for name, expected in scores_of(tmp_path / "here").items():
        pd.testing.assert_frame_equal(read(found[name]), read(expected), rtol=0, atol=1e-6)


@pytest.mark.parametrize("options", [[], ["--one-table"]])
def test_tables_names_need_not_be_unicode(predict_folder, tmp_path, options):
    for number, name in enumerate((b"caf\xe9.csv", b"tea.csv")):
        write(tmp_path / "data" / os.fsdecode(name), make_table(number))
    code, out, err = predict_folder(*options)
    assert code == 0, err
    assert out.startswith("out: 2 of 2 tables scored")
    summary = pd.read_csv(tmp_path / "out" / "_summary.csv")
    assert list(summary["table"]) == ["caf\\udce9.csv", "tea.csv"]
    assert (tmp_path / "out" / os.fsdecode(b"caf\xe9.csv")).exists()


def test_files_of_other_kinds_are_named_as_passed_over(predict_folder, tables, tmp_path):
    for name in ("d.csv.gz", "e.tsv", ".f.tsv", "notes.md"):
        (tmp_path / "data" / name).write_text("x")
    code, out, err = predict_folder()
    assert code == 0
    assert f"{len(tables)} of {len(tables)} tables scored" in out
    assert (
        "warning: passed over d.csv.gz, e.tsv: of a folder CSV, Parquet and Excel are read" in err
    )


def test_parts_of_one_table_write_their_numbers_alike(predict_folder, tmp_path):
    (tmp_path / "data").mkdir()
    for name, odd in (("a.csv", "3.000"), ("b.csv", "0.500")):
        rows = [f"{k}.125;{int(k < 5)};{k}" for k in range(1, 40)] + [f"{odd};0;x"]
        (tmp_path / "data" / name).write_text("\n".join(["a;s;name", *rows]) + "\n")
    code, _, err = predict_folder("--one-table", **{"separator": ";", "decimal": ","})
    assert code == 2
    assert "column a: points separate thousands in a.csv and mark fractions in b.csv" in err
