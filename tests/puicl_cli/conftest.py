"""What the tests of `puicl predict` share: a small network, a table of all kinds of columns, a run.

`test_predict.py` runs the command in a way of its own.
"""

import io
import signal
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from puicl_cli.main import main
from puicl_model import doubts

N = 60


@pytest.fixture(scope="session")
def weights(untrained_weights) -> Path:
    return untrained_weights()


@pytest.fixture(scope="session")
def patients() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "patient": [f"<p{i}>" for i in range(N)],
            "age": rng.integers(20, 90, N),
            "ward": rng.choice(["north & south", "west"], N),
            "crp": np.where(rng.random(N) < 0.2, np.nan, rng.normal(size=N)),
            "seen": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.permutation(N) * 5, unit="D"),
            "state": np.where(np.arange(N) % 4 == 0, "sick", "unknown"),
        }
    )


@pytest.fixture
def predict(tmp_path, weights, monkeypatch, called):
    """Run `puicl predict`; exit code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(doubts, "_NO_SPREAD", 0.0)  # this network has learnt nothing

    def run(stdin: bytes = b"", **options):
        options = {"label-column": "state", "positive-label": "sick", "model": weights, **options}
        given = {f"--{key}": value for key, value in options.items() if value is not None}
        words = [word for option in given.items() for word in option]
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), "utf-8"))
        return called(main, "puicl", "predict", *words)

    return run


@pytest.fixture
def predict_folder(tmp_path, weights, monkeypatch, called):
    """Run `puicl predict` in this process, on `data` into `out`; exit code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)
    # The command listens to SIGTERM from then on, which is no business of the other tests.
    before = signal.getsignal(signal.SIGTERM)

    def run(*flags, **options):
        options = {"data": "data", "out": "out", "label-column": "s", "model": weights} | options
        options = {"id-column": "name", "jobs": 1} | options
        words = [w for key, value in options.items() if value for w in (f"--{key}", value)]
        return called(main, "puicl", "predict", *words, *flags)

    yield run
    signal.signal(signal.SIGTERM, before)
