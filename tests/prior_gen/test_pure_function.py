"""A task is a pure function of (root seed, split, stage, step, index, task) and `prior`."""

import os
import random
import subprocess
import sys
from itertools import combinations, product

import numpy as np
import pytest
import torch
from threadpoolctl import threadpool_info, threadpool_limits

import prior_gen.extensions.pool as pool_module
import prior_gen.microbatch as microbatch_module
from prior_gen import generate_microbatch
from prior_gen.canary import canary_digest
from prior_gen.factors import draw_architecture, draw_factors
from prior_gen.scm import draw_scm
from prior_gen.seeding import microbatch_generator, stage_generator, task_generator
from puicl_config import Config, InputError, PriorConfig, config_yaml
from puicl_config.digests import PRIOR_ALGORITHM

SMALL = {"n_labeled": (12, 30), "tasks_per_microbatch": 4}
CONFIG = Config(prior=SMALL)
ADDRESSES = [(1, 0, 0), (1, 0, 1), (1, 1, 0), (2, 0, 0), (57, 749, 1), (100, 3, 0), (134, 249, 1)]


def digest(address, config=CONFIG, split="train"):
    return generate_microbatch(config, *address, split=split).digest().hex()


@pytest.fixture(scope="module")
def digests():
    return {address: digest(address) for address in ADDRESSES}


def test_the_same_address_gives_the_same_bytes_in_any_order(digests):
    for address in reversed(ADDRESSES):
        first, second = (generate_microbatch(CONFIG, *address) for _ in range(2))
        assert first.digest() == second.digest()
        assert first.digest().hex() == digests[address]
        np.testing.assert_array_equal(first.x, second.x)
        np.testing.assert_array_equal(first.y, second.y)
        assert first.tags == second.tags


@pytest.mark.parametrize("global_seed", [0, 1, 12345])
def test_global_seeds_change_nothing(digests, global_seed):
    random.seed(global_seed)
    np.random.seed(global_seed)  # noqa: NPY002
    torch.manual_seed(global_seed)
    assert {address: digest(address) for address in ADDRESSES} == digests


def test_no_global_random_state_is_touched():
    # States that no code would set by itself.
    random.seed(918273)
    np.random.seed(918273)  # noqa: NPY002
    torch.manual_seed(918273)
    before = random.getstate(), np.random.get_state(), torch.random.get_rng_state()  # noqa: NPY002
    for address in ADDRESSES:
        digest(address)
    after = random.getstate(), np.random.get_state(), torch.random.get_rng_state()  # noqa: NPY002
    assert before[0] == after[0]
    assert before[1][2:] == after[1][2:]
    np.testing.assert_array_equal(before[1][1], after[1][1])
    assert torch.equal(before[2], after[2])


def test_another_process_with_other_threads_and_hash_seed_gives_the_same_bytes(digests, tmp_path):
    (tmp_path / "config.yaml").write_text(config_yaml(CONFIG))
    program = (
        "import sys\n"
        f"sys.path[:0] = {[path for path in sys.path if path]!r}\n"
        "from prior_gen import generate_microbatch\n"
        "from puicl_config import load_config\n"
        f"config = load_config({str(tmp_path / 'config.yaml')!r})\n"
        f"for address in {ADDRESSES[::2]!r}:\n"
        "    print(generate_microbatch(config, *address).digest().hex())\n"
    )
    threads = {"OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2", "MKL_NUM_THREADS": "2"}
    result = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **threads, "PYTHONHASHSEED": "7"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout.split() == [digests[address] for address in ADDRESSES[::2]]


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_blas_has_one_thread_while_tasks_and_canary_are_made(share, monkeypatch):
    seen = []

    def spy(*arguments):
        libraries = [library for library in threadpool_info() if library["user_api"] == "blas"]
        seen.extend(one["num_threads"] for one in libraries if "numpy" in one["filepath"])
        return draw_scm(*arguments)

    for module in (microbatch_module, pool_module):
        monkeypatch.setattr(module, "draw_scm", spy)
    config = Config(prior={**SMALL, "extensions": {"share": share, "missing": 1.0}})
    with threadpool_limits(2, "blas"):
        generate_microbatch(config, 100, 0, 0)
        canary_digest(config.prior)
    if not seen:
        pytest.skip("numpy's BLAS is none whose threads can be counted")
    assert {*seen} == {1}


