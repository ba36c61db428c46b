"""Odd shapes, scales and types of tables: the same promises as in `test_odd_tables`."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from puicl_model import PUICLClassifier, TablePreprocessor, fit_many
from puicl_model.contexts import levels_alone
from puicl_model.preprocessing import fit_scaling

pytestmark = pytest.mark.filterwarnings("ignore")
QUICK = settings(
    deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
# So small that many tables need several contexts and subsets of columns.
SMALL = {"n_labeled": 5, "n_unlabeled": 9, "n_features": 4}


@pytest.fixture(scope="module")
def make_weights(untrained_weights):
    def make(group: tuple[int, ...], **trained):
        sizes = {"embedding_size": 8, "layers": 1, "heads": 2, "feedforward_size": 8}
        return untrained_weights({"trained_range": trained}, **sizes, feature_group=group)

    return make


@pytest.fixture(scope="module")
def weights(make_weights):
    return make_weights((0, 1))


@st.composite
def shapes(draw):
    """Numbers [n, d] with holes, constants, copies and heavy tails, and labels of any balance."""
    n, d = draw(st.integers(2, 60)), draw(st.integers(1, 12))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    x = rng.normal(size=(n, d)) ** draw(st.sampled_from([1, 3, 9]))
    if draw(st.booleans()):
        x = np.round(x)
    holes = draw(st.sampled_from([0.0, 0.1, 0.9]))
    x[rng.random((n, d)) < holes] = np.nan
    for j in range(d):
        what = draw(st.sampled_from(["as it is"] * 4 + ["constant", "copy", "empty"]))
        x[:, j] = {"as it is": x[:, j], "constant": 3.0, "copy": x[:, 0], "empty": np.nan}[what]
    n_labeled = draw(st.integers(1, n - 1))
    return x, np.isin(np.arange(n), rng.permutation(n)[:n_labeled])


def check_answers(fitted, x, s):
    """Probabilities for every row, those of unlabelled rows as they were, equal rows alike."""
    assert fitted.unlabeled_proba_.shape == ((~s).sum(),)
    found = fitted.predict_proba(x)[:, 1]
    assert ((found >= 0) & (found <= 1)).all()  # NaN is neither
    np.testing.assert_array_equal(found[~s], fitted.unlabeled_proba_)
    _, group = np.unique(np.nan_to_num(x, nan=1e9), axis=0, return_inverse=True)
    for number in np.unique(group[~s]):
        assert np.ptp(found[~s][group[~s] == number]) < 1e-6


@QUICK
@given(shapes(), st.sampled_from(["random", "relevant", "all"]), st.sampled_from([None, "trees"]))
@example((np.random.default_rng(0).normal(size=(11, 11)), np.arange(11) == 9), "all", None)
def test_tables_beyond_the_networks_range_have_answers_for_every_row(
    make_weights, drawn, columns, blend
):
    x, s = drawn
    path = make_weights((0, 1), **SMALL)
    classifier = PUICLClassifier(path, n_estimators=3, columns=columns, blend=blend)
    if blend == "trees" and min(s.sum(), (~s).sum()) < 2:
        with pytest.raises(ValueError, match="two labelled and two unlabelled rows"):
            classifier.fit(x, s)
        return
    classifier.fit(x, s)
    largest = classifier.report_["largest_context"]
    assert all(largest[key.removeprefix("n_")] <= most for key, most in list(SMALL.items())[:2])
    if columns == "all":  # of the columns that preprocessing makes of the table's
        X = TablePreprocessor().fit_quietly(x)
        axes = X.shape[1] if levels_alone(X) else fit_scaling(X, "principal").width
        # Where rows are few there are fewer principal axes than columns: one pass reads these.
        expected = sorted([axes, largest["columns"], largest["columns"]])
        assert sorted(len(order) for order in classifier.column_orders_) == expected
        assert largest["columns"] == X.shape[1]
    else:
        assert largest["columns"] <= SMALL["n_features"]
    check_answers(classifier, x, s)


@QUICK
@given(shapes(), st.integers(0, 99))
def test_the_order_of_columns_does_not_matter_to_a_network_that_does_not_see_it(
    make_weights, drawn, seed
):
    """Networks that embed columns in groups (`feature_group`) do see it, and average over it."""
    x, s = drawn
    path = make_weights((0,), n_labeled=60, n_unlabeled=60, eta=[0.01, 100])
    order = np.random.default_rng(seed).permutation(x.shape[1])
    answers = [
        PUICLClassifier(path, n_estimators=1).fit(x[:, columns], s).unlabeled_proba_
        for columns in (np.arange(x.shape[1]), order)
    ]
    np.testing.assert_allclose(answers[0], answers[1], atol=1e-4)


@QUICK
@given(shapes(), st.lists(st.integers(-900, 900), min_size=12, max_size=12))
def test_powers_of_two_as_units_change_nothing(weights, drawn, powers):
    x, s = drawn
    x = np.round(x * 1e3) / 1e3  # nothing that another unit would round to zero
    units = np.ldexp(1.0, powers[: x.shape[1]])
    answers = []
    for scaled in (x, x * units):
        fitted = PUICLClassifier(weights, n_estimators=2).fit(scaled, s)
        check_answers(fitted, scaled, s)
        answers.append(fitted.unlabeled_proba_)
    # Columns that were copies are none in another unit, and the reverse.
    if _n_distinct(x) == _n_distinct(x * units):
        np.testing.assert_allclose(answers[0], answers[1], atol=2e-4)


def _n_distinct(x):
    return len({np.nan_to_num(column, nan=1e300).tobytes() for column in x.T})


@QUICK
@given(st.lists(shapes(), min_size=2, max_size=5))
def test_many_tables_have_the_answers_of_single_fits(weights, drawn):
    classifier = PUICLClassifier(weights, n_estimators=2)
    for (x, s), found in zip(drawn, fit_many(drawn, classifier), strict=True):
        expected = PUICLClassifier(weights, n_estimators=2).fit(x, s)
        np.testing.assert_allclose(found.unlabeled_proba_, expected.unlabeled_proba_, atol=1e-5)
        check_answers(found, x, s)


KINDS = {
    "nullable": lambda table: table.convert_dtypes(convert_floating=False),
    "pyarrow": lambda table: table.convert_dtypes(dtype_backend="pyarrow"),
    "arrow table": lambda table: pytest.importorskip("pyarrow").Table.from_pandas(table),
    "objects": lambda table: table.astype(object),
    "polars": lambda table: pytest.importorskip("polars").DataFrame(
        {name: [None if pd.isna(v) else v for v in column] for name, column in table.items()}
    ),
    "lists": lambda table: table.astype(object).to_numpy().tolist(),
}


@QUICK
@given(st.integers(0, 2**32), st.integers(4, 40), st.sampled_from(sorted(KINDS)))
def test_the_container_of_a_table_does_not_matter(weights, seed, n, kind):
    if kind == "pyarrow":
        pytest.importorskip("pyarrow")
    rng = np.random.default_rng(seed)
    gone = rng.random((n, 4)) < 0.2
    table = pd.DataFrame(
        {
            "number": rng.normal(size=n),
            "whole": rng.integers(0, 9, n),
            "ward": rng.choice(["north", "west", "ä"], n),
            "yes": rng.random(n) < 0.5,
        }
    )
    for j, name in enumerate(("number", "ward")):
        table[name] = table[name].where(~gone[:, j], None)
    s = np.arange(n) < max(1, n // 3)
    expected = PUICLClassifier(weights, n_estimators=2).fit(table, s)
    found = PUICLClassifier(weights, n_estimators=2).fit(KINDS[kind](table), s)
    np.testing.assert_allclose(found.unlabeled_proba_, expected.unlabeled_proba_, atol=1e-5)
    if kind != "lists":  # where numpy makes text of numbers beside text
        kinds = [list(fitted.report_["columns"].values()) for fitted in (found, expected)]
        assert kinds[0] == kinds[1]
