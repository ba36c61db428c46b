"""What a step frees is there for the next one, without asking the system again."""

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
SCRIPT = """
import resource, sys, torch
from trainer.freed_memory import keep_freed_memory
if sys.argv[1] == "keep":
    keep_freed_memory()
def step():
    kept = [torch.ones(size << 18) for size in [8] * 10]  # of 8 MB
    del kept
for _ in range(5):
    step()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(5):
    step()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="this is a setting of glibc")
def test_a_process_that_keeps_freed_memory_gets_no_fresh_pages():
    # A setting under which every tensor would be given back to the system, without fail.
    environment = os.environ | {"MALLOC_MMAP_THRESHOLD_": "131072"}
    fresh_pages = {
        way: int(
            subprocess.check_output(
                [sys.executable, "-c", SCRIPT, way], text=True, env=environment, cwd=ROOT
            )
        )
        for way in ("keep", "return")
    }
    assert fresh_pages["keep"] < 200
    assert fresh_pages["return"] > 5000
