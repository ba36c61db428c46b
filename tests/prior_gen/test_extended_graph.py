"""Graphs of unlike mechanisms: the columns and the score that are their nodes."""

import hashlib

import numpy as np
import pytest
from extended import extended_by, microbatches
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression

from prior_gen.extensions.graph import FUNCTIONS, graph_columns


def drawn(seed, n=600, d=6, portable=True, **parameters):
    wanted = {"hidden": 4, "noise": 0.1, "functions": [*FUNCTIONS], "score": "last", **parameters}
    return graph_columns(np.random.default_rng(seed), wanted, n, d, portable)


def parents(seed, k=3, n=800):
    return np.random.default_rng(seed).standard_normal((n, k)).astype(np.float32)


def explained(x, score) -> float:
    """R^2 of a line on the rows that it was not fitted to."""
    return LinearRegression().fit(x[::2], score[::2]).score(x[1::2], score[1::2])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_columns_and_score_are_finite_standardised_float32(name):
    for seed in range(20):
        x, score = drawn(seed, n=300, d=5, functions=[name])
        assert x.shape == (300, 5)
        assert x.dtype == score.dtype == np.float32
        for column in (*x.T, score):
            assert np.isfinite(column).all()
            assert np.abs(column).max() <= 20
            assert column.std() == pytest.approx(1, abs=0.2) or not column.any()


@pytest.mark.parametrize("d", [1, 2, 30])
def test_any_number_of_columns_can_be_had(d):
    x, score = drawn(1, n=50, d=d, hidden=1)
    assert x.shape == (50, d)
    assert score.shape == (50,)


def test_a_linear_function_is_a_line_and_the_others_are_not():
    for seed in range(10):
        z = parents(seed)
        fits = {
            name: explained(z, function(np.random.default_rng(seed), z, True))
            for name, function in FUNCTIONS.items()
        }
        assert fits.pop("linear") > 0.999
        assert max(fits.values()) < 0.999


def test_trees_and_groups_are_steps():
    for seed in range(10):
        z, rng = parents(seed, n=3000), np.random.default_rng(seed)
        levels = np.unique(FUNCTIONS["groups"](rng, z, True))
        assert 2 <= len(levels) <= 12
        # Of one column: at most four trees, each of at most fifteen thresholds.
        value = FUNCTIONS["trees"](rng, z[:, :1], True)[np.argsort(z[:, 0])]
        assert 1 <= np.count_nonzero(np.abs(np.diff(value)) > 1e-9) <= 60


def test_groups_hold_the_rows_that_are_nearest():
    z = parents(3, k=2)
    value = FUNCTIONS["groups"](np.random.default_rng(3), z, True)
    # Cells of a Voronoi diagram are convex: what lies between two rows of one is of it.
    for v in np.unique(value):
        own = z[value == v]
        between = (own[:-1] + own[1:]) / 2
        nearest = np.linalg.norm(z[:, None] - between[None], axis=2).argmin(axis=0)
        assert np.mean(value[nearest] == v) > 0.8


def test_a_product_turns_with_its_other_factor():
    slopes = []
    for seed in range(40):
        z = parents(seed, k=2, n=2000)
        value = FUNCTIONS["product"](np.random.default_rng(seed), z, True)
        quadratic = np.c_[z, z[:, 0] * z[:, 1], z**2]
        assert LinearRegression().fit(quadratic, value).score(quadratic, value) > 0.999
        slopes.append(explained(z, value))
    assert min(slopes) < 0.3
    assert max(slopes) > 0.7


def test_noise_is_what_keeps_the_score_from_its_causes():
    known = []
    for noise in (0.03, 1.0):
        fits = []
        for seed in range(12):
            x, score = drawn(seed, n=1500, d=9, hidden=1, noise=noise, functions=["linear"])
            fits.append(max(explained(x, score), 0))
        known.append(np.mean(fits))
    assert known[0] > known[1] + 0.15


