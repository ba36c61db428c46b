"""What an extension draws for a microbatch has the ranges and odds that the docs give."""

import numpy as np
import pytest
from extended import PAPER_LAST, config
from prior_draws import (
    ALPHA,
    assert_distributed,
    assert_happens_with_probability,
    assert_uniform_over,
)
from scipy import stats

from prior_gen.extensions import (
    censored,
    clusters,
    discrete,
    duplicated,
    factor_model,
    factorial,
    few_labeled,
    graph,
    grouped,
    independent,
    irrelevant,
    labeling,
    missing,
    noise,
    principal_axes,
    proportional,
    rules,
    soft_border,
    trees,
    two_sided,
    warped,
)
from prior_gen.extensions.drawn import some_columns
from prior_gen.factors import draw_factors


def draws(module, n=1500, d=8, earlier=None, **settings):
    """The parameters of n microbatches of d columns."""
    wanted = config(discrete=1.0, **settings).prior.extensions
    made = [module.draw(np.random.default_rng(k), wanted, d, earlier or {}) for k in range(n)]
    return [parameters for parameters in made if parameters is not None]


@pytest.mark.parametrize(
    ("module", "key", "interval"),
    [
        (clusters, "separation", (1.0, 7.0)),
        (clusters, "common", (0.2, 3.0)),
        (factor_model, "common", (0.2, 5.0)),
        (factorial, "size", (2.0, 8.0)),
        (graph, "noise", (0.03, 1.0)),
        (grouped, "size", (2.0, 30.0)),
        (grouped, "closeness", (0.03, 0.5)),
        (soft_border, "softness", (0.1, 2.0)),
    ],
)
def test_sizes_are_log_uniform(module, key, interval):
    low, high = np.log(interval)
    logs = np.log([parameters[key] for parameters in draws(module)])
    assert_distributed(logs, stats.uniform(low, high - low))


@pytest.mark.parametrize(
    ("module", "key", "interval"),
    [
        (noise, "share", (0.0, 0.2)),
        (two_sided, "center", (0.3, 0.7)),
        (grouped, "alone", (0.0, 0.6)),
    ],
)
def test_shares_are_uniform(module, key, interval):
    values = [parameters[key] for parameters in draws(module)]
    assert_distributed(values, stats.uniform(interval[0], interval[1] - interval[0]))


@pytest.mark.parametrize(
    ("module", "key", "values"),
    [
        (clusters, "clusters", range(2, 11)),
        (clusters, "spreads", ("common", "own")),
        (discrete, "layout", ("shared", "own")),
        (discrete, "order", ("ordinal", "nominal")),
        (factor_model, "factors", range(1, 5)),
        (factor_model, "score", ("linear", "network")),
        (factor_model, "of", ("columns", "own")),
        (factorial, "order", ("ordinal", "nominal")),
        (factorial, "most_levels", range(2, 7)),
        (graph, "hidden", range(2, 17)),
        (graph, "score", ("last", "anywhere")),
        (grouped, "one_class", (False, True)),
        (independent, "distribution", ("uniform", "gaussian")),
        (labeling, "by", ("score", "feature")),
        (noise, "where", ("uniform", "border")),
        (rules, "bins", range(2, 5)),
        (trees, "depth", range(1, 6)),
        (two_sided, "middle", ("positive", "negative")),
    ],
)
def test_choices_are_even(module, key, values):
    assert_uniform_over([parameters[key] for parameters in draws(module)], values)


@pytest.mark.parametrize(
    ("kind", "arities"),
    [
        ("equality", (2,)),
        ("dnf", (4,)),
        *((kind, range(2, 5)) for kind in ("parity", "conjunction", "disjunction", "product")),
        *((kind, range(3, 9)) for kind in ("count", "points", "tally", "forest")),
        *((kind, range(7, 13)) for kind in ("blocks", "logistic")),
        ("switch", (3, 6)),
        ("multiplexer", (6, 11)),
    ],
)
def test_a_rule_reads_as_many_columns_as_its_kind_has(kind, arities):
    drawn = draws(rules, d=12, rule_labels=1.0, rule_kinds=(kind,))
    assert {parameters["kind"] for parameters in drawn} == {kind}
    found = [parameters["arity"] for parameters in drawn]
    if len(arities) == 1:
        assert {*found} == {*arities}
    else:
        assert_uniform_over(found, arities)


