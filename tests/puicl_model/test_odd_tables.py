"""Any table gets an answer or a clear `ValueError`: never a crash, never a NaN, rows in order."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from puicl_model import PUICLClassifier
from puicl_model.preprocessing import SCALINGS

pytestmark = pytest.mark.filterwarnings("ignore")
QUICK = settings(
    deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture(scope="module")
def weights(untrained_weights):
    sizes = {"embedding_size": 8, "layers": 1, "heads": 2, "feedforward_size": 8}
    return untrained_weights(**sizes, feature_group=(0, 1))


whole = st.integers(-(2**63), 2**63 - 1)
finite = st.floats(allow_nan=False, allow_infinity=False)
dates = st.datetimes(min_value=pd.Timestamp("1700-01-01").to_pydatetime())
CELLS = {
    "floats": finite,
    "tiny range": st.floats(1e15, 1e15 + 8),
    "whole": whole,
    "few": st.integers(0, 3),
    "booleans": st.booleans(),
    "text": st.text(max_size=6),
    "levels": st.sampled_from(["a", "b", "ä", " ", "NaN", "1"]),
    "dates": dates,
    "dates as text": dates.map(lambda d: d.strftime("%Y-%m-%d").zfill(10)),
    "constant": st.just(7),
    "anything": st.one_of(finite, whole, st.text(max_size=3), st.booleans(), dates),
}


@st.composite
def tables(draw, cells=CELLS):
    """A frame of 3 to 30 rows and 1 to 5 columns, some with missing cells, and its labels."""
    n = draw(st.integers(3, 30))
    columns = {}
    for j in range(draw(st.integers(1, 5))):
        kind = draw(st.sampled_from(sorted(cells)))
        cell = cells[kind]
        if draw(st.booleans()):
            cell = st.one_of(st.none(), cell)
        values = pd.Series(draw(st.lists(cell, min_size=n, max_size=n)), dtype=object)
        columns[f"{kind} {j}"] = values.infer_objects() if draw(st.booleans()) else values
    n_labeled = draw(st.integers(1, n - 1))
    s = np.isin(np.arange(n), draw(st.permutations(range(n)))[:n_labeled])
    return pd.DataFrame(columns), s


def classifier(weights, **parameters):
    return PUICLClassifier(weights, n_estimators=len(SCALINGS), scalings=SCALINGS, **parameters)


def fit_or_refusal(estimator, table, s):
    """The fitted estimator and no text, or None and its `ValueError`'s text."""
    try:
        return estimator.fit(table, s), ""
    except ValueError as error:
        return None, str(error)


@QUICK
@given(tables())
def test_every_table_has_an_answer_or_a_clear_error(weights, drawn):
    table, s = drawn
    fitted, refusal = fit_or_refusal(classifier(weights), table, s)
    if fitted is None:
        assert refusal.startswith("column ")  # says where
        return
    assert fitted.unlabeled_proba_.shape == ((~s).sum(),)
    found = fitted.predict_proba(table)
    assert ((found >= 0) & (found <= 1)).all()  # NaN is neither
    np.testing.assert_array_equal(found[~s, 1], fitted.unlabeled_proba_)
    order = np.random.default_rng(0).permutation(len(table))
    np.testing.assert_allclose(fitted.predict_proba(table.iloc[order]), found[order], atol=1e-4)


@QUICK
@given(tables({key: CELLS[key] for key in ("few", "levels", "booleans")}), st.integers(0, 99))
def test_the_order_of_rows_does_not_matter(weights, drawn, seed):
    """But for rounding, and while the table is one context: contexts are drawn by position."""
    table, s = drawn
    order = np.random.default_rng(seed).permutation(len(table))
    first, _ = fit_or_refusal(classifier(weights), table, s)
    if first is None:
        return
    largest = first.report_["largest_context"]
    if (largest["labeled"], largest["unlabeled"]) != (s.sum(), (~s).sum()):
        return
    second = classifier(weights).fit(table.iloc[order], s[order])
    expected = first.predict_proba(table)[order]
    np.testing.assert_allclose(second.predict_proba(table.iloc[order]), expected, atol=1e-4)


@QUICK
@given(
    st.integers(0, 999),
    st.floats(1e-6, 1e6),
    st.floats(-1e3, 1e3),
    st.sampled_from(SCALINGS),
)
def test_units_and_origin_of_a_column_do_not_matter(weights, seed, scale, offset, scaling):
    rng = np.random.default_rng(seed)
    x, new = rng.normal(size=(30, 3)), rng.normal(size=(5, 3))
    s = np.arange(30) < 12
    answers = []
    for unit, origin in ((1.0, 0.0), (scale, scale * offset)):
        change = np.array([1, unit, 1]), np.array([0, origin, 0])
        fitted = PUICLClassifier(weights, n_estimators=4, scalings=(scaling,))
        fitted.fit(x * change[0] + change[1], s)
        later = fitted.predict_proba(new * change[0] + change[1])[:, 1]
        answers.append(np.concatenate([fitted.unlabeled_proba_, later]))
    np.testing.assert_allclose(answers[0], answers[1], atol=2e-4)


@QUICK
@given(tables({key: CELLS[key] for key in ("floats", "whole", "few")}))
def test_wild_new_rows_have_finite_answers(weights, drawn):
    table, s = drawn
    fitted, _ = fit_or_refusal(classifier(weights), table, s)
    if fitted is None:
        return
    for cells in ([1.7e308, -1.7e308, 5e-324, np.nan], [None, None]):
        wild = pd.DataFrame(dict.fromkeys(table, cells))
        found = fitted.predict_proba(wild)
        assert ((found >= 0) & (found <= 1)).all()
