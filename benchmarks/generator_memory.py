"""Memory of one worker while it makes one part of each stage of the paper's plan, in order."""

import argparse
import os
import resource
import tempfile
from pathlib import Path

from prior_gen.canary import canary_digest, software
from prior_gen.generator import write_part
from puicl_config import Config, load_config
from shard_io import Manifest, PartId

_MB = 2**20


def resident() -> float:
    """Resident memory of this process in megabytes (Linux)."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / _MB


def main() -> None:
    """Print current and peak memory after each stage."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--stages", type=int, default=16)
    asked = parser.parse_args().stages
    paper = load_config("paper")
    config = Config(prior=paper.prior, shards=paper.shards)
    most = config.prior.total_stages - config.prior.stages
    if not 1 <= asked <= most:
        parser.error(f"--stages must be from 1 to {most}, the stages of the paper's tail")
    manifest = Manifest(config, "train", canary_digest(config.prior), software())
    print(f"{'stages made':>12}{'MB now':>10}{'MB at most':>12}")
    print(f"{0:12}{resident():10.0f}")
    with tempfile.TemporaryDirectory() as folder:
        for made in range(1, asked + 1):
            # The tail's stages, whose parts are the largest and all of one size.
            write_part(manifest, Path(folder), PartId(config.prior.stages + made, 0))
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            print(f"{made:12}{resident():10.0f}{peak:12.0f}", flush=True)


if __name__ == "__main__":
    main()
