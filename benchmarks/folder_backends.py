"""Seconds to score a folder of tables: one worker against several on each backend.

    python benchmarks/folder_backends.py --jobs 2

Runs `puicl predict` itself, including the start of the workers, on tables of random numbers, and
checks that every backend writes the same bytes.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
from how_many import count

WAYS = (("loky", 1), ("loky", None), ("dask", None), ("ray", None))  # None: --jobs


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", type=count, default=40)
    parser.add_argument("--rows", type=count, default=600)
    parser.add_argument("--columns", type=count, default=10)
    parser.add_argument("--jobs", type=count, default=2)
    options = parser.parse_args()
    print(f"{options.tables} tables of {options.rows} x {options.columns}\n")
    print("| backend | workers | seconds | against one worker |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_tables(folder / "data", options)
        first = None
        for number, (backend, jobs) in enumerate(WAYS):
            if backend in ("dask", "ray") and find_spec(backend) is None:
                print(f"| {backend} | not installed | | |")
                continue
            out = folder / f"out{number}"
            seconds = score(folder / "data", out, backend, jobs or options.jobs)
            written = {path.name: path.read_bytes() for path in out.glob("t*.csv")}
            first = first or (seconds, written)
            if written != first[1] or len(written) != options.tables:
                sys.exit(f"{backend} wrote other scores than one worker")
            ratio = f"{first[0] / seconds:.2f}x"
            print(f"| {backend} | {jobs or options.jobs} | {seconds:.1f} | {ratio} |", flush=True)


def write_tables(folder: Path, options: argparse.Namespace) -> None:
    """Write tables of random numbers with a quarter of the rows labelled."""
    folder.mkdir()
    s = np.arange(options.rows) < options.rows // 4
    for number in range(options.tables):
        rng = np.random.default_rng(number)
        x = rng.normal(size=(options.rows, options.columns)) + s[:, None]
        table = pd.DataFrame(x, columns=[f"c{j}" for j in range(options.columns)])
        table.assign(s=s.astype(int)).to_csv(folder / f"t{number}.csv", index=False)


def score(data: Path, out: Path, backend: str, jobs: int) -> float:
    """Wall seconds of one `puicl predict`."""
    command: list[str | Path] = [Path(sys.executable).parent / "puicl", "predict"]
    command += ["--data", data, "--out", out, "--label-column", "s"]
    command += ["--backend", backend, "--jobs", str(jobs)]
    began = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    return time.monotonic() - began


if __name__ == "__main__":
    main()
