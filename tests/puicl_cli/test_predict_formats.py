"""`puicl predict` beyond CSV files of numbers: streams, Parquet, text, names of rows, the page."""

import gzip
import io
import os
import re
import stat
import subprocess
import sys
import threading
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from puicl_cli.main import main
from puicl_config import ModelConfig
from puicl_model import PUICL, PUICLClassifier, report, save_model
from puicl_model.files.report_page import permutation_importance, report_page

ROOT = Path(__file__).resolve().parents[2]
N = 60


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    config = ModelConfig(embedding_size=16, layers=2, heads=4, feedforward_size=16)
    model = PUICL(config, torch.Generator().manual_seed(4))
    path = tmp_path_factory.mktemp("weights") / "model.safetensors"
    save_model(path, model.state_dict(), {"model": config.model_dump()})
    return path


@pytest.fixture(scope="module")
def patients() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "patient": [f"<p{i}>" for i in range(N)],
            "age": rng.integers(20, 90, N),
            "ward": rng.choice(["north & south", "west"], N),
            "crp": np.where(rng.random(N) < 0.2, np.nan, rng.normal(size=N)),
            "seen": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.permutation(N) * 5, unit="D"),
            "state": np.where(np.arange(N) % 4 == 0, "sick", "unknown"),
        }
    )


