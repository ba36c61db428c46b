"""What the nodes of a graph are made of: roots, functions, noise, and which node is the score."""

from collections import Counter

import numpy as np
import pytest
from extended import config
from prior_draws import (
    ALPHA,
    assert_distributed,
    assert_happens_with_probability,
    assert_uniform_over,
)
from scipy import stats
from sklearn.linear_model import LogisticRegression

from prior_gen.extensions import graph
from prior_gen.extensions.graph import FUNCTIONS, graph_columns


def drawn(seed, n=600, d=6, hidden=4, noise=0.1, functions=("linear",), score="last"):
    parameters = {"hidden": hidden, "noise": noise, "functions": functions, "score": score}
    return graph_columns(np.random.default_rng(seed), parameters, n, d, portable=False)


def parents(seed, k=1, n=800):
    return np.random.default_rng([9, seed]).standard_normal((n, k)).astype(np.float32)


def made(name, seed, z):
    return FUNCTIONS[name](np.random.default_rng(seed), z, False)


@pytest.fixture
def spied(monkeypatch):
    """Note what is given to a function that graphs call."""

    def on(where, name):
        real = where[name] if isinstance(where, dict) else getattr(where, name)
        calls = []

        def spy(*arguments):
            calls.append(arguments)
            return real(*arguments)

        (monkeypatch.setitem if isinstance(where, dict) else monkeypatch.setattr)(where, name, spy)
        return calls

    return on


def test_a_microbatch_has_each_function_three_times_in_five_and_never_none():
    wanted = config(graph=1.0).prior.extensions
    found = [
        graph.draw(np.random.default_rng(k), wanted, 5, {})["functions"] for k in range(10_000)
    ]
    assert min(len(names) for names in found) == 1
    for name in FUNCTIONS:
        # Where none is drawn, one is taken.
        hits = sum(name in names for names in found)
        assert_happens_with_probability(hits, len(found), 0.6 + 0.4**5 / 5)
    assert_uniform_over([names[0] for names in found if len(names) == 1], FUNCTIONS)


def test_a_root_is_normal_uniform_skewed_or_of_two_groups():
    """The column of a graph of two nodes is its root."""
    shapes = {
        "normal": stats.norm(),
        "uniform": stats.uniform(-(3**0.5), 12**0.5),
        "skewed": stats.expon(-1),
    }
    kinds, groups = [], []
    for seed in range(300):
        root = drawn(seed, n=1500, d=1, hidden=0)[0][:, 0]
        assert root.mean() == pytest.approx(0, abs=1e-4)
        assert root.std() == pytest.approx(1, abs=1e-4)
        fits = {
            name: stats.kstest(root, shape.cdf, method="asymp").pvalue
            for name, shape in shapes.items()
        }
        best = max(fits, key=fits.get)
        kinds.append(best if fits[best] > 1e-3 else "two groups")
        if kinds[-1] == "two groups":
            groups.append(root)
    assert_uniform_over(kinds, ("normal", "uniform", "skewed", "two groups"))
    expected = []
    for seed in range(300):
        rng = np.random.default_rng([2, seed])
        in_second = rng.random(1500) < rng.uniform(0.1, 0.5)
        expected.append(rng.standard_normal(1500) + rng.uniform(2, 5) * in_second)
    for moment in (stats.skew, stats.kurtosis):
        p = stats.ks_2samp(
            [moment(v) for v in groups], [moment(v) for v in expected], method="asymp"
        ).pvalue
        assert p > ALPHA


def test_noise_is_of_up_to_twice_its_size_and_in_a_third_of_the_nodes_follows_a_parent():
    """Of two columns, one is the root and the other is the root with noise."""
    sizes, follows = [], []
    for seed in range(400):
        first, second = drawn(seed, n=2000, d=2, hidden=0, noise=0.1)[0].astype(np.float64).T
        r = np.mean(first * second)
        sizes.append(np.sqrt(max(1 / r**2 - 1, 0)))
        # Either may be the root; noise that is even is so beside the root.
        follows.append(
            min(
                np.corrcoef(np.abs(child - r * parent), np.abs(parent))[0, 1]
                for child, parent in ((first, second), (second, first))
            )
            > 0.25
        )
    assert_distributed(sizes, stats.uniform(0, 0.2))
    assert_happens_with_probability(sum(follows), len(follows), 1 / 3)


