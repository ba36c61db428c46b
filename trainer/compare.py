"""Find where two runs diverge, from their ledgers."""

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from puicl_config import Config, InputError, counted, load_config
from trainer.checkpoint import checkpoints, read_state
from trainer.environment import environment_differences
from trainer.ledger import read_ledger
from trainer.run_folder import config_differences

# In the order in which a step computes them: the first difference is nearest to the cause.
_FIELDS = {
    "microbatches": "the microbatches",
    "data": "the data's digests",
    "learning_rate": "the learning rate",
    "loss": "the loss",
    "gradient_norm": "the gradient norm",
    "weights": "the weights after the step",
}


@dataclass(frozen=True)
class Comparison:
    """Whether two runs are `equal` over `steps` common steps; if not, they diverge at `step`.

    `field` is the entry of the ledger that differs there ("average" for the moving averages), and
    `sentence` the result in words. Both `step` and `field` are None if the runs are equal or have
    no step in common.
    """

    equal: bool
    steps: int
    sentence: str
    step: int | None = None
    field: str | None = None


def compare_runs(run_a: Path, run_b: Path) -> Comparison:
    """Compare two ledgers bit by bit over the steps that both have.

    Digests of the weights are compared where both runs recorded one; those of the moving averages,
    in the runs' model.json, if both are of the same step. If the runs diverge, the sentence also
    says after which step their weights were last known to be equal, and how the environments in
    which they computed the diverging step differ. In either case it names the keys in which their
    configs differ. Raises `InputError` if a ledger, config.yaml or model.json is damaged.
    """
    common, digests, last_digest = 0, 0, None
    for a, b in _common_lines(run_a, run_b):
        for field, meaning in _FIELDS.items():
            if field == "weights" and not (field in a and field in b):
                continue
            if a[field] != b[field]:
                values = ", ".join(_readable(field, line[field]) for line in (a, b))
                sentence = f"{run_a} and {run_b} part at step {a['step']} in {meaning}: {values}"
                if last_digest is not None:
                    sentence += f"; their weights were last seen equal after step {last_digest}"
                sentence += _say_circumstances(run_a, run_b, a["step"])
                return Comparison(False, common, sentence, a["step"], field)
        common += 1
        if "weights" in a and "weights" in b:
            digests, last_digest = digests + 1, a["step"]
    if not common:
        return Comparison(False, 0, f"{run_a} and {run_b} have no step in common")
    step, averages = _final_averages(run_a, run_b)
    if step is not None and averages[0] != averages[1]:
        sentence = (
            f"{run_a} and {run_b} have the same {common} steps, and part in the moving average of "
            f"the weights after step {step - 1}: {averages[0][:16]}, {averages[1][:16]}"
        )
        sentence += _say_circumstances(run_a, run_b, step - 1)
        return Comparison(False, common, sentence, step - 1, "average")
    compared = f"{counted(digests, 'digest')} of the weights"
    if step is not None:
        compared += " and their moving averages"
    sentence = (
        f"{run_a} and {run_b} are equal to the bit over their {common} common steps ({compared} "
        "compared)"
    )
    if not digests and step is None:
        sentence = (
            f"{run_a} and {run_b} have the same {common} common steps, as far as losses and "
            "gradient norms tell: no digest of the weights is there to compare (train.digest_every)"
        )
    return Comparison(True, common, sentence + _say_configs(run_a, run_b))


def _common_lines(run_a: Path, run_b: Path) -> Iterator[tuple[dict, dict]]:
    """Pairs of the ledgers' lines on the same step, in order."""
    ledgers = [_whole_lines(run / "ledger.jsonl") for run in (run_a, run_b)]
    a, b = (next(ledger, None) for ledger in ledgers)
    while a is not None and b is not None:
        if a["step"] == b["step"]:
            yield a, b
        behind = a["step"] <= b["step"], b["step"] <= a["step"]
        a = next(ledgers[0], None) if behind[0] else a
        b = next(ledgers[1], None) if behind[1] else b


def _whole_lines(path: Path) -> Iterator[dict]:
    """The ledger's lines; raises `InputError` for one that lacks a field."""
    for line in read_ledger(path):
        for field in _FIELDS:
            if field not in line and field != "weights":  # not every line has a digest of these
                raise InputError(f"{path}: the line of step {line['step']} has no '{field}'")
        yield line


def _final_averages(run_a: Path, run_b: Path) -> tuple[int | None, list[str]]:
    """The step of the moving averages in the runs' model.json and their digests.

    (None, []) if a file is missing or the steps differ.
    """
    paths = [run / "model.json" for run in (run_a, run_b)]
    if not all(path.is_file() for path in paths):
        return None, []
    (step_a, digest_a), (step_b, digest_b) = (_step_and_digest(path) for path in paths)
    return (step_a, [digest_a, digest_b]) if step_a == step_b else (None, [])


def _step_and_digest(path: Path) -> tuple[int, str]:
    try:
        card = json.loads(path.read_text(encoding="utf-8"))
        return card["steps"], card["weights_digest"]
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path} is damaged: {error}") from None


def _say_circumstances(run_a: Path, run_b: Path, step: int) -> str:
    differences = environment_differences(run_a, run_b, step)
    told = f"; their environments differ there: {', '.join(differences)}" if differences else ""
    return _say_configs(run_a, run_b) + told


def _say_configs(run_a: Path, run_b: Path) -> str:
    paths = [run / "config.yaml" for run in (run_a, run_b)]
    if not all(path.is_file() for path in paths):
        return ""
    a, b = (load_config(path) for path in paths)
    differences = config_differences(a, b)
    # `config_differences` ignores these two, yet both change a run's bits.
    if a.shards.x_dtype != b.shards.x_dtype:
        differences.append(f"shards.x_dtype is {a.shards.x_dtype} and {b.shards.x_dtype}")
    starts = [_start(run_a, a), _start(run_b, b)]
    if starts[0] != starts[1]:
        differences.append(f"train.init_from is {starts[0]} and {starts[1]}")
    if not differences:
        return "; their configs are the same"
    readable = (text.replace(" there, ", " and ").removesuffix(" now") for text in differences)
    return f"; their configs differ: {', '.join(readable)}"


def _start(run: Path, config: Config) -> str:
    """What a run began from: "null" for its seed, else the weights' digest, or path if unknown."""
    if config.train.init_from is None:
        return "null"
    for checkpoint in reversed(checkpoints(run / "checkpoints")):
        with contextlib.suppress(InputError, OSError):
            if parent := read_state(checkpoint).lineage.parent:
                return f"of digest {parent[:16]}"
    return config.train.init_from


def _readable(field: str, value: object) -> str:
    if field in ("learning_rate", "loss", "gradient_norm"):
        with contextlib.suppress(ValueError, OverflowError):  # of a damaged line, what it holds
            return repr(float.fromhex(str(value)))
    return str(value)
