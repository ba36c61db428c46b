"""`puicl predict` on a folder: file by file, in parallel, restartable, failing files named."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from launched import wait_until

from puicl_cli.main import main
from puicl_model import PUICLClassifier

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.filterwarnings("ignore:only", "ignore:hardly", "ignore:nearly")


def make_table(seed: int, n: int = 40) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    s = np.isin(np.arange(n), rng.permutation(n)[:12])
    return pd.DataFrame(
        {"name": [f"r{j}" for j in range(n)], "a": rng.normal(size=n) + s, "b": rng.normal(size=n)}
    ).assign(s=s.astype(int))


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


def write(path: Path, table: pd.DataFrame) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".parquet":
        pytest.importorskip("pyarrow")
        table.to_parquet(path)
    else:
        table.to_csv(path, index=False)


def read(path: Path) -> pd.DataFrame:
    return pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)


def scores_of(out: Path) -> dict[str, Path]:
    found = [path for path in out.rglob("*") if path.suffix.lower() in (".csv", ".parquet")]
    return {p.relative_to(out).as_posix(): p for p in found if p.name != "_summary.csv"}


@pytest.fixture
def predict(tmp_path, weights, monkeypatch, capsys):
    """Run `puicl predict` in this process, on `data` into `out`; exit code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)
    # The command listens to SIGTERM from then on, which is no business of the other tests.
    before = signal.getsignal(signal.SIGTERM)

    def run(*flags, **options):
        options = {"data": "data", "out": "out", "label-column": "s", "model": weights} | options
        options = {"id-column": "name", "jobs": 1} | options
        words = [str(w) for key, value in options.items() if value for w in (f"--{key}", value)]
        monkeypatch.setattr(sys, "argv", ["puicl", "predict", *words, *flags])
        with pytest.raises(SystemExit) as stop:
            main()
        captured = capsys.readouterr()
        return stop.value.code, captured.out, captured.err

    yield run
    signal.signal(signal.SIGTERM, before)


def test_each_table_has_the_scores_of_a_run_of_its_own(predict, tables, tmp_path, weights):
    code, out, _ = predict()
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


def test_what_is_finished_is_kept_and_what_changed_is_made_again(predict, tables, tmp_path):
    predict()
    first = {name: path.read_bytes() for name, path in scores_of(tmp_path / "out").items()}
    stamps = {name: path.stat().st_mtime_ns for name, path in scores_of(tmp_path / "out").items()}
    write(tmp_path / "data" / "a.csv", make_table(7))
    (tmp_path / "out" / "c.CSV").unlink()
    code, out, _ = predict()
    assert code == 0
    assert "3 of 3 tables scored (1 were there)" in out
    again = scores_of(tmp_path / "out")
    assert {name for name, path in again.items() if path.read_bytes() != first[name]} == {"a.csv"}
    kept = {name for name, path in again.items() if path.stat().st_mtime_ns == stamps[name]}
    assert kept == {"year=2024/b.parquet"}


def test_failing_tables_are_named_and_the_rest_goes_on(predict, tables, tmp_path):
    data = tmp_path / "data"
    write(data / "bad" / "unlabeled.csv", make_table(3).assign(s=0))
    write(data / "bad" / "infinite.csv", make_table(3).assign(b=np.inf))
    write(data / "bad" / "columns.csv", make_table(3).rename(columns={"s": "t"}))
    (data / "bad" / "broken.parquet").write_bytes(b"PAR1 and nothing else")
    for _ in range(2):  # a second run tries them again and says the same
        code, out, err = predict()
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
    code, out, _ = predict()
    assert code == 0
    assert "4 of 4 tables scored (3 were there)" in out


def test_a_table_that_went_bad_leaves_no_old_scores(predict, tables, tmp_path):
    predict()
    write(tmp_path / "data" / "a.csv", make_table(0).assign(s=0))
    assert predict()[0] == 2
    assert set(scores_of(tmp_path / "out")) == set(tables) - {"a.csv"}