def test_noise_is_in_standard_deviations_of_what_it_is_added_to(monkeypatch):
    plain = drawn(3, noise=1.0)
    linear = FUNCTIONS["linear"]
    monkeypatch.setitem(FUNCTIONS, "linear", lambda *arguments: 64 * linear(*arguments))
    for one, other in zip(plain, drawn(3, noise=1.0), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


def test_a_score_that_may_be_anywhere_is_no_root():
    for seed in range(60):
        x, score = drawn(
            seed, n=200, d=1, hidden=0, noise=0, functions=["groups"], score="anywhere"
        )
        assert len(np.unique(x)) > 190
        assert len(np.unique(score)) <= 12


def test_a_score_is_as_likely_one_node_as_another(spied):
    """Told by its parents, of which it alone may have more than four."""
    calls = spied(FUNCTIONS, "linear")
    places = []
    for seed in range(500):
        calls.clear()
        drawn(seed, n=3, d=8, hidden=12, score="anywhere")
        many = [place for place, (_, z, _) in enumerate(calls) if z.shape[1] > 4]
        places += [21 - len(calls) + place for place in many]
    assert_uniform_over([place for place in places if place >= 8], range(8, 21))


def test_roots_are_in_the_table_as_often_as_other_nodes():
    """Without noise, nodes made of groups have few values and roots have many."""
    roots = []
    for seed in range(300):
        x, _ = drawn(seed, n=60, d=8, hidden=8, noise=0, functions=["groups"])
        roots.append(np.mean([len(np.unique(column)) > 12 for column in x.T]))
    # One to five of sixteen nodes.
    error = np.std(roots) / np.sqrt(len(roots))
    assert abs(np.mean(roots) - 3 / 16) < 4 * error


def test_some_nodes_are_parents_much_more_often_than_others(spied):
    calls = spied(FUNCTIONS, "linear")
    most = []
    for seed in range(60):
        calls.clear()
        drawn(seed, n=8, d=20, hidden=29)
        uses = Counter(column.tobytes() for _, z, _ in calls for column in z.T)
        most.append(max(uses.values()) / len(calls))
    # Were all as popular, the first would be a parent of a fifth.
    assert np.mean(most) == pytest.approx(0.33, abs=0.06)


def test_a_network_has_two_to_eight_units_of_one_bend_a_gain_and_places_of_their_own(spied):
    bent = spied(graph, "activate")
    for seed in range(1000):
        made("network", seed, parents(seed, n=400))
    assert_uniform_over([name for name, *_ in bent], ("tanh", "relu", "sin", "abs", "rbf"))
    assert_uniform_over([inner.shape[1] for _, inner, *_ in bent], range(2, 9))
    # Of one parent, whose weights are 1 and -1.
    spreads, means = [], []
    for seed, (_, inner, *_) in enumerate(bent):
        z = parents(seed, n=400)[:, 0].astype(np.float64)
        spreads.append(inner[:, 0].std() / z.std())
        means.append(
            inner[:, 0].mean() - (inner[:, 0] * (z - z.mean())).mean() / z.var() * z.mean()
        )
    assert_distributed(np.log(spreads), stats.uniform(np.log(0.5), np.log(8)))
    assert_distributed(means, stats.norm())


def test_trees_are_one_two_or_four_of_one_depth(spied):
    calls = spied(graph, "random_leaves")
    numbers, depths = [], []
    for seed in range(600):
        calls.clear()
        made("trees", seed, parents(seed, n=20))
        numbers.append(len(calls))
        (depth,) = {depth for *_, depth in calls}
        depths.append(depth)
    assert_uniform_over(numbers, (1, 2, 4))
    assert_uniform_over(depths, range(1, 5))


def test_a_product_is_of_two_lines_with_normal_constants():
    """Of one parent z: (c +- z) (c' +- z), whose zeros are the constants."""
    zeros = []
    for seed in range(400):
        z = parents(seed, n=50)
        value = made("product", seed, z)
        coefficients = np.polyfit(z[:, 0].astype(np.float64), value, 2)
        if abs(coefficients[0]) < 0.999:  # a weight whose cube is next to nothing
            continue
        zeros.append(np.random.default_rng(seed).choice(np.roots(coefficients).real))
    assert len(zeros) > 380
    assert_distributed(zeros, stats.norm())


def test_in_the_lines_of_a_product_few_parents_matter():
    """Their slopes a and b are cubes of normals: of even ones, |a b| sums to 2 / pi over all."""
    steps = np.concatenate([np.zeros((1, 8)), np.eye(8), -np.eye(8)]).astype(np.float32)
    sums = []
    for seed in range(300):
        constant, up, down = np.split(
            FUNCTIONS["product"](np.random.default_rng(seed), steps, True), [1, 9]
        )
        sums.append(np.abs((up + down) / 2 - constant).sum())
    assert 0.3 < np.mean(sums) < 0.4


def test_groups_are_two_to_twelve_and_two_are_parted_by_the_line_between_them():
    sizes, slants = [], []
    for seed in range(500):
        z = parents(seed, k=2, n=300)
        value = made("groups", seed, z)
        levels = np.unique(value)
        sizes.append(len(levels))
        if len(levels) == 2 and len(slants) < 25:
            parted = LogisticRegression(C=1e5, max_iter=2000).fit(z, value > levels[0])
            assert parted.score(z, value > levels[0]) > 0.995
            slants.append(np.arctan2(*parted.coef_[0]))
    assert_uniform_over(sizes, range(2, 13))
    # Both parents tell: the line goes in any direction.
    assert_distributed(np.mod(slants, np.pi), stats.uniform(0, np.pi))


def test_of_few_rows_each_may_be_a_group():
    z = parents(0, k=2, n=3)
    sizes = {len(np.unique(made("groups", seed, z))) for seed in range(30)}
    assert sizes == {2, 3}