def test_a_rule_has_no_more_columns_than_are_relevant():
    earlier = {"irrelevant": {"columns": [*range(7)]}, "duplicated": {"pairs": [[7, 8]]}}
    drawn = draws(rules, n=20, d=12, earlier=earlier, rule_labels=1.0, rule_kinds=("terms",))
    assert {parameters["arity"] for parameters in drawn} == {4}


def test_a_strength_of_labelling_has_either_sign():
    signed = [parameters["strength"] for parameters in draws(labeling)]
    assert_distributed(signed, stats.uniform(-2, 4))


def test_warps_are_of_three_kinds_and_mostly_to_the_right():
    warps = [warp for parameters in draws(warped, n=600) for warp in parameters["warps"]]
    found = {kind: np.array([w[1:] for w in warps if w[0] == kind]) for kind in warped.WARPS}
    assert_uniform_over([warp[0] for warp in warps if warp[0] != "identity"], warped.WARPS)
    for kind, low, high in (("sinh_arcsinh", 0, 1), ("exp", 0.3, 1.5)):
        assert_distributed(np.abs(found[kind][:, 0]), stats.uniform(low, high - low))
        assert_happens_with_probability((found[kind][:, 0] > 0).sum(), len(found[kind]), 0.7)
    assert_distributed(found["sinh_arcsinh"][:, 1], stats.uniform(0.5, 0.5))
    assert_distributed(found["power"][:, 0], stats.uniform(0.4, 2.6))


def test_discrete_columns_are_not_warped():
    levels = {"discrete": {"levels": [3, 0, 0, 2]}}
    for parameters in draws(warped, d=4, earlier=levels):
        kinds = [kind for kind, _, _ in parameters["warps"]]
        assert kinds[0] == kinds[3] == "identity"


def test_a_fifth_of_the_limits_are_ceilings_and_each_column_has_its_own():
    drawn = draws(censored)
    shares = np.array([share for parameters in drawn for share in parameters["shares"] if share])
    assert_distributed(np.abs(shares), stats.uniform(0.1, 0.8))
    assert_happens_with_probability((shares < 0).sum(), len(shares), 0.2)
    for parameters in drawn:
        cut = [abs(share) for share in parameters["shares"] if share]
        assert len({*cut}) >= len(cut) - 1


def test_half_of_the_shares_of_levels_are_uneven_and_of_two_the_yes_is_rare():
    drawn = draws(discrete, levels=(2, 2))
    pairs = [p["shares"][0] for p in drawn if p["layout"] == "shared"]
    rare = [yes for _, yes in pairs if yes != 0.5]
    assert_happens_with_probability(len(rare), len(pairs), 0.5)
    assert_distributed(rare, stats.uniform(0.05, 0.35))
    uneven = [p["shares"][0] for p in draws(discrete, levels=(5, 5)) if p["layout"] == "shared"]
    uneven = [shares for shares in uneven if shares != [0.2] * 5]
    assert all(min(shares) >= 0.3 / 5 - 1e-4 for shares in uneven)
    assert np.mean([max(shares) for shares in uneven]) > 0.3


def test_layout_own_leaves_columns_continuous():
    own = [p["levels"] for p in draws(discrete) if p["layout"] == "own"]
    binned = np.mean([np.count_nonzero(levels) for levels in own]) / 8
    assert binned == pytest.approx(0.65 + 0.35 / 8, abs=0.03)
    assert min(np.count_nonzero(levels) for levels in own) == 1


def test_copies_are_exact_half_of_the_time_and_of_columns_that_are_none():
    drawn = draws(duplicated)
    noises = [parameters["noise"] for parameters in drawn]
    near = [size for size in noises if size]
    assert_happens_with_probability(len(near), len(noises), 0.5)
    assert_distributed(near, stats.uniform(0.02, 0.38))
    for parameters in drawn:
        originals, copies = zip(*parameters["pairs"], strict=True)
        assert not {*originals} & {*copies}
        assert len({*copies}) == len(copies)
    for parameters in draws(duplicated, n=100, earlier={"irrelevant": {"columns": [0, 1, 2]}}):
        assert all(column > 2 for pair in parameters["pairs"] for column in pair)


@pytest.mark.parametrize(
    ("module", "low", "high"), [(irrelevant, 0.1, 0.6), (duplicated, 0.05, 0.3)]
)
def test_the_share_of_columns_is_the_configured_one(module, low, high):
    key = "columns" if module is irrelevant else "pairs"
    counts = [len(parameters[key]) for parameters in draws(module, d=100)]
    assert (min(counts), max(counts)) == (100 * low, 100 * high)
    assert np.mean(counts) == pytest.approx(50 * (low + high), rel=0.05)


