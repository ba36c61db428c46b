"""Portable arithmetic: accurate, and the same bits whatever the libraries and the processor."""

import hashlib
import os
import platform
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from prior_gen import elementary, generate_microbatch, microbatch
from prior_gen.activations import BANK, activate
from prior_gen.canary import canary_digest, software, tasks_digest
from prior_gen.extensions import pool
from prior_gen.extensions.warped import WARPS, warp_columns
from prior_gen.products import multiply_rows
from puicl_config import EXTENSIONS, Config, PriorConfig, load_config, plan_of
from puicl_config.digests import EXTENSIONS_ALGORITHM, PRIOR_ALGORITHM

ROOT = Path(__file__).resolve().parents[2]
PLANS = {
    "paper": PriorConfig(arithmetic="portable"),
    "extended": PriorConfig(arithmetic="portable", extensions={"share": 1.0, "warped": 0.5}),
    "small": PriorConfig(
        arithmetic="portable", n_labeled=(10, 90), tasks_per_microbatch=3, tail_steps=7
    ),
}
OLD = PriorConfig(extensions={"share": 1.0, "warped": 0.5})
# What any x86-64 processor must find; another value means other shards, and another plan by name.
CANARIES = {
    "paper": "d6e268d4cbb0586e77c48bf2283a11171dde0dd4c1d90cc9dd30fea544cecc48",
    "extended": "a4db0e9827236436619d2838274d0c2441f67ba15ad22defb92f727a5fbe4cd1",
    "small": "d6e268d4cbb0586e77c48bf2283a11171dde0dd4c1d90cc9dd30fea544cecc48",
}
SAMPLES = {"paper": "c7884250762072f2", "extended": "ea98cdc831b87c19", "small": "585f5b5e73694887"}
CLAMP = np.float32(1e6)
on_x86 = pytest.mark.skipif(
    platform.machine() not in ("x86_64", "AMD64"), reason="the bits are promised for x86-64"
)


