"""The classifier and `puicl predict` need nothing that only POSIX systems have."""

import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

SCRIPT = """
import os, signal, sys
del signal.pthread_sigmask
opened = os.open

def no_folders(path, flags, *rest, dir_fd=None):
    if dir_fd is None and os.path.isdir(path):
        raise PermissionError(13, "Permission denied", str(path))
    return opened(path, flags, *rest, dir_fd=dir_fd)

os.open = no_folders
for name in ("fcntl", "resource", "termios", "grp", "pwd"):
    sys.modules[name] = None  # importing it fails
import puicl_cli.main
sys.exit(puicl_cli.main.main())
"""


@pytest.mark.parametrize("folder", [False, True])
def test_a_table_is_scored_where_what_posix_systems_have_is_missing(tmp_path, folder):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 3))
    table = pd.DataFrame(x, columns=list("abc")).assign(s=x[:, 0] + rng.normal(size=60) > 1)
    (tmp_path / "data").mkdir()
    table.to_csv(tmp_path / "data" / "table.csv", index=False)
    data, out = ("data", "out") if folder else ("data/table.csv", "scores.csv")
    words = ["predict", "--data", data, "--label-column", "s", "--out", out]
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *words, "--n-estimators", "1", "--blend", "trees"],
        cwd=tmp_path,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    scores = pd.read_csv(tmp_path / ("out/table.csv" if folder else "scores.csv"))
    assert (scores["p_positive"].notna() == ~table["s"]).all()
