"""Sweeps: tasks of the composition asked for, from pools, the same for every method."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from little_runs import make_pool

from pu_bench import command
from pu_bench.data import Table
from pu_bench.run.cells import rows_digest
from pu_bench.sweeps import (
    SWEEPS,
    Composition,
    Pool,
    draw,
    shard_pools,
    table_pools,
)
from pu_bench.sweeps.runner import split_of
from puicl_config import InputError, load_config
from shard_io import open_shards


@pytest.mark.parametrize(
    "wanted",
    [
        Composition(),
        Composition(n_labeled=5, eta=40),
        Composition(n_labeled=300, eta=2 / 3),
        Composition(prior=0.1),
        Composition(prior=0.9, eta=8),
        Composition(n_features=2),
        Composition(bias=4, bias_by="feature"),
    ],
)
def test_a_drawn_task_has_the_composition_asked_for(wanted):
    pool = make_pool()
    task = draw(pool, wanted, np.random.default_rng(1))
    n_unlabeled = round(wanted.n_labeled * wanted.eta)
    assert (task.n_labeled, len(task.y)) == (wanted.n_labeled, n_unlabeled)
    assert task.y.mean() == pytest.approx(wanted.prior, abs=0.5 / n_unlabeled)
    assert task.x.shape[1] == (wanted.n_features or 4)
    if not wanted.n_features:
        rows = task.x[:, -1].astype(int)
        assert len(set(rows)) == len(rows)
        assert pool.positive[rows[: task.n_labeled]].all()
        np.testing.assert_array_equal(pool.positive[rows[task.n_labeled :]], task.y == 1)


def test_a_pool_too_small_is_left_out_of_a_sweep_and_refused_by_draw():
    small = make_pool(n=150)
    values = [
        value for value in SWEEPS["labeled"].values if SWEEPS["labeled"].pools(value, [small])
    ]
    assert values == [5, 10, 20, 50]
    with pytest.raises(ValueError, match="too small"):
        draw(small, Composition(n_labeled=100), np.random.default_rng(0))


def test_labelling_leans_on_the_score_as_strongly_as_asked():
    pool = Pool("p", "real", make_pool().x[:, :3], make_pool().positive)
    shift = {}
    for bias in (0.0, 1.0, 4.0):
        tasks = [
            draw(pool, Composition(bias=bias), np.random.default_rng(seed)) for seed in range(8)
        ]
        labeled = np.mean([task.P[:, 0].mean() for task in tasks])
        hidden = np.mean([task.U[task.y == 1, 0].mean() for task in tasks])
        shift[bias] = labeled - hidden
    assert abs(shift[0.0]) < 0.15
    # exp(z) shifts a normal score by one standard deviation.
    assert shift[1.0] == pytest.approx(1.0, abs=0.3)
    assert shift[4.0] > 1.5


def test_a_rows_odds_to_be_labelled_are_e_to_the_bias_times_z():
    # Half of the positives are one standard deviation above their mean, the others one below.
    x = np.repeat([1.0, 3.0, 0.0], 500)[:, np.newaxis]
    pool = Pool("p", "real", x, np.arange(1500) < 1000)
    wanted = Composition(n_labeled=5, bias=1.0, bias_by="feature")
    tasks = [draw(pool, wanted, np.random.default_rng(seed)) for seed in range(100)]
    above = np.mean([(task.P == 3.0).mean() for task in tasks])
    assert above == pytest.approx(np.e / (np.e + 1 / np.e), abs=0.05)


def test_labelling_by_a_feature_leans_on_that_feature_alone():
    pool = Pool("p", "real", make_pool().x[:, :3], make_pool().positive)
    shifts = []
    for seed in range(6):
        task = draw(pool, Composition(bias=2, bias_by="feature"), np.random.default_rng(seed))
        gap = task.P.mean(axis=0) - task.U[task.y == 1].mean(axis=0)
        shifts.append(np.sort(gap))
    assert np.mean([gap[-1] for gap in shifts]) > 1.2
    assert abs(np.mean([gap[:-1] for gap in shifts])) < 0.2


def test_values_of_a_sweep_start_from_the_same_random_numbers():
    pool = make_pool()
    some, more = (split_of(pool, Composition(n_labeled=n), 0) for n in (50, 100))
    assert set(some.P[:, -1]) < set(more.P[:, -1])
    assert rows_digest(some.P, some.U) == rows_digest(
        *(lambda t: (t.P, t.U))(split_of(pool, Composition(n_labeled=50), 0))
    )


def test_only_tables_with_a_thousand_rows_of_each_class_are_pools():
    def table(positives, negatives):
        positive = np.arange(positives + negatives) < positives
        return Table("t", "T", np.zeros((len(positive), 1)), positive, ("a",), "")

    assert len(table_pools([table(1000, 1000), table(5000, 999), table(999, 5000)])) == 1


def test_pools_of_shards_hold_every_row_of_every_task(heldout):
    pools, digest = shard_pools(str(heldout))
    reader = open_shards(heldout)
    assert digest == reader.manifest.plan_digest
    assert len(pools) == 2 * 3 * 2  # steps, microbatches, tasks
    microbatch = reader[2, 0, 0]
    pool = next(pool for pool in pools if pool.name == "2.0.0.1")
    np.testing.assert_array_equal(pool.x, microbatch.x[1].astype(float))
    assert pool.positive[: microbatch.n_labeled].all()
    np.testing.assert_array_equal(pool.positive[microbatch.n_labeled :], microbatch.y[1] == 1)


def test_shards_that_networks_are_trained_on_are_refused(all_shards):
    with pytest.raises(InputError, match="trained on"):
        shard_pools(str(all_shards))


def test_missing_shards_are_told_with_their_command_before_any_table_is_looked_for(monkeypatch):
    monkeypatch.setattr(command, "make_plan", None)
    options = (None, "nowhere", None, None, 1, Path("out"), None, None)
    with pytest.raises(InputError, match=r"nowhere holds no shards: .*; make some with: prior"):
        command.sweep("pi", *options)


def test_the_committed_config_gives_enough_rows_and_features_for_every_sweep():
    prior = load_config("bench").prior
    n, eta = prior.n_labeled[0], prior.eta_final[0]
    hidden = n * eta * prior.pi_final[0]
    pool = Pool(
        "p", "synthetic", np.zeros((int(n + n * eta), 8)), np.arange(n + n * eta) < n + hidden
    )
    for sweep in SWEEPS.values():
        for value in sweep.values:
            if sweep.feature_ranges is None:
                assert sweep.pools(value, [pool]), (sweep.name, value)
    ranges = SWEEPS["features"].feature_ranges
    assert (ranges[0][0], ranges[-1][1]) == prior.n_features


def pool_of(d, kind="synthetic"):
    rng = np.random.default_rng(0)
    return Pool(f"{d}", kind, rng.normal(size=(2000, d)), np.arange(2000) < 1000)


def test_synthetic_tasks_have_usual_numbers_of_features_unless_these_are_varied():
    pools = [pool_of(d) for d in (4, 5, 20, 21)]
    assert [pool.name for pool, _ in SWEEPS["pi"].pools(0.5, pools)] == ["5", "20"]
    varied = SWEEPS["features"].pools(4, pools)
    assert [pool.name for pool, _ in varied] == ["4", "5"]
    assert {wanted.n_features for _, wanted in varied} == {None}  # each keeps all of its own
    ((_, wanted),) = SWEEPS["labeled"].pools(20, [pool_of(5)])
    assert (wanted.n_labeled, wanted.n_unlabeled) == (20, (100, 100))


@pytest.mark.parametrize(
    ("sweep", "value", "drawn"),
    [
        ("pi", 0.3, (100, (60, 140), None, 0, "score")),
        ("labeled", 50, (50, (100, 100), None, 0, "score")),
        ("eta", 4, (100, (200, 200), None, 0, "score")),
        ("features", 4, (100, (100, 100), 4, 0, "score")),
        ("scar_score", 2, (100, (100, 100), None, 2, "score")),
        ("scar_feature", 2, (100, (100, 100), None, 2, "feature")),
    ],
)
def test_a_sweep_varies_what_its_axis_says_and_nothing_else(sweep, value, drawn):
    ((_, wanted),) = SWEEPS[sweep].pools(value, [pool_of(6, "real")])
    n_labeled, unlabeled, n_features, bias, by = drawn
    assert (wanted.n_labeled, wanted.n_unlabeled) == (n_labeled, unlabeled)
    assert (wanted.n_features, wanted.bias, wanted.bias_by) == (n_features, bias, by)


def test_the_columns_the_rows_order_and_the_labelling_feature_are_drawn():
    pool = pool_of(6)
    plain = Composition(n_features=2)
    tasks = [draw(pool, plain, np.random.default_rng(seed)) for seed in range(6)]
    whole = [draw(pool, Composition(), np.random.default_rng(seed)) for seed in range(6)]
    columns = {
        tuple(np.flatnonzero((all_of.x[0] == part.x[0, :, None]).any(axis=0)))
        for part, all_of in zip(tasks, whole, strict=True)
    }
    assert len(columns) > 2
    assert 0.3 < np.mean([task.y[: len(task.y) // 2].mean() for task in whole]) < 0.7
    leaning = Composition(bias=3, bias_by="feature")
    most = set()
    for seed in range(8):
        task = draw(pool, leaning, np.random.default_rng(seed))
        most.add(int((task.P.mean(axis=0) - task.U[task.y == 1].mean(axis=0)).argmax()))
    assert len(most) > 2


def test_an_unlabelled_row_of_each_class_is_always_drawn():
    for prior, eta in ((0.01, 0.5), (0.99, 0.5), (0.5, 0.1)):
        assert Composition(n_labeled=4, eta=eta, prior=prior).n_unlabeled == (1, 1)


def test_some_of_a_pools_columns_keep_their_order():
    pool = Pool("p", "real", np.tile(np.arange(9.0), (300, 1)), np.arange(300) < 200)
    wanted = Composition(n_labeled=20, n_features=5)
    for seed in range(3):
        assert (np.diff(draw(pool, wanted, np.random.default_rng(seed)).x) > 0).all()
    assert not dataclasses.replace(wanted, n_features=10).fits(pool)


def test_labelling_leans_on_a_feature_that_tells_positives_apart():
    x = np.random.default_rng(0).normal(size=(2000, 5))
    x[:1000, 1:] = 0.0  # where all positives are alike
    pool = Pool("p", "real", x, np.arange(2000) < 1000)
    for seed in range(4):
        task = draw(pool, Composition(bias=3, bias_by="feature"), np.random.default_rng(seed))
        assert task.P[:, 0].mean() - task.U[task.y == 1, 0].mean() > 1


@pytest.mark.parametrize("by", ["score", "feature"])
def test_of_positives_that_are_all_alike_any_are_labelled(by):
    x = np.zeros((400, 2))
    x[200:] = np.random.default_rng(0).normal(size=(200, 2))
    pool = Pool("p", "real", x, np.arange(400) < 200)
    with np.errstate(all="raise"):
        task = draw(pool, Composition(bias=2, bias_by=by), np.random.default_rng(0))
    assert (task.n_labeled, len(task.y)) == (100, 200)


def test_a_pool_fits_to_its_last_row():
    pool = Pool("p", "real", np.zeros((300, 1)), np.arange(300) < 200)
    assert Composition().fits(pool)
    assert not Composition(n_labeled=101).fits(pool)
    assert not Composition(prior=0.49).fits(pool)


def test_every_pool_and_every_repeat_of_a_real_one_is_another_draw():
    pool, second = (
        Pool(name, "real", np.arange(2000.0)[:, None], np.arange(2000) < 1000) for name in "pq"
    )
    first, again, other = (split_of(pool, Composition(), repeat) for repeat in (0, 0, 1))
    np.testing.assert_array_equal(first.x, again.x)
    assert not np.array_equal(first.P, other.P)
    assert not np.array_equal(first.P, split_of(second, Composition(), 0).P)
