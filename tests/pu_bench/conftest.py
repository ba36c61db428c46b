"""Small tables in a folder with an index, and small weights, that the benchmark's tests share."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from made_up_results import make_results

from prior_gen.cli import main as prior_gen
from pu_bench import write_report
from pu_bench.data import load_collection, sources
from puicl_cli.main import main


@pytest.fixture(scope="session")
def little_tables(tmp_path_factory) -> Path:
    """A collection of three tables: easy, hard, and one with text and missing cells."""
    folder = tmp_path_factory.mktemp("tables")
    rng = np.random.default_rng(5)
    index = {}
    for name, distance in (("easy", 3.0), ("hard", 0.6)):
        positive = np.arange(150) < 90
        x = rng.normal(size=(150, 3)) + distance * positive[:, np.newaxis]
        lines = ["a,b,c,target"]
        lines += [
            ",".join([*(f"{v:.4f}" for v in row), "yes" if p else "no"])
            for row, p in zip(x, positive, strict=True)
        ]
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
        index[name] = {"positive": "yes"}
    rows = ["colour,code,size,target"]
    for number in range(120):
        colour = ("red", "green", "")[number % 3]
        size = "" if number % 7 == 0 else str(number % 11)
        rows.append(f"{colour},{(10, 2, 1)[number % 3]},{size},{int(number < 70)}")
    (folder / "mixed.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    index["mixed"] = {"positive": "1", "categorical": ["code"]}
    (folder / "index.json").write_text(json.dumps(index), encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def small_weights(untrained_weights) -> Path:
    return untrained_weights()


@pytest.fixture(autouse=True)
def shipped(small_weights, tmp_path_factory, monkeypatch) -> Path:
    """Small weights in the place of those that ship, under every name a method asks for."""
    folder = tmp_path_factory.mktemp("shipped")
    for name in ("default", "paper"):
        for suffix in (".safetensors", ".json"):
            shutil.copy(small_weights.with_suffix(suffix), folder / f"{name}{suffix}")
    monkeypatch.setattr("puicl_model.weights._SHIPPED", folder)
    return folder


@pytest.fixture
def nothing_shipped(shipped):
    """A package without weights."""
    for path in shipped.iterdir():
        path.unlink()


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("PUICL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def no_network(monkeypatch):
    def refuse(*_, **__):
        raise OSError("no network here")

    monkeypatch.setattr(sources.urllib.request, "urlopen", refuse)
    monkeypatch.setattr(sources, "fetch_openml", refuse)


@pytest.fixture
def bench(called):
    """Run `puicl bench` in this process; exit code, stdout and stderr."""
    return lambda *words: called(main, "puicl", "bench", *words)


@pytest.fixture(scope="module")
def collection(little_tables):
    return load_collection(little_tables)


@pytest.fixture(scope="module")
def task():
    """Positives N(0, I), negatives N(2.5, I) in three dimensions, half each in U."""
    rng = np.random.default_rng(2)
    y = rng.permutation(np.arange(120) < 60).astype(int)
    U = rng.normal(size=(120, 3)) + np.where(y[:, np.newaxis] == 1, 0.0, 2.5)
    return rng.normal(size=(50, 3)), U, y


@pytest.fixture
def results_folder(tmp_path) -> Path:
    return make_results(tmp_path)


@pytest.fixture(scope="session")
def reported(tmp_path_factory) -> Path:
    """Such a folder with its report; not to be written to."""
    folder = make_results(tmp_path_factory.mktemp("reported"))
    write_report(folder)
    return folder


@pytest.fixture(scope="session")
def heldout(tmp_path_factory):
    """A few stages of configs/bench.yaml, smaller, by the command that the sweep names."""
    folder = tmp_path_factory.mktemp("shards") / "bench"
    arguments = ["--config", "bench", "--split", "heldout", "--tail", "--out", str(folder)]
    arguments += ["--jobs", "1", "--set", "prior.tail_steps=2"]
    arguments += ["--set", "prior.n_features=[5, 8]", "--set", "prior.n_labeled=[60, 60]"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", ["prior-gen", *arguments])
        with pytest.raises(SystemExit) as stop:
            prior_gen()
    assert not stop.value.code
    return folder
