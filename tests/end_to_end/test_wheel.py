"""The wheel: what `pip install` brings is all that the commands and the classifier need."""

import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = "import sys; from hatchling.build import build_wheel; print(build_wheel(sys.argv[1]))"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    pytest.importorskip("hatchling", reason="builds wheels; comes with the extra dev")
    folder = tmp_path_factory.mktemp("wheel")
    built = subprocess.run(
        [sys.executable, "-c", BUILD, str(folder)], cwd=ROOT, capture_output=True, text=True
    )
    assert built.returncode == 0, built.stderr
    return folder / built.stdout.splitlines()[-1]


def packages():
    """The packages that pyproject.toml names."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    return project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]


def files_in(folder):
    found = (path for path in (ROOT / folder).rglob("*") if path.is_file())
    return {
        path.relative_to(ROOT).as_posix()
        for path in found
        if "__pycache__" not in path.parts and not path.name.startswith(".")
    }


def test_it_holds_every_file_of_the_packages_and_the_configs_and_nothing_else(wheel):
    expected = set().union(*(files_in(package) for package in packages()))
    expected |= {f"puicl_config/{name}" for name in files_in("configs")}
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert names == expected
    assert {f"puicl_model/weights/{name}.safetensors" for name in ("default", "paper")} <= names


def test_every_package_of_the_checkout_is_named():
    importable = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    assert set(packages()) == importable - {"tests", "benchmarks"}


USE = """
import sys
import numpy as np
import puicl_model, trainer.main, prior_gen.cli, puicl_cli.main, pu_bench
from puicl_config import load_config
from puicl_model import PUICLClassifier

assert puicl_model.__file__.startswith(sys.argv[1]), puicl_model.__file__
assert load_config("cpu").name == "cpu"
X = np.random.default_rng(0).normal(size=(60, 2))
s = (X[:, 0] > 0.5) & (np.arange(60) % 2 == 0)
for model in ("default", "paper"):
    fitted = PUICLClassifier(model=model, n_estimators=1, random_state=0).fit(X, s)
    ranked = fitted.predict_proba(X[~s])[:, 1]
    assert np.corrcoef(ranked, X[~s, 0])[0, 1] > 0.5
"""


def test_it_works_where_there_is_no_checkout(wheel, tmp_path):
    installed = tmp_path / "installed"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(installed)
    used = subprocess.run(
        [sys.executable, "-c", USE, str(installed)],
        cwd=tmp_path,
        env={"PYTHONPATH": str(installed), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert used.returncode == 0, used.stderr
