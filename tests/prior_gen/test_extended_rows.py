"""Label noise, who is labelled, and how large tasks are under the extensions."""

from itertools import combinations

import numpy as np
import pytest
from extended import (
    PAPER_LAST,
    config,
    extended_by,
    microbatches,
    with_labels,
)
from prior_draws import ALPHA, assert_happens_with_probability, assert_uniform_over
from pydantic import ValidationError
from scipy import stats

from prior_gen.extensions import labeling, noise
from prior_gen.factors import draw_factors
from puicl_config import RULE_KINDS


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


def test_noise_near_the_border_is_near_it_on_both_sides():
    rng = np.random.default_rng(0)
    score = rng.standard_normal(3000)
    negative = score > np.quantile(score, 0.7)
    parameters = {"share": 0.2, "where": "border"}
    flipped = noise.flipped_rows(rng, parameters, negative, score)
    for side, sign in ((negative, 1), (~negative, -1)):
        beyond = np.sort(sign * score[side])
        own = sign * score[flipped & side]
        near = beyond[: len(beyond) // 3]
        assert own.max() <= near[-1]
        # Anywhere in that third, not the nearest alone.
        assert stats.ks_2samp(own, near).pvalue > ALPHA


def test_noise_of_half_of_a_class_near_the_border_changes_as_many_of_the_other():
    score = np.random.default_rng(0).standard_normal(1000)
    negative = score > np.quantile(score, 0.7)
    parameters = {"share": 0.5, "where": "border"}
    flipped = noise.flipped_rows(np.random.default_rng(1), parameters, negative, score)
    assert (flipped & negative).sum() == (flipped & ~negative).sum() == 150


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


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_propensities_do_not_grow_beyond_four_standard_deviations(sign):
    values = np.zeros(400)
    values[0] = sign  # 20 standard deviations
    rng = np.random.default_rng(0)
    firsts = [labeling.labeled_first(rng, sign, values)[0] == 0 for _ in range(4000)]
    share = np.exp(4) / (np.exp(4) + 399 * np.exp(-0.05))
    assert_happens_with_probability(sum(firsts), 4000, share)


def test_positives_that_are_all_alike_are_labelled_at_random():
    rng = np.random.default_rng(0)
    firsts = [int(labeling.labeled_first(rng, 2.0, np.ones(5))[0]) for _ in range(2000)]
    assert_uniform_over(firsts, range(5))


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


def test_a_range_of_pi_holds_where_pi_is_drawn_once_a_microbatch():
    prior = config({"pi_drawn_per": "microbatch"}, pi=(0.92, 0.95)).prior
    for step in range(20):
        low, high = draw_factors(prior, PAPER_LAST, step, 0).pi
        assert 0.92 <= low == high <= 0.95


def test_max_rows_lowers_eta_until_the_table_fits():
    prior = config(None, eta=(0.5, 4.0), max_rows=150).prior
    drawn = [draw_factors(prior, PAPER_LAST, step, 0) for step in range(200)]
    rows = [f.n_labeled + f.n_unlabeled for f in drawn]
    assert max(rows) == 150
    assert min(rows) < 120
    for factors in drawn:
        assert factors.n_unlabeled == np.ceil(round(factors.n_labeled * factors.eta, 6))


def test_few_labelled_rows_stand_beside_many_unlabelled_ones_and_change_no_other_draw():
    ranges = {"few_labeled_rows": (4, 24), "few_labeled_unlabeled_rows": (60, 500)}
    plain, few = (
        config(None, missing=0.5, few_labeled=probability, **ranges).prior
        for probability in (0.0, 0.4)
    )
    rows = []
    for step in range(1000):
        ours, theirs = (draw_factors(prior, PAPER_LAST, step, 0) for prior in (plain, few))
        drawn = theirs.extensions.pop("few_labeled", None)
        if drawn:
            assert drawn == {"n_labeled": theirs.n_labeled, "n_unlabeled": theirs.n_unlabeled}
            rows.append((theirs.n_labeled, theirs.n_unlabeled))
            assert ours.n_labeled > 24
        else:
            assert theirs.n_labeled == ours.n_labeled
        assert (theirs.activations, theirs.n_features) == (ours.activations, ours.n_features)
        assert theirs.extensions == ours.extensions
    assert len(rows) == pytest.approx(400, abs=60)
    for counts, (low, high) in zip(np.transpose(rows), ranges.values(), strict=True):
        assert (counts.min() >= low) & (counts.max() <= high)
        edges = np.log([low - 0.5, high + 0.5])
        uniform = (np.log(counts) - edges[0]) / np.diff(edges)
        assert np.mean(uniform) == pytest.approx(0.5, abs=4 / np.sqrt(12 * len(rows)))
        assert np.mean(uniform < 0.25) == pytest.approx(0.25, abs=0.1)


def test_few_labelled_rows_keep_to_max_rows():
    few = {"few_labeled": 1.0, "few_labeled_unlabeled_rows": (60, 500), "eta": (0.5, 0.5)}
    prior = config({"n_labeled": (12, 30)}, max_rows=90, **few).prior
    drawn = [draw_factors(prior, PAPER_LAST, step, 0) for step in range(100)]
    rows = [f.n_labeled + f.n_unlabeled for f in drawn]
    assert max(rows) == 90
    assert min(rows) >= 64
    with pytest.raises(ValidationError, match="max_rows 80 is less than the 84 rows"):
        config({"n_labeled": (12, 30)}, max_rows=80, **few)


@pytest.mark.parametrize("kinds", list(combinations(RULE_KINDS, 7))[:2])
def test_only_the_configured_rules_are_drawn(kinds):
    batches = microbatches(
        25, {"tasks_per_microbatch": 1}, rule_labels=1.0, independent=1.0, rule_kinds=kinds
    )
    drawn = {tag["kind"] for _, tag in extended_by("rule_labels", batches)}
    assert drawn <= {*kinds}
    assert len(drawn) >= 5