def spread_out(dtype=np.float32):
    """Numbers of all sizes and both signs, and the special ones."""
    z = np.random.default_rng(0).normal(size=20_000)
    sizes = np.repeat([1e-4, 0.1, 1.0, 5.0, 1e3], len(z) // 5)
    return np.concatenate([z * sizes, [0.0, -0.0, 1.0, -1.0, 87.0, -87.0, 1e6]]).astype(dtype)


@pytest.mark.parametrize("name", BANK)
def test_portable_activations_are_the_banks(name):
    x = np.concatenate([spread_out(), np.float32([3e6, -3e6])])
    expected = BANK[name](np.clip(x.astype(np.float64), -1e6, 1e6))
    actual = activate(name, x, CLAMP, portable=True)
    assert actual.dtype == np.float32
    np.testing.assert_allclose(actual, expected, rtol=1e-6, atol=2e-6)


def test_portable_activations_leave_their_input_and_keep_their_bounds():
    x = spread_out()
    for name, low, high in (("tanh", -1, 1), ("sin", -1 - 2e-7, 1 + 2e-7), ("rbf", 0, 1)):
        before = x.copy()
        out = activate(name, x, CLAMP, portable=True)
        np.testing.assert_array_equal(x, before)
        assert low <= out.min() < out.max() <= high


def test_the_bump_is_one_at_zero_and_zero_far_out_and_precise_between():
    x = np.float32([0, 1e-20, 2, -9.3, 9.4, -1e6, 1e9])
    out = activate("rbf", x, CLAMP, portable=True)
    exact = np.exp(-np.square(x).astype(np.float64))
    np.testing.assert_allclose(out[:4], exact[:4], rtol=3e-7)
    np.testing.assert_array_equal(out[4:], 0)


def test_activations_of_float32_are_as_near_as_they_say():
    x = np.linspace(-12, 12, 100_001, dtype=np.float32)
    exact = x.astype(np.float64)

    def away(name, x, exact):
        return np.abs(activate(name, x, np.float32(1e13), portable=True) - exact)

    assert away("tanh", x, np.tanh(exact)).max() < 4e-7
    for size, nearly in ((1, 3e-7), (1e3, 3e-7), (1e6, 3e-7), (1e9, 3e-7), (1e12, 1e-4)):
        z = x * np.float32(size / 12)
        assert away("sin", z, np.sin(z.astype(np.float64))).max() < nearly, size
    y = -(x * x)  # in float32, as the bump takes it
    bump = np.exp(y.astype(np.float64)[y > -87])
    units = away("rbf", x[y > -87], bump) / np.spacing(bump.astype(np.float32))
    assert units.max() < 2
    # Of GELU = x (1 + erf(x / sqrt(2))) / 2 the error function.
    far = x[np.abs(x) > 1e-2]
    gelu = far * ndtr(far.astype(np.float64))
    assert (away("gelu", far, gelu) / np.abs(far / 2)).max() < 6e-7


@pytest.mark.parametrize(
    ("name", "low", "high"), [("exp", -700, 700), ("sinh", -30, 30), ("arcsinh", -1e6, 1e6)]
)
def test_functions_of_float64_are_numpys_to_the_last_places(name, low, high):
    x = np.random.default_rng(1).uniform(low, high, 10_000)
    np.testing.assert_allclose(
        getattr(elementary, name)(x), getattr(np, name)(x), rtol=1e-14, atol=1e-15
    )


def test_logarithms_and_powers_are_numpys_to_the_last_places():
    x = np.exp(np.random.default_rng(2).uniform(-50, 50, 10_000))
    np.testing.assert_allclose(elementary.log(x), np.log(x), rtol=4e-16, atol=1e-15)
    assert elementary.log(0.0) == -np.inf
    assert elementary.log(1.0) == 0
    np.testing.assert_allclose(elementary.power(x, 2.3), x**2.3, rtol=1e-13)
    np.testing.assert_array_equal(elementary.power(np.array([0.0, 1.0]), 0.4), [0, 1])


def test_normal_quantiles_are_scipys_to_the_last_places():
    tail = 10.0 ** -np.linspace(2, 10, 1000)
    p = np.concatenate([np.linspace(0.01, 0.99, 10_001), [0.075, 0.925], tail, 1 - tail])
    np.testing.assert_allclose(elementary.normal_quantile(p), ndtri(p), rtol=1e-14, atol=1e-14)
    assert elementary.normal_quantile(0.5) == 0


@pytest.mark.parametrize("kind", WARPS)
@pytest.mark.parametrize("a", [0.7, 2.0])
def test_portable_warps_are_the_others_to_the_last_places(kind, a):
    z = np.linspace(-5, 5, 1001, dtype=np.float32)[:, None]
    parameters = {"warps": [[kind, a, 0.6]]}
    np.testing.assert_allclose(
        warp_columns(parameters, z, portable=True),
        warp_columns(parameters, z, portable=False),
        rtol=1e-12,
    )


def test_a_portable_product_is_one_chain_of_fused_additions_whatever_its_size():
    rng = np.random.default_rng(3)
    for n, k, h in ((1, 3, 1), (5, 12, 13), (700, 36, 20)):
        x, weight = (rng.normal(size=(rows, k)).astype(np.float32) for rows in (n, h))
        total = np.zeros((n, h), np.float32)
        for i in range(k):
            # Two float32 multiply exactly in float64, so that rounding the sum is nearly one step.
            step = np.multiply.outer(x[:, i].astype(np.float64), weight[:, i].astype(np.float64))
            total = (total + step).astype(np.float32)
        actual = multiply_rows(x, weight, portable=True)
        assert (actual == total).mean() > 0.999  # float64's own rounding aside
        np.testing.assert_allclose(actual, x @ weight.T, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("module", "name", "extensions"),
    [
        (microbatch, "run_scm", {}),
        (pool, "run_scm", {"share": 1.0, "missing": 1.0}),
        (pool, "warp_columns", {"share": 1.0, "warped": 1.0}),
        (pool, "factor_columns", {"share": 1.0, "factor_model": 1.0}),
        (pool, "graph_columns", {"share": 1.0, "graph": 1.0}),
    ],
)
def test_whatever_makes_a_task_is_told_the_plans_arithmetic(module, name, extensions, monkeypatch):
    asked, real = [], getattr(module, name)

    def spy(*arguments):
        asked.append(arguments[-1] is True)
        return real(*arguments)

    monkeypatch.setattr(module, name, spy)
    small = {"n_labeled": (10, 20), "tasks_per_microbatch": 1, "extensions": extensions}
    for arithmetic in ("portable", "libraries"):
        generate_microbatch(Config(prior={**small, "arithmetic": arithmetic}), 100, 0, 0)
    assert asked == [True, False]


# Plans without portable arithmetic have bits of the instruction set; older shards have them, too.
# Keys: instruction sets that numpy found, and OpenBLAS's kernels.
OF_LIBRARIES = {
    ("X86_V2 X86_V3", "Haswell"): (
        "55f173646773337ddfff37116797494c7688d082a00b86854707a1c2b98a3230"
    ),
    ("X86_V2 X86_V3 X86_V4 AVX512_ICL AVX512_SPR", "SkylakeX"): (
        "f6087c934eea5135d278854bef537bae162e4255e5239e11a7b984a6b3ef12f9"
    ),
}


def test_other_plans_keep_the_bits_they_had():
    found, blas = software()["simd"], software()["blas"]
    known = OF_LIBRARIES.get((found, blas.rsplit(" ", 1)[-1]))
    if known is None:
        pytest.skip(f"no bits are known of {found}, {blas}")
    assert canary_digest(OLD) == known


@on_x86
@pytest.mark.parametrize("plan", PLANS)
def test_the_canary_has_the_bits_of_every_processor(plan):
    assert canary_digest(PLANS[plan]) == CANARIES[plan]


@on_x86
@pytest.mark.parametrize("plan", PLANS)
def test_the_sample_of_a_plan_is_the_one_that_manifests_have_written_down(plan):
    """Of another sample a folder would say that this machine makes other bits."""
    assert tasks_digest(PLANS[plan])[:16] == SAMPLES[plan]


def test_a_processor_that_has_no_more_than_numpys_least_is_described(monkeypatch):
    least = {"SIMD Extensions": {"baseline": ["SSE", "SSE2"]}}
    monkeypatch.setattr(np, "show_config", lambda mode: least)
    assert software()["simd"] == "SSE SSE2"


def simd() -> str:
    """Every instruction set that numpy found beyond its least."""
    return " ".join(np.show_config(mode="dicts")["SIMD Extensions"].get("found", []))


# They have every extension between them.
EXTENDED = (
    *("cpu_all", "cpu_overlap", "cpu_factors", "cpu_terms", "cpu_scores", "cpu_mirrored"),
    "cpu_grouped",
)
# Of the 16 microbatches that are made of each.
MICROBATCHES = {
    "cpu_all": "b4763ac3530b2a9b",
    "cpu_overlap": "8b9b3697035ecf75",
    "cpu_factors": "7f0805d266d7864d",
    "cpu_terms": "3123d80eb859bca8",
    "cpu_scores": "3c0f89a64f7186c1",
    "cpu_mirrored": "144a9798696bc5fc",
    "cpu_grouped": "6b8b2aa5436a61c0",
}
# Canaries of plans, and microbatches of these configs.
MADE = f"""
import sys
from puicl_config import PriorConfig, load_config
from prior_gen import generate_microbatch
from prior_gen.canary import canary_digest

for plan in sys.argv[1:]:
    print(canary_digest(PriorConfig.model_validate_json(plan)))
more = ["prior.extensions.share=1", "prior.extensions.sar=0.3", "prior.steps_per_stage=15"]
for name in {EXTENDED}:
    config = load_config(name, more)
    for step in range(16):
        print(generate_microbatch(config, 12, step % 15, step % 8).digest().hex())
"""


def made(folder: Path, **variables) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", MADE, *(p.model_dump_json() for p in (PLANS["extended"], OLD))],
        capture_output=True,
        text=True,
        check=True,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), **variables},
    )
    return done.stdout.split()


