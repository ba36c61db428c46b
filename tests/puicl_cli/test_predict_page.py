"""The page that `puicl predict --report` writes."""

import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

from puicl_model import PUICLClassifier, permutation_importance
from puicl_model.files.report_page import report_page

N = 60


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


def test_whole_numbers_beside_a_missing_cell_are_whole_and_fractions_short(fit, patients):
    table = patients[["age", "crp"]].assign(
        size=10_000_001.0 + 7 * np.arange(N), part=1 / (3.0 + np.arange(N)), huge=1e300
    )
    table.loc[0, ["size", "part"]] = np.nan  # row 0 is labelled
    classifier, scores = fit(table)
    page = report_page(classifier, table, scores, None, "t.csv", [])
    best = scores["p_positive"].idxmax()
    assert f">{10_000_001 + 7 * best}</td>" in page
    assert f">{1 / (3 + best):.6g}</td>" in page
    assert ">1e+300</td>" in page


def test_figures_and_rows_of_the_page_are_those_of_the_scores(fit, patients):
    table = patients.drop(columns=["patient", "state"]).assign(same=1)
    classifier, scores = fit(table, n_estimators=1)
    unlabeled = classifier.unlabeled_rows_
    classifier.unlabeled_proba_ = np.linspace(0, 1, len(unlabeled))[::-1]  # one is 0.5 exactly
    scores.loc[unlabeled, "p_positive"] = classifier.unlabeled_proba_
    html = report_page(classifier, table, scores, None, "t.csv", [])
    figures = re.findall(r"<div><b>([^<]*)</b>", html)
    assert figures[1:] == ["23", "15", "45"]
    assert "A single forward pass of a frozen network." in html
    rows = re.findall(r"<tr><td[^>]*>(\d+)</td><td[^>]*>([\d.]+)</td>", html)
    assert [int(row) for row, _ in rows] == unlabeled[:20].tolist()
    assert [share for _, share in rows] == [f"{p:.3f}" for p in classifier.unlabeled_proba_[:20]]
    assert "The 20 unlabelled rows most likely positive" in html
    assert "The highest bar is 2 of 45 rows" in html
    kinds = dict(re.findall(r"<li><b>([^<]*)</b>: ([^<]*)</li>", html))
    assert kinds["number"] == "age, crp"
    assert (kinds["category"], kinds["date"]) == ("ward", "seen")
    assert "same" in kinds["constant"]


def test_the_page_says_how_many_rows_and_passes_an_answer_is_from(weights):
    def page(n, w=2, **parameters):
        table = pd.DataFrame(np.random.default_rng(0).normal(size=(n, w))).rename(columns=str)
        classifier = PUICLClassifier(weights, scalings=("standard",), **parameters)
        classifier.fit(table, np.arange(n) < 12)
        scores = pd.DataFrame({"row": np.arange(n)}).assign(p_positive=0.5)
        return report_page(classifier, table, scores, None, "t.csv", [])

    together = "P(positive) of each unlabelled row, from all rows read together."
    whole = page(60, n_estimators=1)
    assert "A single forward pass of a frozen network." in whole
    assert together in whole
    read_in_parts = "read in parts of up to 12 labelled and 501 unlabelled rows."
    parts = page(1013, n_estimators=1)
    assert "A single forward pass of a frozen network for each row." in parts
    assert together not in parts
    assert read_in_parts in parts
    several = page(1013, n_estimators=3)
    assert "3 forward passes of a frozen network for each row, averaged." in several
    assert read_in_parts in several
    wide = page(60, w=150, n_estimators=1)
    passes = "2 forward passes of a frozen network averaged"
    assert f"{passes}, each of at most 75 of 150 columns or their axes. P(pos" in wide
    assert together in wide


def test_warnings_and_names_stand_on_the_page_as_text(fit, patients):
    odd = '<b onclick="x()">'
    table = patients[["age", "crp"]].rename(columns={"age": odd})
    classifier, scores = fit(table)
    html = report_page(classifier, table, scores, None, "<i>.csv", ["<u>few</u> & odd", "more"])
    page = Page(html)
    assert page.open == []
    assert not re.search("<b onclick|<u>|<i>", html)
    assert "<li>&lt;u&gt;few&lt;/u&gt; &amp; odd</li><li>more</li>" in html
    assert "Before you trust this" in html
    written = "&lt;b onclick=&quot;x()&quot;&gt;"
    assert f"<th>{written}</th>" in html
    assert f'<span title="{written}">{written}</span>' in html
    assert "<title>PUICL: &lt;i&gt;.csv</title>" in html
    assert "<h1>Which rows of &lt;i&gt;.csv are positive?</h1>" in html
    assert "Before you trust this" not in report_page(classifier, table, scores, None, "t", [])


@pytest.fixture
def fit(weights):
    """Fit a table whose every fourth row is labelled; the classifier, and the scores' rows."""

    def run(table, **parameters):
        classifier = PUICLClassifier(weights, **parameters).fit(table, np.arange(N) % 4 == 0)
        scores = pd.DataFrame({"row": np.arange(N)}).assign(p_positive=np.nan)
        scores.loc[classifier.unlabeled_rows_, "p_positive"] = classifier.unlabeled_proba_
        return classifier, scores

    return run


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


def test_the_page_says_so_if_only_some_of_many_columns_were_shuffled(weights):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(N, 80))).rename(columns="x{}".format)
    fitted = PUICLClassifier(weights, n_estimators=1).fit(table, np.arange(N) < 15)
    scores = pd.DataFrame({"row": np.arange(N)}).assign(p_positive=np.nan)
    scores.loc[fitted.unlabeled_rows_, "p_positive"] = fitted.unlabeled_proba_
    told = "Of 80 columns only the 75 that alone tell labelled from unlabelled rows best"
    assert told in report_page(fitted, table, scores, None, "t.csv", [])
    few = table.iloc[:, 5:]
    fitted = PUICLClassifier(weights, n_estimators=1).fit(few, np.arange(N) < 15)
    assert "were shuffled." not in report_page(fitted, few, scores, None, "t.csv", [])


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
    assert "as was given" not in html
    assert "as was given" in page(0.4, (0.4, 0.4))
    fitted.report_["class_prior_given"] = [0.1, 0.5]
    told = "90% interval 20.0% to 50.0%, within 10% to 50%, as was given"
    assert told in page(0.4, (0.2, 0.5))
    fitted.report_["class_prior_given"] = [0.0, 0.005]
    told = "estimated positive; 90% interval 0.1% to 0.5%, within 0% to 0.5%, as was given"
    assert told in page(0.003, (0.001, 0.005))
    told = "estimated positive, within 0% to 0.5%, as was given"  # no interval of the table's
    assert told in page(0.003, (0.0, 0.005))
    del fitted.report_["class_prior_given"]  # of fits that were saved before
    assert "as was given" not in page(0.4, (0.2, 0.5))
    assert "there is no interval" in page(0.4, (np.nan, np.nan))
    order = list(permutation_importance(fitted, table.iloc[fitted.unlabeled_rows_]).index)
    heads = re.findall("<th>([^<]*)</th>", html)
    assert heads == ["row", "P(positive)", *order]
    assert order[-1] == "one"
