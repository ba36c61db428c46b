"""Values are finite and clipped, whatever the SCM does."""

import numpy as np
import pytest
from prior_draws import TWO_TASKS, K, small_config

from prior_gen import generate_microbatch
from puicl_config import Config


@pytest.mark.parametrize(
    "changes",
    [{}, {"activations": ("square",)}, {"activations": ("square", "abs", "identity")}]
    + [{"activations": (name,)} for name in ("sign", "step", "rbf", "sin", "gelu")],
    ids=lambda changes: "-".join(changes.get("activations", ["all"])),
)
def test_no_nan_or_infinity_and_nothing_beyond_20_at_many_stages(changes):
    config = small_config(**TWO_TASKS, **changes)
    largest = 0.0
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        for stage in range(1, 135):
            x = generate_microbatch(config, stage, stage % 7, stage % 2).x
            assert np.isfinite(x).all()
            largest = max(largest, float(np.abs(x).max()))
    assert 1 < largest <= 20


def test_the_clip_is_reached_but_not_passed():
    config = Config(prior={"activations": ("square",), "tasks_per_microbatch": 2})
    largest = [
        np.abs(generate_microbatch(config, stage, 0, 0).x).max() for stage in range(100, 130)
    ]
    assert max(largest) == 20.0


def test_columns_that_end_constant_are_zero_and_have_no_nan():
    config = small_config(
        sigma_noise=(0.0,),
        sigma_init=1e-5,
        activations=("rbf",),  # exp(-x^2) is 1 for every x this small
        noncausal_sources=("head",),
    )
    constant = 0
    for step in range(40):
        microbatch = generate_microbatch(config, K, step, 0)
        assert np.isfinite(microbatch.x).all()
        for x in microbatch.x:
            same = (x == x[0]).all(axis=0)
            assert (x[:, same] == 0).all()
            constant += int(same.sum())
        assert (microbatch.y.sum(axis=1) > 0).all()
        assert (microbatch.y.sum(axis=1) < microbatch.y.shape[1]).all()
    assert constant > 100


def test_a_clamp_that_cannot_keep_float32_finite_is_refused_or_harmless():
    try:
        config = small_config(state_clamp=1e25, activations=("square",))
    except ValueError:
        return
    with np.errstate(all="ignore"):
        finite = [np.isfinite(generate_microbatch(config, K, step, 0).x).all() for step in range(9)]
    assert finite == [True] * 9
