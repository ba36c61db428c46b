"""Whose class a row has under each extension: trees, borders that lie elsewhere."""

import numpy as np
from extended import (
    PAPER_LAST,
    config,
    cross_fitted_auc,
    extended_by,
    microbatches,
    with_labels,
)
from prior_draws import (
    ALPHA,
    assert_distributed,
    assert_happens_with_probability,
    assert_uniform_over,
)
from scipy import stats
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from prior_gen import generate_microbatch
from prior_gen.extensions import border, trees
from prior_gen.extensions.border import ClassCounts
from prior_gen.extensions.propose import accepted_classes


def test_an_xor_cannot_be_learnt_linearly_but_a_tree_on_its_columns_finds_it():
    prior = {"n_labeled": (150, 150), "eta_final": (2.0, 2.0), "pi_final": (0.7, 0.8)}
    batches = microbatches(
        5,
        prior,
        rule_labels=1.0,
        independent=1.0,
        discrete=1.0,
        levels=(2, 2),
        rule_kinds=("parity",),
        rule_arity=(2, 2),
    )
    checked = 0
    for batch, tag in extended_by("rule_labels", batches):
        assert tag["kind"] == "parity"
        shares = batch.tags["extensions"]["discrete"]
        fair = shares["layout"] == "shared" and shares["shares"][0] == [0.5, 0.5]
        for (x, y), columns, forced in zip(
            with_labels(batch), tag["columns"], tag["forced"], strict=True
        ):
            assert len(columns) == 2
            assert forced == 0
            if all(shares["levels"][column] for column in columns):
                tree = DecisionTreeClassifier(max_depth=2).fit(x[:, columns], y)
                assert tree.score(x[:, columns], y) == 1
            if fair:
                assert cross_fitted_auc(LogisticRegression(), x, y) < 0.65
                checked += 1
    assert checked >= 4


def test_a_tree_label_is_found_by_a_tree_of_its_depth_on_its_columns():
    prior = {"n_labeled": (100, 100), "eta_final": (2.0, 2.0)}
    batches = microbatches(6, prior, tree_labels=1.0, independent=1.0, tree_depth=(2, 2))
    agreement = []
    for batch, tag in extended_by("tree_labels", batches):
        assert tag["depth"] == 2
        for (x, y), columns in zip(with_labels(batch), tag["columns"], strict=True):
            assert 1 <= len(columns) <= 3
            tree = DecisionTreeClassifier(max_leaf_nodes=8).fit(x[:, columns], y)
            agreement.append(tree.score(x[:, columns], y))
    assert np.mean(agreement) > 0.97
    leaves, _ = trees.random_leaves(
        np.random.default_rng(0), np.random.default_rng(1).random((500, 3)), np.arange(3), 3
    )
    assert 2 <= len(np.unique(leaves)) <= 8


def test_a_tree_asks_any_column_and_the_more_of_them_the_deeper_it_is():
    x = np.random.default_rng(0).standard_normal((600, 6)).astype(np.float32)
    counts = ClassCounts(60, 60)
    asked = {
        depth: [
            trees.tree_labels(np.random.default_rng(k), {"depth": depth}, {}, x, counts)[1]
            for k in range(300)
        ]
        for depth in (1, 2, 5)
    }
    single = [columns for facts in asked[1] for columns in facts["columns"]]
    assert len(single) == 300
    assert_uniform_over(single, range(6))
    assert max(len(facts["columns"]) for facts in asked[2]) == 3
    assert np.mean([len(facts["columns"]) for facts in asked[5]]) > 5.5
    # Which share of the pool is negative is any that leaves enough of both classes.
    shares = [facts["negative_share"] for facts in asked[5]]
    assert 0.1 <= min(shares) < 0.2 < 0.8 < max(shares) <= 0.9
    assert np.std(shares) > 0.18


def test_leaves_are_of_either_class_until_the_wanted_share_is_nearest():
    leaves, counts = np.repeat(np.arange(4), 25), ClassCounts(0, 0)
    shares = [
        trees._classes_of_leaves(np.random.default_rng(k), leaves, counts).mean()
        for k in range(2000)
    ]
    # Of a share that is uniform: a half is nearest from three eighths to five.
    for share, odds in ((0.0, 1 / 8), (0.25, 1 / 4), (0.5, 1 / 4), (0.75, 1 / 4), (1.0, 1 / 8)):
        assert_happens_with_probability(shares.count(share), 2000, odds)


def test_positives_are_where_a_condition_holds_or_where_it_does_not():
    rng, counts, holds = np.random.default_rng(0), ClassCounts(20, 20), np.arange(100) < 50
    first = [accepted_classes(rng, counts, lambda _: (holds, [0]))[0][0] for _ in range(1000)]
    assert_happens_with_probability(sum(first), 1000, 0.5)


