"""The classifier and `puicl predict` need nothing that only POSIX systems have."""

import os
import subprocess
import sys

import numpy as np
import pandas as pd

SCRIPT = """
import sys
for name in ("fcntl", "resource", "termios", "grp", "pwd"):
    sys.modules[name] = None  # importing it fails
import puicl_cli.main
sys.exit(puicl_cli.main.main())
"""


def test_a_table_is_scored_where_posix_modules_are_missing(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 3))
    table = pd.DataFrame(x, columns=list("abc")).assign(s=x[:, 0] + rng.normal(size=60) > 1)
    table.to_csv(tmp_path / "table.csv", index=False)
    words = ["predict", "--data", "table.csv", "--label-column", "s", "--out", "scores.csv"]
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *words, "--n-estimators", "1", "--blend", "trees"],
        cwd=tmp_path,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    scores = pd.read_csv(tmp_path / "scores.csv")
    assert (scores["p_positive"].notna() == ~table["s"]).all()
