"""What a stage has: its ranges of eta, pi and causal tasks, and one architecture."""

from fractions import Fraction

import numpy as np
import pytest
import reference_prior as reference
from prior_draws import (
    PRIOR,
    TWO_TASKS,
    K,
    assert_distributed,
    assert_happens_with_probability,
    assert_uniform_over,
    small_microbatches,
)
from scipy import stats

from prior_gen.curriculum import stage_ranges
from prior_gen.factors import draw_architecture, draw_factors
from puicl_config import PriorConfig


@pytest.mark.parametrize("stage", [1, 2, 50, 99, 100, 101, 134])
def test_stage_ranges_are_the_papers_linear_schedule_and_the_tail_is_held_at_stage_k(stage):
    ranges = stage_ranges(PRIOR, stage)
    half, two, tenth = Fraction(1, 2), Fraction(2), Fraction(1, 10)
    eta = reference.stage_interval(stage, 100, (1, 1), (half, two))
    pi = reference.stage_interval(stage, 100, (half, half), (tenth, 1 - tenth))
    assert ranges.eta == pytest.approx([float(end) for end in eta], abs=1e-12)
    assert ranges.pi == pytest.approx([float(end) for end in pi], abs=1e-12)
    assert ranges.p_causal == pytest.approx(
        float(reference.causal_probability(stage, 100)), abs=1e-12
    )


def test_the_ends_of_the_curriculum_are_exactly_the_configured_values():
    first, last, tail = (stage_ranges(PRIOR, stage) for stage in (1, 100, 134))
    assert (first.eta, first.pi, first.p_causal) == ((1.0, 1.0), (0.5, 0.5), 0.005)
    assert (last.eta, last.pi, last.p_causal) == ((0.5, 2.0), (0.1, 0.9), 0.5)
    assert tail == last


def test_a_curriculum_of_one_stage_is_its_own_last_stage():
    ranges = stage_ranges(PriorConfig(stages=1), 1)
    assert (ranges.eta, ranges.pi, ranges.p_causal) == ((0.5, 2.0), (0.1, 0.9), 0.5)


@pytest.mark.parametrize("stage", [1, 30, 70, 100, 134])
def test_causal_happens_with_probability_s_over_2k(stage):
    hits = sum(draw_factors(PRIOR, stage, step, 1).causal for step in range(6000))
    assert_happens_with_probability(hits, 6000, reference.causal_probability(stage, K))


@pytest.mark.parametrize("stage", [2, 50, 100, 120])
def test_eta_is_uniform_on_the_stages_interval_and_fixes_n_u(stage):
    drawn = [draw_factors(PRIOR, stage, step, 0) for step in range(3000)]
    low, high = reference.stage_interval(stage, K, (1, 1), (Fraction(1, 2), 2))
    assert_distributed([f.eta for f in drawn], stats.uniform(float(low), float(high - low)))
    for factors in drawn:
        exact = reference.unlabeled_size(factors.n_labeled, Fraction(factors.eta))
        assert factors.n_unlabeled == exact


def test_the_first_stage_has_eta_one_and_pi_one_half():
    for step in range(200):
        factors = draw_factors(PRIOR, 1, step, 0)
        assert factors.eta == 1.0
        assert factors.n_unlabeled == factors.n_labeled
        assert factors.pi == (0.5, 0.5)


@pytest.mark.parametrize("stage", [50, 100, 110])
def test_pi_is_drawn_once_a_task_uniformly_on_the_stages_interval(stage):
    drawn = np.array([microbatch.tags["pi"] for microbatch in small_microbatches(stage, 100)])
    assert drawn.shape == (100, 24)
    low, high = reference.stage_interval(stage, K, (Fraction(1, 2),) * 2, ("1/10", "9/10"))
    assert_distributed(drawn.ravel(), stats.uniform(float(low), float(high - low)))
    assert len(np.unique(drawn)) == drawn.size


def test_pi_may_be_drawn_once_a_microbatch_instead():
    drawn = np.array(
        [m.tags["pi"] for m in small_microbatches(K, 400, pi_drawn_per="microbatch", **TWO_TASKS)],
    )
    assert (drawn == drawn[:, :1]).all()
    assert_distributed(drawn[:, 0], stats.uniform(0.1, 0.8))


def test_the_architecture_is_uniform_over_depths_and_widths_jointly():
    drawn = [draw_architecture(PRIOR, stage) for stage in range(1, 10_001)]
    assert_uniform_over(drawn, [(depth, h) for depth in range(4, 13) for h in range(12, 37)])


@pytest.mark.parametrize("split", ["train", "heldout"])
def test_the_architecture_is_constant_within_a_stage_and_changes_between_stages(split):
    shapes = set()
    for stage in range(1, 31):
        drawn = {
            (factors.hidden_layers, factors.hidden_width)
            for step in (0, 1, 374, 749)
            for index in (0, 1)
            for factors in [draw_factors(PRIOR, stage, step, index, split)]
        }
        assert drawn == {draw_architecture(PRIOR, stage, split)}
        shapes |= drawn
    assert len(shapes) > 20


def test_a_causal_pool_too_small_raises_h_to_the_least_that_fits():
    prior = PriorConfig(hidden_layers=(2, 6), hidden_width=(1, 5), p_causal_final=1.0)
    raised = 0
    for stage in range(K, K + 400):
        factors = draw_factors(prior, stage, 0, 0)
        layers, width = draw_architecture(prior, stage)
        needed = reference.smallest_width(factors.n_features, layers)
        assert factors.hidden_width == max(width, needed)
        raised += needed > width
    assert 100 < raised < 400


def test_noncausal_microbatches_keep_a_small_h():
    prior = PriorConfig(hidden_layers=(2, 2), hidden_width=(3, 3), p_causal_final=0.0)
    assert {draw_factors(prior, K, step, 0).hidden_width for step in range(50)} == {3}
