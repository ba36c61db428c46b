"""The user guide's worked examples run, and print what the guide says they print about."""

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"


@pytest.fixture(scope="module")
def weights(untrained_weights):
    return untrained_weights(embedding_size=8, layers=1, heads=2, feedforward_size=8)


def run(name, model):
    return runpy.run_path(str(EXAMPLES / f"{name}.py"))["main"](model)


@pytest.mark.parametrize(
    ("name", "mentioned"),
    [
        ("medical", "share of benign among the open"),
        ("rare_positives", "expected number of eights: 49 of 1640"),
    ],
)
def test_the_example_runs(name, mentioned, weights, capsys):
    run(name, weights)
    assert mentioned in capsys.readouterr().out


def test_the_shipped_weights_know_the_later_specimens(capsys):
    assert run("presence_only", "default") > 0.95
    assert "among later specimens" in capsys.readouterr().out
