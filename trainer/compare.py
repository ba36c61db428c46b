"""Where two runs part, read from their ledgers."""

from dataclasses import dataclass
from pathlib import Path

from puicl_config import load_config
from trainer.ledger import read_ledger
from trainer.run_folder import config_differences

# In the order in which a step computes them: the first that differs is nearest to the cause.
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
    """`equal` over `steps` common steps; otherwise they part at `step` in `field`."""

    equal: bool
    steps: int
    sentence: str
    step: int | None = None
    field: str | None = None


def compare_runs(run_a: Path, run_b: Path) -> Comparison:
    """Compare two ledgers bit by bit over the steps that both have.

    Digests of the weights are compared where both runs recorded one. Where the runs part, the
    sentence also says after which step their weights were last seen equal, and in which keys
    their configs differ.
    """
    common, digests, last_digest = 0, 0, None
    ledgers = (read_ledger(run / "ledger.jsonl") for run in (run_a, run_b))
    for a, b in zip(*ledgers, strict=False):
        for field, meaning in _FIELDS.items():
            if field == "weights" and not (field in a and field in b):
                continue
            if a[field] != b[field]:
                values = ", ".join(_readable(field, line[field]) for line in (a, b))
                sentence = f"{run_a} and {run_b} part at step {a['step']} in {meaning}: {values}"
                if last_digest is not None:
                    sentence += f"; their weights were last seen equal after step {last_digest}"
                sentence += _say_configs(run_a, run_b)
                return Comparison(False, common, sentence, a["step"], field)
        common += 1
        if "weights" in a and "weights" in b:
            digests, last_digest = digests + 1, a["step"]
    sentence = (
        f"{run_a} and {run_b} are equal to the bit over their {common} common steps "
        f"({digests} digests of the weights compared)"
    )
    return Comparison(True, common, sentence)


def _say_configs(run_a: Path, run_b: Path) -> str:
    paths = [run / "config.yaml" for run in (run_a, run_b)]
    if not all(path.is_file() for path in paths):
        return ""
    differences = config_differences(*(load_config(path) for path in paths))
    if not differences:
        return "; their configs are the same"
    readable = (text.replace(" there, ", " and ").removesuffix(" now") for text in differences)
    return f"; their configs differ: {', '.join(readable)}"


def _readable(field: str, value: object) -> str:
    if field in ("learning_rate", "loss", "gradient_norm"):
        return repr(float.fromhex(str(value)))
    return str(value)