@pytest.fixture
def predict(tmp_path, weights, monkeypatch, capsys):
    """Run `puicl predict`; exit code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(report, "_NO_SPREAD", 0.0)  # this network has learnt nothing

    def run(stdin: bytes = b"", **options):
        options = {"label-column": "state", "positive-label": "sick", "model": weights, **options}
        arguments = [str(item) for key, value in options.items() for item in (f"--{key}", value)]
        monkeypatch.setattr(sys, "argv", ["puicl", "predict", *arguments])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), "utf-8"))
        with pytest.raises(SystemExit) as stop:
            main()
        captured = capsys.readouterr()
        return stop.value.code, captured.out, captured.err

    return run


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


def test_the_page_shows_whole_numbers_whole_and_cells_of_any_kind(predict, patients, tmp_path):
    pytest.importorskip("pyarrow")
    table = patients.drop(columns="patient").assign(
        number=2_024_000_000_000 + np.arange(N), size=10_000_000 + 7 * np.arange(N) ** 2
    )
    table["tags"] = [["a", "b"]] * N
    table.to_parquet(tmp_path / "p.parquet")
    options = {"data": "p.parquet", "id-column": "number", "report": "page.html"}
    code, _, err = predict(**options, out="scores.csv")
    assert code == 0, err
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    scores = pd.read_csv(tmp_path / "scores.csv")
    best = scores.loc[scores["p_positive"].idxmax()]
    assert f">{int(best['number'])}</td>" in page
    assert f">{table['size'][int(best['row'])]}</td>" in page


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
    assert "-: 45 unlabelled rows scored from 15 labelled positives" in err
    expected = pd.read_csv(tmp_path / "a.csv")
    for found in (pd.read_parquet(tmp_path / "b.parquet"), pd.read_csv(io.StringIO(out))):
        pd.testing.assert_frame_equal(found, expected, check_dtype=False, rtol=0, atol=1e-12)


def test_lines_may_end_in_a_return_alone_and_in_empty_cells(predict, patients, tmp_path):
    patients = patients.assign(last=np.where(np.arange(N) % 3 == 0, 1.5, np.nan))
    patients.to_csv(tmp_path / "p.csv", index=False)
    text = (tmp_path / "p.csv").read_text(encoding="utf-8")
    (tmp_path / "old.csv").write_bytes(text.replace("\n", "\r").encode())
    (tmp_path / "short.csv").write_text(text.replace(",\n", "\n"), encoding="utf-8")
    options = {"out": "-", "id-column": "patient"}
    found = [predict(data=f"{name}.csv", **options) for name in ("p", "old", "short")]
    assert found[0][0] == 0, found[0]
    assert found[0][1] == found[1][1] == found[2][1]


def test_a_parquet_files_named_index_may_be_the_id_column(predict, patients, tmp_path):
    patients.to_parquet(tmp_path / "plain.parquet", index=False)
    patients.set_index("patient").to_parquet(tmp_path / "index.parquet")
    patients.set_index("patient", drop=False).to_parquet(tmp_path / "both.parquet")
    options = {"out": "-", "id-column": "patient"}
    found = [predict(data=f"{name}.parquet", **options) for name in ("plain", "index", "both")]
    assert found[0][0] == 0, found[0]
    assert found[0][1] == found[1][1] == found[2][1]
    code, out, _ = predict(data="index.parquet", out="-")  # otherwise it is no column
    assert code == 0
    assert out.startswith("row,labeled,p_positive")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"data": "broken.parquet"}, "broken.parquet cannot be read as Parquet"),
        ({"data": "nowhere.parquet"}, "no file nowhere.parquet"),
        ({"id-column": "name"}, "p.csv has no column 'name'; it has age"),
        ({"positive-label": "ill"}, "column state: s holds no labelled positive"),
        ({"class-prior": "1.5"}, "--class-prior must lie between 0 and 1"),
        ({"report": "nowhere/page.html"}, "the folder of nowhere/page.html does not exist"),
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
            "long.csv cannot be read as CSV: Error tokenizing data. C error: Ex",
        ),
        ({"data": "cut.csv"}, "cut.csv, line 4: 1 cells, and the header has 3; is the file cut"),
        (
            {"data": "slip.csv"},
            "row 2 holds 'n/d', not a number, as nearly all others are; mend or",
        ),
        ({"out": "scores.tsv"}, "--out scores.tsv: files ending in .tsv are not written here"),
        ({"data": "packed.csv"}, "packed.csv cannot be read as CSV: it is packed by gzip"),
        ({"data": "latin.csv"}, "latin.csv cannot be read as CSV: it is not UTF-8 text"),
        ({"data": "-"}, "stdin cannot be read as CSV: No columns"),
        ({"data": "twice.csv"}, "twice.csv has more than one column 'age'"),
        ({"id-column": "row"}, "--id-column row: the scores have a column of that name"),
        ({"id-column": "p_positive"}, "--id-column p_positive: the scores have a column of that"),
        ({"report": "-"}, "--report needs a file"),
        ({"report": "x/../scores.csv"}, "--report and --out are both scores.csv"),
        ({"out": "scores.csv.gz"}, "--out scores.csv.gz: files ending in .gz are not written"),
        ({"out": "/proc/scores.csv"}, "the answer cannot be written: "),
    ],
)
def test_bad_input_is_one_sentence_and_writes_nothing(
    predict, patients, tmp_path, options, message
):
    patients.drop(columns="patient").to_csv(tmp_path / "p.csv", index=False)
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 and nothing else")
    (tmp_path / "semicolons.csv").write_text("age;state\n7;sick\n8;unknown\n", encoding="utf-8")
    (tmp_path / "decimals.csv").write_text("age;state\n7,5;sick\n8,1;unknown\n", encoding="utf-8")
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
    assert "categorical_features" not in err  # of which the command knows nothing
    assert err.count("\n") == 1
    after = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    assert after == before


def test_a_known_class_prior_is_the_mean_of_the_scores(predict, patients, tmp_path):
    patients.drop(columns="patient").to_csv(tmp_path / "p.csv", index=False)
    code, out, _ = predict(data="p.csv", out="scores.csv", **{"class-prior": "0.2"})
    assert code == 0
    assert out.endswith("among the unlabelled: 0.200\n")
    assert pd.read_csv(tmp_path / "scores.csv")["p_positive"].mean() == pytest.approx(0.2)


class Page(HTMLParser):
    """Checks nesting, collects text and everything a browser would fetch."""

    def __init__(self, html: str):
        super().__init__()
        self.open, self.text, self.fetched = [], [], []
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        self.fetched += [value for key, value in attributes if key in ("src", "href")]
        if tag not in ("meta", "line", "rect"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in ("line", "rect"):
            assert self.open.pop() == tag

    def handle_startendtag(self, tag, attributes):
        assert tag in ("line", "rect")

    def handle_data(self, data):
        self.text.append(data)


def test_the_page_is_whole_fetches_nothing_and_says_what_the_scores_say(
    predict, patients, tmp_path
):
    patients.to_csv(tmp_path / "p.csv", index=False)
    options = {"id-column": "patient", "report": "page.html"}
    code, _, _ = predict(data="p.csv", out="scores.csv", **options)
    assert code == 0
    html = (tmp_path / "page.html").read_text(encoding="utf-8")
    page = Page(html)
    assert page.open == []
    assert page.fetched == []
    assert "url(" not in html
    assert "<script" not in html
    text = " ".join(page.text)
    scores = pd.read_csv(tmp_path / "scores.csv")
    best = scores.nlargest(1, "p_positive").iloc[0]
    assert f"{best['patient']} {best['p_positive']:.3f}" in text  # escaped on the page
    assert f"{scores['p_positive'].mean():.1%}" in text
    assert "&lt;p" in html
    assert "north & south" in text
    heights = [float(h) for h in re.findall(r'class="bar"[^>]* height="([0-9.]+)"', html)]
    counts, _ = np.histogram(scores["p_positive"].dropna(), bins=25, range=(0, 1))
    np.testing.assert_allclose(heights, 170 * counts / counts.max(), atol=0.06)


def test_importance_finds_the_column_that_the_score_depends_on(weights):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(size=N), "constant": 1.0, "b": rng.normal(size=N)})
    fitted = PUICLClassifier(weights).fit(table, np.arange(N) < 15)
    changes = permutation_importance(fitted, table)
    assert set(changes.index[:2]) == {"a", "b"}
    assert changes["constant"] == 0
    assert changes.iloc[0] > 0


def test_the_page_draws_the_class_priors_interval_and_puts_the_columns_that_matter_first(weights):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"still": np.arange(N) % 2 * 1.0, "b": rng.normal(size=N), "one": 1.0})
    table["b"] += 3 * (np.arange(N) < 15)
    fitted = PUICLClassifier(weights).fit(table, np.arange(N) < 15)
    scores = pd.DataFrame({"row": np.arange(N)}).assign(p_positive=np.nan)
    scores.loc[fitted.unlabeled_rows_, "p_positive"] = fitted.unlabeled_proba_

    def page(share, interval):
        fitted.class_prior_, fitted.class_prior_interval_ = share, interval
        fitted.model_card_ = {"class_prior_interval": {"coverage": 0.9}}
        return report_page(fitted, table, scores, None, "t.csv", [])

    html = page(0.4, (0.2, 0.65))
    assert "90% interval 20.0% to 65.0%" in html
    assert '<i style="left:20.0%;width:45.0%"></i><b style="left:40.0%"></b>' in html
    assert "as was given" in page(0.4, (0.4, 0.4))
    assert "there is no interval" in page(0.4, (np.nan, np.nan))
    order = list(permutation_importance(fitted, table).index)
    heads = re.findall("<th>([^<]*)</th>", html)
    assert heads == ["row", "P(positive)", *order]
    assert order[-1] == "one"


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
        ({"decimal": ","}, "--decimal and --separator are both ','"),
        ({"encoding": "klingon"}, "--encoding klingon: there is none"),
        ({"encoding": "hex"}, "--encoding hex: there is none"),
        ({"encoding": "ascii"}, "is not ASCII text"),
        ({"data": "p.json"}, "p.json: files ending in .json are not read here"),
        ({"data": "p.xlsx"}, "p.xlsx: files ending in .xlsx are not read here"),
    ],
)
def test_a_dialect_that_cannot_be_is_refused_in_one_sentence(predict, patients, options, message):
    patients.rename(columns={"age": "größe"}).to_csv("p.csv", index=False)
    code, out, err = predict(out="scores.csv", **{"data": "p.csv", **options})
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1
    assert not Path("scores.csv").exists()