@pytest.mark.parametrize(("share", "count"), [(0.01, 1), (0.5, 2), (0.99, 3)])
def test_of_some_columns_at_least_one_is_drawn_and_one_is_left(share, count):
    rng, columns = np.random.default_rng(0), np.array([1, 3, 4, 6])
    chosen = some_columns(rng, (share, share), columns)
    assert len({*chosen} & {*columns.tolist()}) == len(chosen) == count
    assert some_columns(rng, (share, share), columns[:1]) == []


@pytest.mark.parametrize("module", [duplicated, irrelevant, principal_axes, proportional])
def test_what_needs_two_columns_is_left_out_where_there_is_one(module):
    assert draws(module, n=20, d=1) == []
    assert len(draws(module, n=20, d=2)) == 20


def test_few_labelled_rows_are_as_often_either_end_as_log_uniform_counts_are():
    wanted = config(few_labeled=1.0, few_labeled_rows=(4, 6)).prior.extensions
    rng = np.random.default_rng(0)
    drawn = [few_labeled.draw(rng, wanted)["n_labeled"] for _ in range(3000)]
    shares = np.diff(np.log([3.5, 4.5, 5.5, 6.5])) / np.log(6.5 / 3.5)
    found = np.bincount(drawn, minlength=7)[4:]
    assert found.sum() == 3000
    assert stats.chisquare(found, 3000 * shares).pvalue > ALPHA


def test_blanks_are_in_some_columns_by_shares_of_their_own():
    drawn = draws(missing)
    shares = [share for parameters in drawn for share in parameters["shares"] if share]
    assert_distributed(shares, stats.uniform(0.02, 0.28))
    complete = np.mean([0.0 in parameters["shares"] for parameters in drawn])
    assert complete > 0.7


@pytest.mark.parametrize(
    ("module", "key"), [(warped, "warps"), (censored, "shares"), (missing, "shares")]
)
def test_a_fifth_of_the_columns_to_all_are_affected_and_one_at_least(module, key):
    drawn = [parameters[key] for parameters in draws(module)]
    counts = [sum(one not in (0.0, warped.IDENTITY) for one in columns) for columns in drawn]
    assert {*counts} == {*range(1, 9)}
    assert np.mean(counts) / 8 == pytest.approx(0.6 + 0.4 / 8, abs=0.03)


def test_common_sizes_are_log_uniform_with_a_factor_a_column():
    drawn = draws(proportional)
    counts = [len(parameters["columns"]) for parameters in drawn]
    assert_uniform_over(counts, range(2, 9))
    logs = [np.log(parameters["loadings"][0]) for parameters in drawn]
    rng = np.random.default_rng(0)
    expected = np.log(20) * rng.random(20_000) + np.log(rng.uniform(0.5, 1.5, 20_000))
    assert stats.ks_2samp(logs, expected).pvalue > ALPHA
    ratios = [p["loadings"][0] / p["loadings"][1] for p in drawn]
    assert 2 < max(ratios) <= 3.01


def test_rows_of_a_group_are_alike_in_some_columns_and_near_in_the_others():
    drawn = draws(grouped, group_closeness=(0.1, 0.1))
    spreads = np.array([parameters["spreads"] for parameters in drawn])
    assert (spreads == 0).mean() == pytest.approx(0.35, abs=0.02)
    assert_distributed(spreads[spreads > 0], stats.uniform(0.03, 0.14))
    # None is farther from its group's head than it was.
    loose = [
        max(parameters["spreads"]) for parameters in draws(grouped, group_closeness=(0.9, 0.9))
    ]
    assert max(loose) == 1


def test_a_shallow_scm_has_any_of_the_configured_numbers_of_layers():
    prior = config(shallow=1.0, shallow_layers=(2, 4)).prior
    layers = [draw_factors(prior, PAPER_LAST, step, 0).hidden_layers for step in range(300)]
    assert_uniform_over(layers, (2, 3, 4))


def test_extended_microbatches_are_causal_and_held_out_like_the_others():
    prior = config(None, missing=1.0, sar=0.5).prior
    train, heldout = (
        [draw_factors(prior, PAPER_LAST, step, 0, split) for step in range(300)]
        for split in ("train", "heldout")
    )
    causal = sum(factors.causal for factors in train)
    assert_happens_with_probability(causal, 300, 0.5)
    same = [a.extensions == b.extensions for a, b in zip(train, heldout, strict=True)]
    assert not any(same)
