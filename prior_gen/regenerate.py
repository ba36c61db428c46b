"""Is what lies in a folder what its seeds give? Random parts, made again and compared."""

import random
from pathlib import Path

from prior_gen.estimate import worker_count
from prior_gen.generator import check_canary, make_microbatches
from puicl_config.workers import run_all
from shard_io import Manifest, PartId, ShardError, Store, content_digest, open_shards


def regenerate_parts(
    folder: Path | Store, count: int, seed: int, jobs: int | None = None
) -> tuple[list[PartId], list[PartId]]:
    """Make `count` random published parts again (all, where there are fewer) and compare digests.

    Which parts is a function of `seed` and of what is published. Returns the parts, and those of
    them that hold other content than their seeds give. Nothing is written. Raises `ShardError`
    where this machine makes other bits than the folder's writer.
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
