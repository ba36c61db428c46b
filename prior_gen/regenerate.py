"""Check of stored parts against their seeds: random parts are generated again and compared."""

import random
from pathlib import Path

from prior_gen.estimate import worker_count
from prior_gen.generator import check_canary, make_microbatches
from puicl_config.workers import run_all
from shard_io import Manifest, PartId, ShardError, Store, content_digest, open_shards


def regenerate_parts(
    folder: Path | Store, count: int, seed: int, jobs: int | None = None
) -> tuple[list[PartId], list[PartId]]:
    """Generate up to `count` random published parts again and compare their content digests.

    The choice of parts depends only on `seed` and on which parts are published. Nothing is written.
    Returns the chosen parts, and those among them whose content differs from what their seeds give;
    a part with a damaged entry is never among the latter. Raises `ShardError` if this machine
    produces different bits from the folder's writer.
    """
    reader = open_shards(folder)
    check_canary(reader.manifest)
    parts = reader.published_parts()
    chosen = sorted(random.Random(seed).sample(parts, min(count, len(parts))))
    microbatches = sum(len(reader.manifest.layout.span(part)) for part in chosen)
    tasks = microbatches * reader.manifest.config.prior.tasks_per_microbatch
    jobs = worker_count(jobs, len(chosen), tasks)
    digests = run_all(_digest_from_seeds, [(reader.manifest, part) for part in chosen], jobs)
    unlike = []
    for part, digest in zip(chosen, digests, strict=True):
        try:
            same = reader.entry(part).content_digest == digest
        except ShardError:
            continue  # its entry is damaged, which verification reports
        if not same:
            unlike.append(part)
    return chosen, unlike


def _digest_from_seeds(manifest: Manifest, part: PartId) -> str:
    check_canary(manifest)
    return content_digest(make_microbatches(manifest, part))
