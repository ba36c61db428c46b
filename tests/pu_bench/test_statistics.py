"""Ranks and tests over tasks: worked by hand, and as scipy has them."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import wilcoxon

from pu_bench.report.statistics import (
    against,
    all_pairs,
    average_ranks,
    cliques,
    friedman,
    holm,
    paired_p,
)


def test_holm_steps_down_as_worked_out_by_hand():
    # Sorted .01, .02, .03, .3 times 4, 3, 2, 1, then never falling.
    assert holm([0.03, 0.01, 0.3, 0.02]) == pytest.approx([0.06, 0.04, 0.3, 0.06])
    assert holm([0.4, 0.9]) == pytest.approx([0.8, 0.9])
    assert holm([0.9, 0.6]).tolist() == [1.0, 1.0]  # a p-value ends at 1


def test_ranks_share_ties_and_are_means_over_tasks():
    scores = pd.DataFrame({"a": [0.9, 0.8], "b": [0.9, 0.7], "c": [0.1, 0.75]})
    assert average_ranks(scores).to_dict() == {"a": 1.25, "b": 2.25, "c": 2.5}


def test_paired_tests_are_scipys_and_alike_methods_do_not_differ():
    rng = np.random.default_rng(0)
    a, b = rng.random(20), rng.random(20)
    assert paired_p(a, b) == pytest.approx(wilcoxon(a, b).pvalue)
    assert paired_p(a, a) == 1.0
    scores = pd.DataFrame({"a": a, "b": a - 0.1, "c": a + rng.normal(0, 1e-3, 20)})
    table = against(scores, "a").set_index("method")
    assert tuple(table.loc["b", ["wins", "ties", "losses"]]) == (20, 0, 0)
    assert table.loc["b", "median"] == pytest.approx(0.1)
    assert table.loc["b", "holm"] == pytest.approx(2 * wilcoxon(np.full(20, 0.1)).pvalue)
    pairs = all_pairs(scores)
    assert pairs.loc["a", "b"] == pairs.loc["b", "a"] < 0.001
    assert pairs.loc["a", "a"] == 1.0


def test_cliques_are_the_largest_runs_in_which_no_pair_differs():
    names = list("abcd")
    p = pd.DataFrame(1.0, index=names, columns=names)
    for one, other in ("ac", "ad", "bd"):
        p.loc[one, other] = p.loc[other, one] = 0.001
    ranks = pd.Series([1.0, 2, 3, 4], index=names)
    assert cliques(ranks, p) == [(0, 1), (1, 2), (2, 3)]
    assert cliques(ranks, pd.DataFrame(1.0, index=names, columns=names)) == [(0, 3)]
    p[:] = 0.05  # which no table calls a difference either
    assert cliques(ranks, p) == [(0, 3)]
    p[:] = 0.001
    assert cliques(ranks, p) == []


def test_no_clique_holds_two_that_differ_though_neither_is_its_first():
    p = pd.DataFrame(1.0, index=list("abcd"), columns=list("abcd"))
    p.loc["b", "c"] = p.loc["c", "b"] = 0.001
    assert cliques(pd.Series([1.0, 2, 3, 4], index=list("abcd")), p) == [(0, 1), (2, 3)]


def test_holms_p_values_never_fall():
    # .01 times 3, .02 times 2, and .025, which may not be below the one before it.
    assert holm([0.025, 0.01, 0.02]) == pytest.approx([0.04, 0.03, 0.04])


def test_friedmans_test_is_of_methods_over_tasks():
    # Nine tasks that all order three methods alike: chi squared 18 with two degrees of freedom.
    scores = pd.DataFrame({"a": [0.9] * 9, "b": [0.8] * 9, "c": [0.7] * 9})
    assert friedman(scores) == pytest.approx(np.exp(-9))
    assert friedman(scores[["a", "b"]]) is None


def test_tied_tasks_stay_in_the_ranking_of_a_paired_test():
    difference = np.array([0.0, 0, 0, 0, 0.1, 0.2, -0.3, 0.4, 0.5, 0.6])
    p = paired_p(difference, np.zeros(10))
    assert p == pytest.approx(wilcoxon(difference, zero_method="pratt").pvalue)
    assert p != pytest.approx(wilcoxon(difference, zero_method="wilcox").pvalue)


def test_cliques_are_of_methods_in_the_order_of_their_ranks():
    p = pd.DataFrame(1.0, index=list("cab"), columns=list("cab"))
    p.loc["a", "c"] = p.loc["c", "a"] = 0.001
    assert cliques(pd.Series([1.0, 2, 3], index=list("abc")), p) == [(0, 1), (1, 2)]


def test_what_differs_in_the_last_bits_alone_is_a_tie():
    scores = pd.DataFrame({"a": [0.1 + 0.2] * 6 + [0.9, 0.8], "b": [0.3] * 6 + [0.1, 0.7]})
    (row,) = against(scores, "a").itertuples()
    assert (row.wins, row.ties, row.losses, row.median) == (2, 6, 0, 0.0)
    assert paired_p(scores.a.to_numpy()[:6], scores.b.to_numpy()[:6]) == 1.0
    skewed = pd.DataFrame({"a": [0.9, 0.5, 0.5], "b": [0.1, 0.4, 0.4]})
    assert against(skewed, "a")["median"].item() == pytest.approx(0.1)


def test_all_pairs_are_one_family_of_holms():
    rng = np.random.default_rng(3)
    a = rng.random(12)
    scores = pd.DataFrame(
        {name: a + rng.normal(0.05 * k, 0.05, 12) for k, name in enumerate("abc")}
    )
    pairs = ["ab", "ac", "bc"]
    raw = [paired_p(scores[one].to_numpy(), scores[other].to_numpy()) for one, other in pairs]
    told = all_pairs(scores)
    assert [told.loc[one, other] for one, other in pairs] == pytest.approx(list(holm(raw)))
    assert max(raw[0], raw[2]) < 1 / 3  # so that the correction shows


def test_ranks_tie_what_differs_in_the_last_bits_alone_as_the_paired_tests_do():
    scores = pd.DataFrame({"a": [0.1 + 0.2, 0.5], "b": [0.3, 0.4]})
    assert average_ranks(scores).to_dict() == {"a": 1.25, "b": 1.75}
    alike = pd.DataFrame({"a": [0.1 + 0.2, 0.5, 0.6], "b": [0.3, 0.4, 0.7], "c": [0.1, 0.1, 0.1]})
    assert friedman(alike) == friedman(alike.round(6))