def test_scores_made_in_another_way_are_not_mixed(predict, tables, tmp_path):
    predict()
    before = {name: path.read_bytes() for name, path in scores_of(tmp_path / "out").items()}
    for options, key in (({"n-estimators": 1}, "n_estimators"), ({"class-prior": 0.3}, "class_p")):
        code, _, err = predict(**options)
        assert code == 2
        assert err.startswith(f"error: out holds scores made with {key}")
        assert err.count("\n") == 1
    assert before == {n: path.read_bytes() for n, path in scores_of(tmp_path / "out").items()}


def test_parts_of_one_table_share_their_labelled_positives(predict, tmp_path, weights):
    whole = make_table(5, n=60)
    parts = {"data/p0.csv": whole[:20], "data/p1.csv": whole[20:40].assign(s=0)}
    for name, part in {**parts, "data/p2.csv": whole[40:]}.items():
        write(tmp_path / name, part)
    labeled = whole[(whole["s"] == 1) & ~whole.index.isin(range(20, 40))]
    code, _, err = predict("--one-table")
    assert code == 0, err
    scores = read(tmp_path / "out" / "p1.csv")
    assert list(scores["name"]) == list(whole["name"][20:40])
    assert (scores["labeled"] == 0).all()
    both = pd.concat([whole[20:40].assign(s=0), labeled])
    fitted = PUICLClassifier(weights).fit(both[["a", "b"]], both["s"])
    np.testing.assert_allclose(scores["p_positive"], fitted.unlabeled_proba_, rtol=0, atol=1e-6)
    first = read(tmp_path / "out" / "p0.csv")
    assert list(first["labeled"]) == list(whole["s"][:20])
    assert predict()[0] == 2  # without --one-table these would be other scores

    write(tmp_path / "data" / "p3.csv", make_table(6).rename(columns={"b": "B"}))
    code, _, err = predict("--one-table")
    assert code == 2
    assert "are no parts of one table: only one of them has the column 'B'" in err


def test_when_positives_of_one_part_change_all_parts_are_scored_anew(predict, tmp_path):
    whole, data = make_table(5, n=60), tmp_path / "data"
    write(data / "p0.csv", whole[:20])
    write(data / "p1.csv", whole[20:40].assign(s=0))
    assert predict("--one-table")[0] == 0
    assert "2 of 2 tables scored (2 were there)" in predict("--one-table")[1]

    write(data / "p2.csv", whole[40:].assign(s=0))  # lends nothing
    assert "3 of 3 tables scored (2 were there)" in predict("--one-table")[1]

    write(data / "p0.csv", whole[:20].assign(a=lambda t: t["a"] + 5 * (t["s"] == 1)))
    code, told, _ = predict("--one-table")
    assert code == 0
    assert "3 of 3 tables scored, " in told
    went_on = {name: path.read_bytes() for name, path in scores_of(tmp_path / "out").items()}
    assert predict("--one-table", out="fresh")[0] == 0
    fresh = {name: path.read_bytes() for name, path in scores_of(tmp_path / "fresh").items()}
    assert went_on == fresh

    write(data / "p3.csv", whole[40:])  # has positives: all read them along
    assert "4 of 4 tables scored, " in predict("--one-table")[1]
    (data / "p3.csv").unlink()
    assert "3 of 3 tables scored, " in predict("--one-table")[1]
    again = {name: path.read_bytes() for name, path in scores_of(tmp_path / "out").items()}
    assert {name: again[name] for name in fresh} == fresh


