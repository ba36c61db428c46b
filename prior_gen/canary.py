"""Digests that show whether this machine produces the same bits, and the software it runs."""

import hashlib
import platform
from importlib.metadata import version

import numpy as np
from threadpoolctl import ThreadpoolController, threadpool_info

from prior_gen.extensions.warped import warped_sample
from prior_gen.factors import Factors
from prior_gen.microbatch import generate_microbatch, generate_task
from prior_gen.seeding import task_generator
from puicl_config import Config, PriorConfig, ShardsConfig

_PACKAGES = ("numpy", "scipy", "numba", "llvmlite", "zarr", "numcodecs", "webdataset")

# Limits of `tasks_digest`: its number of microbatches, the most tasks in each, and upper bounds on
# the two ends of the range of labelled rows.
_SAMPLED, _TASKS = 24, 8
_FEW = (60, 120)

_blas = ThreadpoolController()


def canary_digest(prior: PriorConfig) -> str:
    """Hex SHA-256 of two tasks of few rows that pass through every activation of the plan.

    One task is causal (its columns are hidden nodes), the other reads its columns from a readout
    head. Both are hashed in full precision, before rounding for storage, so that a difference in
    the last bit shows even where float16 would hide it.
    """
    d = prior.n_features[1]
    width = max(prior.hidden_width[1], d + 1)
    layers = len(prior.activations) + 1
    pool = (layers - 1) * width
    digest = hashlib.sha256()
    with _blas.limit(limits=1):
        for number, (causal, source, inputs) in enumerate(
            [(True, "subset", "gaussian"), (False, "head", "uniform")]
        ):
            factors = Factors(
                n_features=d,
                n_labeled=40,
                n_unlabeled=60,
                eta=1.5,
                pi=prior.pi_final,
                hidden_layers=layers,
                hidden_width=width,
                n_causes=d if prior.n_causes == "n_features" else prior.n_causes,
                sigma_noise=prior.sigma_noise[0],
                input_distribution=inputs,
                activations=prior.activations,
                causal=causal,
                source=source,
                ordering="graph",
                feature_order=np.arange(d),
                label_position="last" if causal else None,
                label_node=pool - 1 if causal else None,
                feature_nodes=np.linspace(0, pool - 2, d).astype(int) if causal else None,
            )
            # No plan has a stage 0, so the canary never reuses the random stream of real data.
            rng = task_generator(prior.seed, "heldout", 0, 0, 0, number)
            x, y, pi = generate_task(rng, prior, factors)
            digest.update(x.tobytes() + y.tobytes() + pi.hex().encode())
        if prior.extensions.share:
            digest.update(warped_sample(prior.portable).tobytes())
    return digest.hexdigest()


def tasks_digest(prior: PriorConfig) -> str:
    """Hex SHA-256 of small microbatches, in full precision, from the plan's first to last stage.

    `canary_digest` covers two tasks with the plan's most columns and widest layers. This one also
    covers small matrix products, which libraries sum in other orders, and the computations of
    extensions (graphs, factor models, soft borders). If the plan has extensions, at least half of
    the sampled microbatches are extended, however few of the plan's own are.
    """
    few = (min(prior.n_labeled[0], _FEW[0]), min(prior.n_labeled[1], _FEW[1]))
    tasks = min(prior.tasks_per_microbatch, _TASKS)
    small = prior.model_copy(update={"n_labeled": few, "tasks_per_microbatch": tasks})
    extended = prior.extensions.model_copy(update={"share": 1.0})
    digest = hashlib.sha256()
    for number, stage in enumerate(np.linspace(1, prior.total_stages, _SAMPLED).astype(int)):
        chosen = small
        if prior.extensions.share and number % 2:
            chosen = small.model_copy(update={"extensions": extended})
        # Skip validation: so few labelled rows may contradict the plan's other ranges.
        config = Config.model_construct(prior=chosen, shards=ShardsConfig(x_dtype="float32"))
        step = number % prior.steps_in_stage(int(stage))
        made = generate_microbatch(config, int(stage), step, 0, "heldout")
        digest.update(made.x.tobytes() + made.y.tobytes() + repr(made.tags["pi"]).encode())
    return digest.hexdigest()


def software() -> dict[str, str]:
    """Versions and instruction sets that the bits may depend on; no host names, no times."""
    blas = [
        f"{library['internal_api']} {library['version']} {library.get('architecture', '')}".strip()
        for library in threadpool_info()
        if library["user_api"] == "blas" and "numpy" in library["filepath"]
    ]
    simd = np.show_config(mode="dicts")["SIMD Extensions"]
    return {
        "machine": platform.machine(),
        "python": platform.python_version(),
        **{name: version(name) for name in _PACKAGES},
        "blas": ", ".join(sorted(set(blas))),
        "simd": " ".join([*simd["baseline"], *simd.get("found", [])]),
    }
