"""Digests that name a plan (what data) and a run (what training)."""

import hashlib
import json
from typing import Any

from puicl_config.prior import PriorConfig
from puicl_config.schema import Config
from puicl_config.train import RUN_DIGEST_EXCLUDES

# Raised whenever the same `prior` section would give other bytes: a new sampler, another order
# of draws, a changed rule. Shards made by another version are another plan.
PRIOR_ALGORITHM = 2

# The same for what `prior.extensions` adds: raised alone, it leaves the paper's plans as they are.
EXTENSIONS_ALGORITHM = 1


def canonical_json(value: Any) -> str:
    """JSON with sorted keys and no spaces: equal values give equal text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def sha256_of(value: Any) -> str:
    """Hex SHA-256 of a value's canonical JSON."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


def plan_of(prior: PriorConfig) -> dict[str, Any]:
    """The plan as plain data: the `prior` section and the version of the algorithm.

    A plan that extends no microbatch is the paper's, whatever else stands in `extensions`.
    """
    plain = prior.model_dump(mode="json")
    if not prior.extensions.share:
        plain.pop("extensions", None)
        return {"algorithm": PRIOR_ALGORITHM, "prior": plain}
    versions = {"algorithm": PRIOR_ALGORITHM, "extensions_algorithm": EXTENSIONS_ALGORITHM}
    return {**versions, "prior": plain}


def plan_digest(prior: PriorConfig) -> str:
    """Name of the data: the same for any stage range, format, codec, dtype or place."""
    return sha256_of(plan_of(prior))


def run_digest(config: Config, lineage: str | None = None) -> str:
    """Name of the training: plan, model and every `train` key that can change a bit.

    `lineage` is the digest of the checkpoint that the run began from, if any.
    """
    named = {
        "plan": plan_of(config.prior),
        "model": config.model.model_dump(mode="json"),
        "train": config.train.model_dump(mode="json", exclude=set(RUN_DIGEST_EXCLUDES)),
    }
    return sha256_of({**named, "lineage": lineage} if lineage else named)
