"""Digests that name a plan (what data) and a run (what training)."""

import hashlib
import json
from typing import Any

from puicl_config.prior import PriorConfig
from puicl_config.schema import Config
from puicl_config.train import RUN_DIGEST_EXCLUDES

# Raise this whenever the same `prior` section would give different bytes: after a change of the
# sampler, the order of draws or a rule. Shards of another version belong to another plan.
PRIOR_ALGORITHM = 2

# The same for what `prior.extensions` adds; raising only this does not affect the paper's plans.
EXTENSIONS_ALGORITHM = 1


def canonical_json(value: Any) -> str:
    """JSON with sorted keys and no spaces, so that equal values give equal text.

    Raises `ValueError` for numbers that are not finite.
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def sha256_of(value: Any) -> str:
    """Hex SHA-256 of a value's canonical JSON."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


def plan_of(prior: PriorConfig) -> dict[str, Any]:
    """The plan as plain data: the `prior` section and the version of the algorithm.

    If no microbatch is extended (`extensions.share` is 0), the whole section `extensions` is left
    out.
    """
    plain = prior.model_dump(mode="json")
    if not prior.extensions.share:
        plain.pop("extensions", None)
        return {"algorithm": PRIOR_ALGORITHM, "prior": plain}
    versions = {"algorithm": PRIOR_ALGORITHM, "extensions_algorithm": EXTENSIONS_ALGORITHM}
    return {**versions, "prior": plain}


def plan_digest(prior: PriorConfig) -> str:
    """Digest that names the data, independent of stage range, format, codec, dtype and folder."""
    return sha256_of(plan_of(prior))


def run_digest(config: Config, lineage: str | None = None) -> str:
    """Digest that names a training run: plan, model and every `train` key that can change a bit.

    `lineage` is the digest of the checkpoint or weights that the run began from, if any.
    """
    named = {
        "plan": plan_of(config.prior),
        "model": config.model.model_dump(mode="json"),
        "train": config.train.model_dump(mode="json", exclude=set(RUN_DIGEST_EXCLUDES)),
    }
    return sha256_of({**named, "lineage": lineage} if lineage else named)
