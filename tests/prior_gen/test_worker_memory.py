"""A worker forgets each part that it has published."""

import subprocess
import sys

PROGRAM = """
import resource, sys
from pathlib import Path
sys.path[:0] = {path!r}
from prior_gen.canary import canary_digest, software
from prior_gen.generator import write_part
from puicl_config import Config
from shard_io import Manifest, PartId
prior = {{"steps_per_stage": 5, "tail_steps": 1000}}
config = Config(prior=prior, shards={{"parts_per_stage": 1, "format": "zarr"}})
manifest = Manifest(config, "train", canary_digest(config.prior), software())
for stage in range(101, 131):
    write_part(manifest, Path({folder!r}), PartId(stage, 0))
    if stage in (110, 130):
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def test_memory_of_a_worker_is_flat_in_the_number_of_stages(tmp_path):
    # A part is some 2.5 MB here: keeping the last twenty would take 50 MB.
    program = PROGRAM.format(path=[path for path in sys.path if path], folder=str(tmp_path))
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    after_ten, after_thirty = (int(line) / 1024 for line in result.stdout.split())
    assert after_thirty - after_ten < 15