@pytest.fixture(scope="module")
def made_here(tmp_path_factory):
    return made(tmp_path_factory.mktemp("here"))


@on_x86
def test_extended_microbatches_are_those_of_extensions_algorithm_1(made_here):
    # When these change, so do all shards of such plans: raise EXTENSIONS_ALGORITHM with them.
    assert (PRIOR_ALGORITHM, EXTENSIONS_ALGORITHM) == (2, 1)
    lists = np.split(np.array(made_here[2:]), len(EXTENDED))
    found = [hashlib.sha256("".join(digests).encode()).hexdigest()[:16] for digests in lists]
    assert dict(zip(EXTENDED, found, strict=True)) == MICROBATCHES


@on_x86
@pytest.mark.parametrize(
    ("variables", "bites"),
    [
        ({"NPY_DISABLE_CPU_FEATURES": simd()}, bool(simd())),
        ({"OPENBLAS_CORETYPE": "Nehalem"}, True),
        # The C library's variants; how much they differ is for its version to say.
        ({"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-AVX2_Usable,-FMA_Usable"}, False),
        pytest.param(
            {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": "", "NUMBA_CACHE_DIR": "cache"},
            False,  # nothing that numba compiles depends on it, in either arithmetic
            marks=pytest.mark.slow,
        ),
    ],
    ids=["numpy's least", "another BLAS kernel", "another C library", "compiled for any"],
)
def test_another_processor_makes_the_same_bytes(variables, bites, made_here, tmp_path):
    portable, libraries, *microbatches = made(tmp_path, **variables)
    assert portable == CANARIES["extended"]
    assert microbatches == made_here[2:]
    assert len(set(microbatches)) == 16 * len(EXTENDED)
    if bites:
        assert libraries != made_here[1]  # the variable does switch something


def test_those_configs_have_every_extension_between_them():
    found = {"sar"}
    for name in EXTENDED:
        prior = load_config(name).prior
        assert prior.portable
        found |= {each for each in EXTENSIONS if getattr(prior.extensions, each)}
    assert found == {*EXTENSIONS}


def test_older_plans_keep_their_names_and_new_ones_say_what_they_are():
    assert "arithmetic" not in plan_of(PriorConfig())["prior"]
    assert plan_of(PLANS["paper"])["prior"]["arithmetic"] == "portable"
    assert load_config("paper", ["prior.arithmetic=portable"]).prior == PLANS["paper"]
