"""What each extension does to a task, seen from outside where that is possible."""

from itertools import combinations

import numpy as np
import pytest
from scipy import stats
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_predict
from sklearn.tree import DecisionTreeClassifier

from prior_gen import generate_microbatch
from prior_gen.extensions import border, discrete, labeling, noise, rules, trees, warped
from prior_gen.extensions.border import ClassCounts
from prior_gen.extensions.discrete import CONTINUOUS
from prior_gen.extensions.duplicated import duplicate_columns
from prior_gen.extensions.irrelevant import shuffle_irrelevant
from prior_gen.factors import draw_factors
from puicl_config import RULE_KINDS, Config

ALPHA = 1e-4
SMALL = {"n_labeled": (40, 80), "n_features": (4, 8), "tasks_per_microbatch": 4}
PAPER_LAST = 100


def config(prior=None, **extensions) -> Config:
    plan = {**SMALL, "extensions": {"share": 1.0, **extensions}, **(prior or {})}
    return Config(prior=plan, shards={"x_dtype": "float32"})


def microbatches(count, prior=None, **extensions):
    wanted = config(prior, **extensions)
    return [generate_microbatch(wanted, PAPER_LAST, step, 0) for step in range(count)]


def extended_by(name, batches):
    return [(batch, batch.tags["extensions"][name]) for batch in batches]


def with_labels(batch):
    """All rows of each task with their class, 1 = positive."""
    for x, y in zip(batch.x, batch.y, strict=True):
        yield x, np.concatenate([np.ones(batch.n_labeled, dtype=int), y])


def grid(rng, n=900, d=6, levels=3):
    """Independent columns of equally likely codes, as x and codes."""
    codes = rng.integers(levels, size=(n, d))
    return ((codes - codes.mean(0)) / codes.std(0)).astype(np.float32), codes


def cross_fitted_auc(model, x, y) -> float:
    return roc_auc_score(y, cross_val_predict(model, x, y, cv=3, method="predict_proba")[:, 1])


# Columns


@pytest.mark.parametrize("independent", [0.0, 1.0])
def test_discrete_columns_have_exactly_the_levels_of_their_tag(independent):
    batches = microbatches(12, discrete=1.0, rule_labels=1.0, independent=independent)
    for batch, tag in extended_by("discrete", batches):
        assert any(tag["levels"])
        for task in batch.x:
            for column, levels in zip(task.T, tag["levels"], strict=True):
                distinct = len(np.unique(column))
                assert distinct <= levels if levels else distinct == len(column)
        seen = [max(len(np.unique(task[:, j])) for task in batch.x) for j in range(len(task.T))]
        for column, levels in enumerate(tag["levels"]):
            assert not levels or seen[column] == levels


def test_shared_levels_give_all_columns_the_same_values_and_shares():
    rng = np.random.default_rng(0)
    shares = [0.5, 0.3, 0.2]
    x = rng.standard_normal((1000, 5)).astype(np.float32)
    for order in ("ordinal", "nominal"):
        parameters = {"order": order, "levels": [3] * 5, "shares": [shares] * 5}
        codes = discrete.level_codes(np.random.default_rng(1), parameters, x)
        counts = [np.bincount(column, minlength=3).tolist() for column in codes.T]
        assert counts == [counts[0]] * 5
        assert sorted(counts[0]) == [200, 300, 500]
    layouts = {"shared": 0, "own": 0}
    for batch, tag in extended_by("discrete", microbatches(30, discrete=1.0)):
        layouts[tag["layout"]] += 1
        if tag["layout"] == "shared":
            assert len(set(tag["levels"])) == 1
            for task in batch.x:  # the same numbers everywhere: standardised over the same shares
                values = np.unique(task.round(4))
                assert len(values) <= tag["levels"][0]
    assert min(layouts.values()) > 5


def test_ordinal_codes_keep_the_columns_order_and_nominal_ones_do_not():
    x = np.linspace(-1, 1, 600, dtype=np.float32)[:, None]
    parameters = {"levels": [5], "shares": [[0.2] * 5]}
    ordinal = discrete.level_codes(np.random.default_rng(0), {**parameters, "order": "ordinal"}, x)
    assert (np.diff(ordinal[:, 0]) >= 0).all()
    shuffled = [
        discrete.level_codes(np.random.default_rng(seed), {**parameters, "order": "nominal"}, x)
        for seed in range(20)
    ]
    assert sum((np.diff(codes[:, 0]) < 0).any() for codes in shuffled) >= 18