def test_columns_cause_the_score_or_follow_from_it():
    """Noise that is the score's own is lost where nothing follows from it."""
    known = {}
    for where in ("last", "anywhere"):
        fits = []
        for seed in range(40):
            x, score = drawn(seed, n=400, d=8, hidden=8, noise=1.0, score=where)
            forest = RandomForestRegressor(30, min_samples_leaf=3, random_state=0)
            fits.append(forest.fit(x[::2], score[::2]).score(x[1::2], score[1::2]))
        known[where] = np.mean(fits)
    assert known["anywhere"] > known["last"] + 0.08
    assert known["last"] > 0.05


def test_a_graphs_nodes_are_made_by_the_tagged_functions_alone(monkeypatch):
    called = {}
    for name, function in FUNCTIONS.items():

        def spy(*arguments, name=name, function=function):
            called.setdefault(name, []).append(arguments[1].shape[1])
            return function(*arguments)

        monkeypatch.setitem(FUNCTIONS, name, spy)
    for seed in range(60):
        drawn(seed, n=30, d=8, hidden=12, functions=["linear", "groups"])
    assert {*called} == {"linear", "groups"}
    counts = np.concatenate([*called.values()])
    # d + hidden + 1 = 21 nodes, of which up to seven are roots.
    assert 14 * 60 <= len(counts) <= 20 * 60
    assert len(counts) / 60 == pytest.approx(17, abs=0.6)
    assert {*counts} == {*range(1, 9)}
    # Only the score, one node in 17, may have more than four.
    assert np.mean(counts > 4) == pytest.approx(0.5 / 17, abs=0.012)


def test_no_column_of_a_graph_is_the_score():
    for seed in range(200):
        x, score = drawn(seed, n=60, hidden=2, functions=["linear"], score="anywhere")
        assert not (x == score[:, None]).all(axis=0).any()


def test_columns_of_a_graph_stand_in_random_order():
    """Roots, which nothing causes, are not the first columns."""
    first = []
    for seed in range(200):
        x, _ = drawn(seed, n=400, d=8, hidden=1, noise=0.0, functions=["trees"])
        first.append(len(np.unique(x[:, 0])) > 390)
    assert np.mean(first) < 0.4


def test_tags_say_what_was_drawn_and_tasks_have_graphs_of_their_own():
    seen, scores = set(), set()
    batches = microbatches(20, {"n_labeled": (150, 200)}, graph=1.0, graph_noise=(0.1, 0.2))
    for batch, tag in extended_by("graph", batches):
        assert {*tag} == {"hidden", "noise", "functions", "score"}
        assert 2 <= tag["hidden"] <= 16
        assert 0.1 <= tag["noise"] <= 0.2
        assert tag["functions"]
        seen |= {*tag["functions"]}
        scores.add(tag["score"])
        tables = [np.corrcoef(x.T) for x in batch.x if x.shape[1] > 1]
        if len(tables) > 1:
            assert not np.allclose(tables[0], tables[1], atol=0.02)
    assert seen == {*FUNCTIONS}
    assert scores == {"last", "anywhere"}


def test_rules_and_trees_can_read_the_columns_of_a_graph():
    for batch in microbatches(6, graph=1.0, rule_labels=0.5, tree_labels=0.5):
        tags = {*batch.tags["extensions"]}
        assert "graph" in tags
        assert tags & {"rule_labels", "tree_labels"}


def test_the_bits_of_a_graph_are_fixed():
    """What a plan with graphs makes must stay: shards are named by their plan."""
    x, score = drawn(7, n=200, d=5, functions=["linear", "trees", "product", "groups", "network"])
    digest = hashlib.sha256(x.tobytes() + score.tobytes()).hexdigest()
    assert digest == "2f15d0c8f6c282fd3e4149d0bc8592fa4cb0a41df4e576f1204d5efc75aca7b1"
