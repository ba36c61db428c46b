"""Values are finite and clipped, whatever the SCM does."""

import numpy as np
import pytest
from prior_draws import TWO_TASKS, K, small_config

from prior_gen import generate_microbatch
from prior_gen.generator import generate_shards
from puicl_config import Config
from shard_io import ShardError


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


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_all_the_same_is_no_shard(tiny, tmp_path, monkeypatch, value):
    def spoilt(*arguments):
        batch = generate_microbatch(*arguments)
        batch.x[0, 0, 0] = value
        return batch

    monkeypatch.setattr("prior_gen.generator.generate_microbatch", spoilt)
    with pytest.raises(ShardError, match=r"microbatch \(1, 0, 0\) has features that are not fin"):
        generate_shards(tiny, tmp_path / "s", [1], jobs=1)
    assert not list((tmp_path / "s" / "entries").glob("*"))


def test_the_largest_sizes_that_a_plan_may_have_are_finite():
    most = {"share": 1.0, "graph": 0.2, "graph_noise": (1e6, 1e6), "factor_model": 0.2}
    most |= {"factor_common": (1e6, 1e6), "cluster_labels": 0.2, "cluster_common": (1e6, 1e6)}
    most |= {"cluster_separation": (1e6, 1e6), "proportional": 0.5, "softness": (1e6, 1e6)}
    most |= {"proportional_size": (1e6, 1e6), "soft_border": 0.5}
    prior = {"n_labeled": (12, 30), "tasks_per_microbatch": 4, "sigma_noise": (1e6,)}
    config = Config(prior={**prior, "sigma_init": 100.0, "extensions": most})
    for step in range(60):
        assert np.isfinite(generate_microbatch(config, 100, step, 0).x).all()


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