def test_a_task_depends_neither_on_its_neighbours_nor_on_how_many_there_are():
    one, four, six = (
        generate_microbatch(Config(prior={**SMALL, "tasks_per_microbatch": n}), 100, 5, 1)
        for n in (1, 4, 6)
    )
    for fewer, more in [(one, four), (four, six)]:
        n = len(fewer.x)
        np.testing.assert_array_equal(fewer.x, more.x[:n])
        np.testing.assert_array_equal(fewer.y, more.y[:n])
        assert fewer.tags["pi"] == more.tags["pi"][:n]


def test_the_stored_dtype_does_not_change_the_task():
    half = generate_microbatch(CONFIG, 100, 5, 0)
    single = generate_microbatch(Config(prior=SMALL, shards={"x_dtype": "float32"}), 100, 5, 0)
    assert single.x.dtype == np.float32
    np.testing.assert_array_equal(half.x, single.x.astype(np.float16))
    np.testing.assert_array_equal(half.y, single.y)
    assert half.tags == single.tags


def test_two_addresses_never_give_the_same_tasks():
    seen = {}
    for address in product((1, 2, 3, 100, 101), (0, 1, 2), (0, 1)):
        for split in ("train", "heldout"):
            seen[address, split] = generate_microbatch(CONFIG, *address, split=split)
    # Not the digests, which hold the address: the numbers themselves.
    contents = {microbatch.x.tobytes() for microbatch in seen.values()}
    assert len(contents) == len(seen) == 60
    tasks = {x.tobytes() for microbatch in seen.values() for x in microbatch.x}
    assert len(tasks) == 240


@pytest.mark.parametrize("other", [1, 2, 2**32, 2**62])
def test_another_root_seed_gives_other_tasks(other):
    config = Config(prior={**SMALL, "seed": other})
    for address in ADDRESSES:
        ours, theirs = (generate_microbatch(c, *address) for c in (CONFIG, config))
        assert ours.x.tobytes() != theirs.x.tobytes()
        assert ours.tags["pi"] != theirs.tags["pi"] or address[0] == 1


def test_heldout_tasks_differ_from_training_tasks_at_the_same_address():
    shapes = []
    for address in ADDRESSES:
        train, heldout = (
            generate_microbatch(CONFIG, *address, split=split) for split in ("train", "heldout")
        )
        assert train.x.tobytes() != heldout.x.tobytes()
        shapes.append(train.x.shape == heldout.x.shape)
    assert not all(shapes)
    architectures = [
        draw_architecture(CONFIG.prior, stage, "train")
        == draw_architecture(CONFIG.prior, stage, "heldout")
        for stage in range(1, 51)
    ]
    assert sum(architectures) < 5


def test_every_stream_of_random_numbers_is_its_own():
    streams = {}
    for seed in (0, 1, 2**32, 2**32 + 1):
        for split in ("train", "heldout"):
            for a, b, c in product((0, 1, 2), repeat=3):
                streams[seed, split, "stage", a] = stage_generator(seed, split, a)
                streams[seed, split, "microbatch", a, b, c] = microbatch_generator(
                    seed, split, a, b, c
                )
                for task in (0, 1, 2):
                    streams[seed, split, "task", a, b, c, task] = task_generator(
                        seed, split, a, b, c, task
                    )
    firsts = {name: rng.integers(2**63) for name, rng in streams.items()}
    assert len(set(firsts.values())) == len(firsts) == 8 * (3 + 27 + 81)