def test_uneven_levels_include_a_rare_yes():
    batches = microbatches(40, discrete=1.0, levels=(2, 2))
    shares = [s for _, tag in extended_by("discrete", batches) for s in tag["shares"] if s]
    assert min(min(pair) for pair in shares) < 0.15
    assert [0.5, 0.5] in shares


def test_a_warp_keeps_ranks_and_the_marginals_get_the_tails():
    z = np.random.default_rng(0).standard_normal((4000, 1)).astype(np.float32)
    for kind, a, b in (("sinh_arcsinh", 0.0, 0.5), ("exp", 1.0, 0.0), ("power", 3.0, 0.0)):
        out = warped.warp_columns({"warps": [[kind, a, b]]}, z)
        assert (np.argsort(out[:, 0]) == np.argsort(z[:, 0])).all(), kind
        assert stats.kurtosis(out[:, 0]) > 3, kind
    right, left = (warped.warp_columns({"warps": [["exp", a, 0.0]]}, z) for a in (0.8, -0.8))
    assert stats.skew(right[:, 0]) > 1
    assert stats.skew(left[:, 0]) < -1
    assert (np.argsort(left[:, 0]) == np.argsort(z[:, 0])).all()


def test_only_the_tagged_columns_are_warped_and_the_task_stays_the_same():
    plain, bent = (microbatches(8, warped=w, missing=1.0) for w in (0.0, 1.0))
    for before, after in zip(plain, bent, strict=True):
        np.testing.assert_array_equal(before.y, after.y)
        warps = after.tags["extensions"]["warped"]["warps"]
        assert any(kind != "identity" for kind, _, _ in warps)
        for column, (kind, _, _) in enumerate(warps):
            same = np.allclose(before.x[:, :, column], after.x[:, :, column], atol=1e-5)
            assert same == (kind == "identity"), kind


def test_irrelevant_columns_say_nothing_about_the_class_or_the_other_columns():
    strong = {"sigma_noise": (0.0,), "noncausal_sources": ("head",), "p_causal_final": 0.0}
    batches = microbatches(30, strong, irrelevant=1.0, irrelevant_share=(0.4, 0.6))
    p_values, others = [], []
    for batch, tag in extended_by("irrelevant", batches):
        d = batch.x.shape[2]
        assert 1 <= len(tag["columns"]) < d
        for x, y in with_labels(batch):
            for column in range(d):
                p = stats.mannwhitneyu(x[y == 1, column], x[y == 0, column]).pvalue
                (p_values if column in tag["columns"] else others).append(p)
    assert stats.kstest(p_values, "uniform").pvalue > ALPHA
    assert np.mean(np.array(others) < 0.01) > 0.3


def test_an_irrelevant_column_keeps_its_marginal():
    plain, shuffled = (microbatches(6, irrelevant=w, shallow=1.0) for w in (0.0, 1.0))
    for before, after in zip(plain, shuffled, strict=True):
        columns = after.tags["extensions"]["irrelevant"]["columns"]
        for column in range(before.x.shape[2]):
            ours, theirs = before.x[:, :, column], after.x[:, :, column]
            assert (ours == theirs).all() == (column not in columns)
    x = np.random.default_rng(1).standard_normal((50, 3))
    y = x.copy()
    shuffle_irrelevant(np.random.default_rng(2), {"columns": [1]}, y)
    np.testing.assert_array_equal(np.sort(x, axis=0), np.sort(y, axis=0))
    assert (x[:, 1] != y[:, 1]).any()


def test_exact_copies_are_equal_and_near_copies_are_as_near_as_tagged():
    exact = near = 0
    for batch, tag in extended_by("duplicated", microbatches(30, duplicated=1.0)):
        for original, copy in tag["pairs"]:
            ours, theirs = batch.x[:, :, original], batch.x[:, :, copy]
            if tag["noise"] == 0:
                np.testing.assert_array_equal(ours, theirs)
                exact += 1
            else:
                assert (ours != theirs).any()
                for a, b in zip(ours, theirs, strict=True):
                    if a.std() > 0.5:  # not a column of outliers
                        assert np.corrcoef(a, b)[0, 1] > 0.6
                near += 1
    assert min(exact, near) > 5