def test_parts_that_an_older_version_scored_are_scored_anew_and_whole_tables_kept(
    predict, tmp_path
):
    """It wrote down size and time of the part alone, and not from what positives."""
    whole = make_table(5, n=60)
    write(tmp_path / "data" / "p0.csv", whole[:30])
    write(tmp_path / "data" / "p1.csv", whole[30:])
    for flags, out, there in (((), "apart", " (2 were there)"), (("--one-table",), "parts", "")):
        assert predict(*flags, out=out)[0] == 0
        for path in whole_records(tmp_path / out):
            record = json.loads(path.read_text(encoding="utf-8"))
            record["stamp"] = record["stamp"][:2]
            path.write_text(json.dumps(record), encoding="utf-8")
        code, told, _ = predict(*flags, out=out)
        assert code == 0
        assert f"2 of 2 tables scored{there}, " in told
        assert "(2 were there)" in predict(*flags, out=out)[1]


def test_a_part_of_positives_alone_lends_them_and_is_not_scored(predict, tmp_path, weights):
    whole = make_table(5, n=60)
    positives, rest = whole[whole["s"] == 1], whole[whole["s"] == 0]
    write(tmp_path / "data" / "positives.csv", positives)
    write(tmp_path / "data" / "unlabelled.csv", rest)
    code, _, err = predict("--one-table")
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
    code, _, err = predict("--one-table", out="other")
    assert code == 2
    assert "no file has an unlabelled row" in err


@pytest.mark.parametrize(
    ("options", "flags", "message"),
    [
        ({"data": "empty"}, (), "empty is a folder without CSV or Parquet files"),
        ({"out": "data/scores"}, (), "lie in each other"),
        ({"out": "a.txt"}, (), "a.txt is a file; give a folder"),
        ({"out": "nowhere/out"}, (), "the folder of nowhere/out does not exist"),
        ({"report": "page.html"}, (), "--report is for one table"),
        ({"model": "nowhere.safetensors"}, (), "no weights at nowhere.safetensors"),
        ({"class-prior": 2}, (), "--class-prior must lie between 0 and 1"),
        ({"address": "tcp://x:1"}, (), "--address is for the backends dask and ray"),
        ({"data": "data/a.csv"}, (), "--jobs is for a folder of tables"),
        ({"data": "data/a.csv", "jobs": None}, ("--one-table",), "--one-table is for a folder"),
        ({"data": "nowhere"}, (), "--jobs is for a folder of tables, but nowhere is none"),
    ],
)
def test_bad_options_are_one_sentence_and_no_scores(
    predict, tables, tmp_path, options, flags, message
):
    (tmp_path / "empty").mkdir()
    (tmp_path / "a.txt").write_text("", encoding="utf-8")
    code, out, err = predict(*flags, **options)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert message in err
    assert err.count("\n") == 1
    assert scores_of(tmp_path / "out") == {}


def launch(folder: Path, weights: Path, *words) -> subprocess.Popen:
    """Start the command as a process in a session of its own."""
    options = ["--data", "data", "--out", "out", "--label-column", "s", "--model", weights]
    program = "from puicl_cli.main import main; main()"
    return subprocess.Popen(
        [sys.executable, "-c", program, "predict", *map(str, [*options, *words])],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        start_new_session=True,
    )


def whole_records(out: Path) -> list[Path]:
    records = [path for path in (out / ".puicl").rglob("*.json") if path.name != "settings.json"]
    for path in records:
        json.loads(path.read_text(encoding="utf-8"))
    return records


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
    run = launch(tmp_path, weights, "--jobs", jobs)
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

    run = launch(tmp_path, weights, "--jobs", jobs)
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
def test_clusters_give_the_same_scores(predict, tables, tmp_path, backend, weights):
    pytest.importorskip({"dask": "distributed", "ray": "ray"}[backend])
    predict(out="here")
    run = launch(tmp_path, weights, "--backend", backend, "--jobs", 2, "--id-column", "name")
    _, complaint = run.communicate(timeout=300)
    assert run.returncode == 0, complaint
    found = scores_of(tmp_path / "out")
    assert set(found) == set(tables)
    for name, expected in scores_of(tmp_path / "here").items():
        pd.testing.assert_frame_equal(read(found[name]), read(expected), rtol=0, atol=1e-6)
