"""What a task draws for its SCM: weights, causes, noise."""

import math

import numpy as np
import pytest
from prior_draws import K, assert_distributed
from scipy import stats

from prior_gen import scm
from prior_gen.factors import draw_factors
from prior_gen.scm import draw_scm
from puicl_config import PriorConfig


def draws_of(stage, n_tasks, n=50, **changes):
    prior = PriorConfig(**changes)
    for step in range(n_tasks):
        factors = draw_factors(prior, stage, step, 0)
        yield factors, draw_scm(np.random.default_rng(step), prior, factors, n)


def test_weights_are_normal_with_the_papers_spread_in_every_matrix():
    drawn = [draws for _, draws in draws_of(1, 60, p_causal_final=0.0)]
    for name in ("input_weight", "hidden_weights", "readouts"):
        pooled = np.concatenate([getattr(draws, name).ravel() for draws in drawn])
        assert pooled.size > 4000
        assert_distributed(pooled, stats.norm(0, 0.8))
        assert len(np.unique(pooled)) > 0.99 * pooled.size
    pooled = np.concatenate([draws.readouts[-1] for draws in drawn])
    assert_distributed(pooled, stats.norm(0, 0.8))
    wide = [draws.input_weight.ravel() for _, draws in draws_of(1, 60, sigma_init=2.5)]
    assert_distributed(np.concatenate(wide), stats.norm(0, 2.5))


@pytest.mark.parametrize(
    ("inputs", "distribution"), [("gaussian", stats.norm()), ("uniform", stats.uniform())]
)
def test_causes_follow_the_input_distribution(inputs, distribution):
    changes = {"input_distributions": (inputs,), "n_features": (6, 6)}
    drawn = [draws.causes for _, draws in draws_of(K, 60, n=100, **changes)]
    assert {causes.shape for causes in drawn} == {(100, 6)}
    pooled = np.concatenate(drawn).astype(np.float64)
    assert_distributed(pooled.ravel(), distribution)
    correlation = np.corrcoef(pooled.T)[np.triu_indices(6, 1)]
    assert np.abs(correlation).max() < 5 / math.sqrt(len(pooled))


def test_noise_is_normal_with_its_level_and_fresh_in_every_layer_row_and_unit():
    for sigma in (0.005, 0.01, 0.02):
        pooled = []
        for factors, draws in draws_of(K, 12, n=80, sigma_noise=(sigma,)):
            shape = (factors.hidden_layers - 1, 80, factors.hidden_width)
            assert np.stack(draws.noise).shape == shape
            assert factors.sigma_noise == sigma
            pooled.append(np.ravel(draws.noise))
        pooled = np.concatenate(pooled)
        assert_distributed(pooled, stats.norm(0, sigma))
        assert len(np.unique(pooled)) > 0.98 * pooled.size


def test_a_causal_scm_has_no_readout_heads_and_all_draws_are_float32():
    seen = set()
    for factors, draws in draws_of(K, 40):
        assert (draws.readouts is None) == factors.causal
        seen.add(factors.causal)
        arrays = (draws.input_weight, draws.hidden_weights, draws.causes, draws.noise[0])
        assert {array.dtype for array in arrays} == {np.dtype(np.float32)}
        d, k, h = factors.n_features, factors.n_causes, factors.hidden_width
        blocks = factors.hidden_layers - 1
        assert draws.input_weight.shape == (h, k)
        assert draws.hidden_weights.shape == (blocks, h, h)
        assert factors.causal or draws.readouts.shape == (d + 1, h)
    assert seen == {True, False}


@pytest.mark.parametrize("inputs", ["gaussian", "uniform"])
def test_every_array_of_an_scm_has_a_stream_of_its_own(inputs, monkeypatch):
    seen = []

    def spied(real):
        def draw(key, stream, *rest):
            seen.append(stream)
            return real(key, stream, *rest)

        return draw

    for name in ("normals", "uniforms"):
        monkeypatch.setattr(scm, name, spied(getattr(scm, name)))
    prior = PriorConfig(p_causal_final=0.0, input_distributions=(inputs,))
    draws = draw_scm(np.random.default_rng(0), prior, draw_factors(prior, K, 0, 0), 20)
    assert len([*draws.noise]) + 4 == len(seen) == len({*seen})