def test_no_two_tasks_share_weights_causes_or_noise(monkeypatch):
    kept = []

    def keep(*arguments):
        kept.append(draw_scm(*arguments))
        return kept[-1]

    monkeypatch.setattr(microbatch_module, "draw_scm", keep)
    config = Config(prior={**SMALL, "tasks_per_microbatch": 24})
    for address in [(100, 0, 0), (100, 0, 1), (100, 1, 0)]:
        generate_microbatch(config, *address)
    assert len(kept) == 72
    for first, second in combinations(kept, 2):
        for name in ("input_weight", "hidden_weights", "causes", "noise"):
            numbers = (np.ravel(getattr(draws, name)[0])[:50] for draws in (first, second))
            assert np.intersect1d(*numbers).size <= 2, name


def test_the_batch_factors_are_shared_by_all_tasks_and_differ_between_microbatches():
    drawn = [
        draw_factors(PriorConfig(), 100, step, index) for step, index in product(range(20), (0, 1))
    ]
    assert len({(f.n_features, f.n_labeled, f.eta, f.activations) for f in drawn}) == 40


def test_changing_the_plan_changes_only_what_it_names():
    base = draw_factors(PriorConfig(), 100, 0, 0).tags()
    other = draw_factors(PriorConfig(state_clamp=1e5, sigma_init=0.5), 100, 0, 0).tags()
    assert base == other
    weak = generate_microbatch(Config(prior={**SMALL, "sigma_init": 0.5}), 100, 0, 0)
    assert weak.tags == generate_microbatch(CONFIG, 100, 0, 0).tags
    assert weak.x.tobytes() != generate_microbatch(CONFIG, 100, 0, 0).x.tobytes()


def test_the_factors_of_an_address_are_those_of_prior_algorithm_2():
    # Choices and integers, which no instruction set can change. When these change, every shard
    # ever made is another plan: raise PRIOR_ALGORITHM together with them.
    assert PRIOR_ALGORITHM == 2
    prior = PriorConfig()
    known = {
        ((1, 0, 0), "train"): (11, 100, 5, 18, "head", "square"),
        ((1, 0, 0), "heldout"): (6, 289, 8, 23, "causes", "square"),
        ((100, 749, 1), "train"): (8, 189, 7, 18, "subset", "rbf"),
        ((100, 749, 1), "heldout"): (14, 226, 11, 14, "head", "relu"),
    }
    for (address, split), expected in known.items():
        f = draw_factors(prior, *address, split)
        shape = (f.n_features, f.n_labeled, f.hidden_layers, f.hidden_width)
        assert (*shape, f.source, f.activations[0]) == expected
    first_pi = task_generator(0, "train", 100, 749, 1, 0).uniform(0.1, 0.9)
    assert first_pi == pytest.approx(0.5858058526342202, abs=1e-12)
    one_task = Config(prior={"tasks_per_microbatch": 1})
    assert generate_microbatch(one_task, 100, 749, 1).tags["pi"] == [first_pi]


@pytest.mark.parametrize(
    "address",
    [
        (0, 0, 0),
        (-1, 0, 0),
        (135, 0, 0),
        (1, 750, 0),
        (1, -1, 0),
        (134, 250, 0),
        (1, 0, 2),
        (1, 0, -1),
    ],
)
def test_an_address_outside_the_plan_is_refused_by_name(address):
    with pytest.raises(InputError) as error:
        generate_microbatch(CONFIG, *address)
    assert str(list(address)) in str(error.value)


@pytest.mark.parametrize("address", [(1.9, 0, 0), (1, 0.7, 0), (1, 0, -0.5)])
def test_an_address_that_is_not_whole_is_refused_not_truncated(address):
    with pytest.raises((InputError, TypeError)):
        generate_microbatch(CONFIG, *address)


def test_the_last_address_of_every_short_or_full_stage_exists():
    for address in [(1, 749, 1), (100, 749, 1), (133, 749, 1), (134, 249, 1)]:
        assert generate_microbatch(CONFIG, *address).address == address


def test_an_unknown_split_is_refused_in_a_sentence():
    with pytest.raises(InputError):
        generate_microbatch(CONFIG, 1, 0, 0, split="validation")


def test_an_address_of_numpy_integers_gives_the_same_digest(digests):
    address = tuple(np.array([57, 749, 1]))
    assert generate_microbatch(CONFIG, *address).digest().hex() == digests[57, 749, 1]