def test_near_copies_of_a_discrete_column_are_discrete_and_differ_in_the_tagged_share():
    rng = np.random.default_rng(0)
    x = rng.integers(2, size=(4000, 2)).astype(np.float32)
    parameters = {"pairs": [[0, 1]], "noise": 0.3}
    duplicate_columns(rng, parameters, x, np.array([True, True]))
    assert set(np.unique(x[:, 1])) == {0, 1}
    # A stray cell of a fair coin agrees by chance half of the time.
    assert (x[:, 0] != x[:, 1]).mean() == pytest.approx(0.15, abs=0.03)


def test_missing_cells_are_zero_in_the_tagged_share_and_nothing_else_changes():
    plain, holes = (microbatches(10, missing=w, sar=1.0) for w in (0.0, 1.0))
    for before, after in zip(plain, holes, strict=True):
        np.testing.assert_array_equal(before.y, after.y)
        changed = before.x != after.x
        assert (after.x[changed] == 0).all()
        shares = after.tags["extensions"]["missing"]["shares"]
        cells = before.x.shape[0] * before.x.shape[1]
        for column, share in enumerate(shares):
            hits = (after.x[:, :, column] == 0).sum()
            nonzero = (before.x[:, :, column] != 0).mean()
            if share == 0:
                assert not changed[:, :, column].any()
            elif nonzero == 1:
                assert stats.binomtest(int(hits), cells, share).pvalue > ALPHA / 10


# Labels


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


def test_an_equality_of_two_columns_is_theirs_and_needs_both():
    rng = np.random.default_rng(3)
    x, codes = grid(rng)
    counts = ClassCounts(100, 100)
    for _ in range(10):
        parameters = {"kind": "equality", "arity": 2, "bins": 2}
        negative, facts = rules.rule_labels(rng, parameters, {}, x, codes, counts)
        first, second = facts["columns"]
        holds = codes[:, first] == codes[:, second]
        assert (negative == holds).all() or (negative == ~holds).all()


def test_a_count_depends_on_how_many_columns_have_the_code_and_nothing_else():
    rng = np.random.default_rng(4)
    x, codes = grid(rng)
    for _ in range(10):
        parameters = {"kind": "count", "arity": 6, "bins": 2}
        counts = ClassCounts(100, 100)
        negative, facts = rules.rule_labels(rng, parameters, {}, x, codes, counts)
        assert facts["forced"] == 0

        def explains(code, how_many, negative=negative):
            holds = (codes == code).sum(axis=1) == how_many
            return (negative == holds).all() or (negative == ~holds).all()

        assert any(explains(code, k) for code in range(3) for k in range(1, 7))


@pytest.mark.parametrize("kind", RULE_KINDS)
@pytest.mark.parametrize("levels", [0, 2, 4])
def test_a_rules_class_is_a_function_of_the_columns_it_names(kind, levels):
    rng = np.random.default_rng(5)
    x, codes = grid(rng, n=600, levels=levels or 3)
    if not levels:
        x = rng.standard_normal(x.shape).astype(np.float32)
        codes = np.full(codes.shape, CONTINUOUS)
    for arity in (2, 3, 4):
        parameters = {"kind": kind, "arity": 2 if kind == "equality" else arity, "bins": 3}
        negative, facts = rules.rule_labels(rng, parameters, {}, x, codes, ClassCounts(60, 60))
        assert min(2, parameters["arity"]) <= len(facts["columns"]) <= parameters["arity"]
        assert facts["forced"] == 0
        assert facts["negative_share"] == pytest.approx(negative.mean(), abs=1e-4)
        named = x[:, facts["columns"]]
        if levels:
            _, cell = np.unique(named, axis=0, return_inverse=True)
            for members in np.unique(cell):
                assert len(set(negative[cell == members])) == 1
        # No change of the other columns changes the class.
        others = np.setdiff1d(np.arange(6), facts["columns"])
        for column in others:
            p = stats.mannwhitneyu(x[negative, column], x[~negative, column]).pvalue
            assert p > ALPHA / 10


