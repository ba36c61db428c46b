"""Check that another machine gives the same probabilities, and the same bytes of portable shards.

    python benchmarks/other_machine.py --out here.json
    python benchmarks/other_machine.py --against here.json      # on the other one

Probabilities are of 120 rows and six columns of the breast cancer table, with 0.4 of the benign
rows labelled, in one pass, in four, and in four with trees. Shards are the first 64 tasks of
`configs/cpu.yaml` (every extension of the prior) with `prior.arithmetic=portable`; the SHA-256 of
each file of their parts is compared.
"""

import argparse
import hashlib
import json
import platform
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer
from where_to import output_file

from prior_gen import generate_shards
from puicl_config import InputError, exit_on_input_error, load_config
from puicl_model import PUICLClassifier

_WAYS: dict[str, dict[str, Any]] = {
    "one pass": {"n_estimators": 1},
    "four passes": {"n_estimators": 4},
    "four passes and trees": {"n_estimators": 4, "blend": "trees"},
}
_PLAN = ("prior.arithmetic=portable", "prior.steps_per_stage=4")


@exit_on_input_error
def main() -> None:
    """Compute the answers, then write or compare them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    to_do = parser.add_mutually_exclusive_group(required=True)
    to_do.add_argument("--out", type=Path)
    to_do.add_argument("--against", type=Path)
    arguments = parser.parse_args()
    there = None
    if arguments.out is not None:
        output_file(arguments.out)
    else:
        there = _answers(arguments.against)
    here: dict[str, Any] = {
        "machine": platform.machine(),
        "probabilities": _probabilities(),
        "shards": _shards(),
    }
    if there is None:
        arguments.out.write_text(json.dumps(here) + "\n", encoding="utf-8")
        return
    print(f"{here['machine']} against {there['machine']}")
    for way, found in here["probabilities"].items():
        apart = np.abs(np.subtract(found, there["probabilities"][way])).max()
        print(f"{way}: probabilities differ by {apart:.1e} at most")
    others = [
        name for name, digest in here["shards"].items() if there["shards"].get(name) != digest
    ]
    print(
        f"portable shards: {len(here['shards']) - len(others)} of {len(here['shards'])} files equal"
    )


def _answers(path: Path) -> dict[str, Any]:
    try:
        there = json.loads(path.read_text(encoding="utf-8"))
        return {key: there[key] for key in ("machine", "probabilities", "shards")}
    except FileNotFoundError:
        raise InputError(f"no file {path}") from None
    except (OSError, ValueError, LookupError, TypeError):
        raise InputError(f"{path} holds no answers: make it with --out") from None


def _probabilities() -> dict[str, list[float]]:
    X, y = load_breast_cancer(return_X_y=True)
    rng = np.random.default_rng(0)
    rows = rng.choice(len(y), 120, replace=False)
    X, y = X[rows, :6], y[rows]
    s = (y == 1) & (rng.random(len(y)) < 0.4)
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings about the table do not matter here
        for way, parameters in _WAYS.items():
            fitted = PUICLClassifier(**parameters).fit(X, s)
            found[way] = [
                *fitted.unlabeled_proba_.tolist(),
                *fitted.predict_proba(X)[:, 1].tolist(),
            ]
    return found


def _shards() -> dict[str, str]:
    with tempfile.TemporaryDirectory() as folder:
        generate_shards(load_config("cpu", _PLAN), Path(folder), [1], jobs=1)
        parts = Path(folder) / "parts"
        return {
            path.relative_to(parts).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(parts.rglob("*"))
            if path.is_file()
        }


if __name__ == "__main__":
    main()