def test_the_first_classes_that_have_enough_rows_end_the_search():
    tries = []

    def propose(attempt):
        tries.append(attempt)
        return np.arange(100) < (20 if attempt == 3 else 5), [attempt]

    negative, facts = accepted_classes(np.random.default_rng(0), ClassCounts(20, 20), propose)
    assert (tries, facts["columns"], facts["forced"]) == ([0, 1, 2, 3], [3], 0)
    assert negative.sum() in (20, 80)


def test_rows_that_are_forced_to_change_class_are_any_rows():
    never = np.zeros(400, dtype=bool)
    rows = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        negative, facts = accepted_classes(rng, ClassCounts(100, 100), lambda _: (never, [0]))
        assert facts["forced"] == 100
        rows += np.flatnonzero(negative == (negative.mean() < 0.5)).tolist()
    assert_distributed(np.array(rows) / 400, stats.uniform())


def test_labels_read_neither_irrelevant_columns_nor_copies():
    batches = microbatches(
        20, irrelevant=1.0, duplicated=0.7, tree_labels=0.5, rule_labels=0.5, independent=0.5
    )
    for batch in batches:
        tag = batch.tags["extensions"]
        forbidden = {*tag["irrelevant"]["columns"]}
        forbidden |= {copy for _, copy in tag.get("duplicated", {"pairs": []})["pairs"]}
        labels = tag.get("tree_labels") or tag.get("rule_labels")
        assert labels
        for columns in labels["columns"]:
            assert not forbidden & {*columns}


def test_a_shallow_scm_has_the_tagged_number_of_layers():
    for batch, tag in extended_by("shallow", microbatches(20, shallow=1.0)):
        assert batch.tags["hidden_layers"] == tag["hidden_layers"]
        assert len(batch.tags["activations"]) == tag["hidden_layers"] - 1
        assert tag["hidden_layers"] in (2, 3)


def test_pi_is_reached_although_the_border_lies_elsewhere():
    batches = microbatches(60, {"tasks_per_microbatch": 6}, free_border=1.0, border=(0.25, 0.75))
    pi, quantile = [], []
    for batch, tag in extended_by("free_border", batches):
        realised = 1 - batch.y.mean(axis=1)
        np.testing.assert_allclose(realised, batch.tags["pi"], atol=1.5 / batch.y.shape[1])
        pi += batch.tags["pi"]
        quantile += tag["quantile"]
    assert stats.kstest(pi, stats.uniform(0.1, 0.8).cdf).pvalue > ALPHA
    assert stats.kstest(quantile, stats.uniform(0.25, 0.5).cdf).pvalue > ALPHA
    assert stats.spearmanr(pi, quantile).pvalue > ALPHA


def test_a_free_border_does_not_move_with_pi():
    # One noiseless score column: the border is where the classes part.
    plan = {
        "n_features": (1, 1),
        "n_labeled": (200, 200),
        "sigma_noise": (0.0,),
        "activations": ("identity",),
        "noncausal_sources": ("causes",),
        "input_distributions": ("uniform",),
        "p_causal_final": 0.0,
        "tasks_per_microbatch": 12,
    }
    for free in (0.0, 1.0):
        batch = generate_microbatch(
            config(plan, free_border=free, label_noise=1.0, noise_share=(0, 0), border=(0.5, 0.5)),
            PAPER_LAST,
            0,
            0,
        )
        borders = []
        for x, y in with_labels(batch):
            sign = 1 if x[y == 0, 0].mean() > x[y == 1, 0].mean() else -1
            column = sign * x[:, 0]
            assert column[y == 1].max() < column[y == 0].min()
            borders.append((column[y == 1].max() + column[y == 0].min()) / 2)
        assert (np.std(borders) < 0.1) == bool(free), borders


def test_the_pool_of_a_free_border_holds_both_classes_for_every_pi():
    for positive, negative in [(300, 1), (41, 59), (2, 500)]:
        counts = ClassCounts(positive, negative)
        for quantile in (0.0001, 0.02, 0.2, 1 / 3, 0.5, 0.8, 0.98, 0.9999):
            n = border.pool_rows(quantile, counts)
            n_negative = round(quantile * n)
            assert n_negative >= negative
            assert n - n_negative >= positive


def test_a_border_at_the_very_end_of_a_score_leaves_a_row_in_ten_thousand_beyond():
    for ends, quantile in (((1e-6, 2e-6), 0.0001), ((1 - 2e-6, 1 - 1e-6), 0.9999)):
        assert border.border_quantile(np.random.default_rng(0), {"range": ends}) == quantile
        settings = {"free_border": 1.0, "border": ends}
        for batch, tag in extended_by(
            "free_border", microbatches(1, {"n_labeled": (4, 4)}, **settings)
        ):
            assert {*tag["quantile"]} == {quantile}
            assert {*batch.y.ravel()} == {0, 1}
    # Quantiles that need no such end are the drawn ones.
    rng, again = np.random.default_rng(1), np.random.default_rng(1)
    for _ in range(1000):
        drawn = border.border_quantile(rng, {"range": (1e-4, 1 - 1e-4)})
        assert drawn == round(float(again.uniform(1e-4, 1 - 1e-4)), 4)