def test_a_rule_that_holds_too_rarely_reads_fewer_columns_before_rows_are_forced():
    rng = np.random.default_rng(7)
    x, codes = grid(rng, n=600, levels=2)
    parameters = {"kind": "conjunction", "arity": 4, "bins": 2}
    enough, few = ClassCounts(130, 130), ClassCounts(20, 20)
    negative, facts = rules.rule_labels(rng, parameters, {}, x, codes, enough)
    assert len(facts["columns"]) == 2
    assert facts["forced"] == 0
    assert len(rules.rule_labels(rng, parameters, {}, x, codes, few)[1]["columns"]) == 4
    # A table without any structure still gives both classes, and says how many rows it took.
    parameters = {"kind": "equality", "arity": 2, "bins": 2}
    dead = np.zeros_like(codes)
    negative, facts = rules.rule_labels(rng, parameters, {}, x, dead, enough)
    assert facts["forced"] == min(negative.sum(), (~negative).sum()) == 130


def test_conjunctions_are_rarer_than_disjunctions_of_the_same_conditions():
    codes = grid(np.random.default_rng(6), d=3)[1]
    for seed in range(10):
        both, any_of = (
            rule(np.random.default_rng(seed), codes, None)
            for rule in (rules.conjunction, rules.disjunction)
        )
        assert (both <= any_of).all()
        assert 0 < both.mean() < any_of.mean() < 1


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
    leaves, _ = trees._leaves(
        np.random.default_rng(0), np.random.default_rng(1).random((500, 3)), np.arange(3), 3
    )
    assert 2 <= len(np.unique(leaves)) <= 8


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
        for quantile in (0.02, 0.2, 0.5, 0.8, 0.98):
            n = border.pool_rows(quantile, counts)
            n_negative = min(max(round(quantile * n), negative), n - positive)
            assert n_negative >= negative
            assert n - n_negative >= positive
            assert abs(n_negative - quantile * n) <= 2


@pytest.mark.parametrize("where", ["uniform", "border"])
def test_label_noise_changes_the_tagged_share_of_the_rarer_class_and_as_many_others(where):
    rng = np.random.default_rng(0)
    score = rng.standard_normal(1000)
    negative = score > np.quantile(score, 0.7)
    flipped = noise.flipped_rows(rng, {"share": 0.2, "where": where}, negative, score)
    assert (flipped & negative).sum() == (flipped & ~negative).sum() == 60
    distance = np.abs(score - np.quantile(score, 0.7))
    nearer = distance[flipped & ~negative].max() < np.quantile(distance[~negative], 0.34)
    assert nearer == (where == "border")


def test_the_realised_share_of_noise_is_tagged_and_is_what_a_tree_cannot_explain():
    prior = {"n_labeled": (200, 200), "eta_final": (2.0, 2.0)}
    for batch, tag in extended_by(
        "label_noise",
        microbatches(
            6,
            prior,
            label_noise=1.0,
            noise_share=(0.1, 0.3),
            rule_labels=1.0,
            rule_kinds=("conjunction",),
            rule_arity=(2, 2),
            independent=1.0,
            discrete=1.0,
            levels=(2, 2),
        ),
    ):
        rule = batch.tags["extensions"]["rule_labels"]
        assert tag["where"] == "uniform"
        for (x, y), columns, realised in zip(
            with_labels(batch), rule["columns"], tag["realized"], strict=True
        ):
            _, cell = np.unique(x[:, columns], axis=0, return_inverse=True)
            majority = sum(np.bincount(y[cell == c]).max() for c in np.unique(cell))
            assert realised > 0.01
            # The rule is the majority of each cell as long as less than half of it is noise.
            assert 1 - majority / len(y) <= realised + 1e-4
        assert max(tag["realized"]) <= tag["share"] + 0.1


def test_noise_is_fair_to_the_labelled_rows_because_it_precedes_the_split():
    # Among the observed positives, those of the other class are labelled as often as the rest.
    surplus, variance = 0.0, 0.0
    for batch in microbatches(
        20,
        {"n_features": (2, 2), "tasks_per_microbatch": 12},
        label_noise=1.0,
        noise_share=(0.3, 0.3),
        rule_labels=1.0,
        rule_kinds=("equality",),
        independent=1.0,
        discrete=1.0,
        levels=(2, 2),
    ):
        for x, y in with_labels(batch):
            _, cell = np.unique(x, axis=0, return_inverse=True)
            share = np.bincount(cell, weights=y) / np.bincount(cell)
            wrong = (y == 1) & (share[cell] < 0.5)
            # Hypergeometric: P of the observed positives are labelled.
            labeled, share = batch.n_labeled, wrong.sum() / y.sum()
            surplus += wrong[:labeled].sum() - labeled * share
            variance += labeled * share * (1 - share) * (y.sum() - labeled) / (y.sum() - 1)
    assert variance > 100
    assert abs(surplus) < 4 * np.sqrt(variance)


# Who is labelled


def labelled_surplus(strength, by="feature"):
    """Mean of the labelling column among the labelled minus that among hidden positives, in sd."""
    differences = []
    batches = microbatches(
        40, {"n_labeled": (60, 60)}, sar=1.0, sar_strength=(strength, strength), free_border=1.0
    )
    for batch, tag in extended_by("sar", batches):
        if tag["by"] != by:
            continue
        sign = np.sign(tag["strength"]) or 1
        for (x, y), column in zip(with_labels(batch), tag["column"], strict=True):
            values = x[:, column] if column >= 0 else np.zeros(len(x))
            positives = values[y == 1]
            if positives.std() > 0:
                labelled = values[: batch.n_labeled].mean()
                hidden = values[batch.n_labeled :][y[batch.n_labeled :] == 1].mean()
                differences.append(sign * (labelled - hidden) / positives.std())
    assert len(differences) > 30
    return np.array(differences)


def test_sar_labels_positives_on_the_tagged_side_of_a_feature():
    strong = labelled_surplus(2.0)
    assert (strong > 0).mean() > 0.95
    weak = labelled_surplus(0.5)
    assert 0 < weak.mean() < strong.mean()


def test_strength_zero_is_scar():
    assert stats.ttest_1samp(labelled_surplus(0.0), 0).pvalue > ALPHA


def test_sar_by_score_prefers_rows_far_from_the_negatives_when_strength_is_positive():
    score = np.linspace(-2, 2, 200)  # large for negatives
    values, facts = labeling.labeling_column(
        np.random.default_rng(0), {"by": "score"}, np.zeros((200, 3)), score
    )
    assert facts == {"column": -1}
    for strength, sign in ((2.0, -1), (-2.0, 1)):
        order = labeling.labeled_first(np.random.default_rng(1), strength, values)
        assert sorted(order) == list(range(200))
        assert sign * score[order[:50]].mean() > 0.7


def test_labelling_frequencies_are_proportional_to_the_stated_propensity():
    values = np.array([0.0, 1.0])  # z = -1 and 1: odds exp(2 strength)
    rng = np.random.default_rng(2)
    firsts = [labeling.labeled_first(rng, 0.5, values)[0] for _ in range(4000)]
    assert stats.binomtest(sum(firsts), 4000, np.e / (1 + np.e)).pvalue > ALPHA


# Sizes


def test_ranges_of_extended_microbatches_are_theirs_alone():
    ranges = {"n_features": (2, 3), "n_labeled": (20, 30), "eta": (3.0, 4.0), "pi": (0.9, 0.95)}
    prior = config(None, **{**ranges, "share": 0.5}).prior
    seen = {True: 0, False: 0}
    for step in range(200):
        factors = draw_factors(prior, PAPER_LAST, step, 0)
        extended = factors.extensions is not None
        seen[extended] += 1
        inside = (
            2 <= factors.n_features <= 3,
            20 <= factors.n_labeled <= 30,
            3 <= factors.eta <= 4,
            factors.pi == (0.9, 0.95),
        )
        assert all(inside) if extended else not any(inside)
        if extended:
            assert factors.extensions == {"ranges": {"of": [*ranges]}}
    assert min(seen.values()) > 70


def test_max_rows_lowers_eta_until_the_table_fits():
    prior = config(None, eta=(0.5, 4.0), max_rows=150).prior
    drawn = [draw_factors(prior, PAPER_LAST, step, 0) for step in range(200)]
    rows = [f.n_labeled + f.n_unlabeled for f in drawn]
    assert max(rows) == 150
    assert min(rows) < 120
    for factors in drawn:
        assert factors.n_unlabeled == np.ceil(round(factors.n_labeled * factors.eta, 6))


@pytest.mark.parametrize("kinds", list(combinations(RULE_KINDS, 7))[:2])
def test_only_the_configured_rules_are_drawn(kinds):
    batches = microbatches(
        25, {"tasks_per_microbatch": 1}, rule_labels=1.0, independent=1.0, rule_kinds=kinds
    )
    drawn = {tag["kind"] for _, tag in extended_by("rule_labels", batches)}
    assert drawn <= {*kinds}
    assert len(drawn) >= 5
