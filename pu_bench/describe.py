"""Generate the tables of tasks and of methods in docs/benchmark.md from the code.

`python -m pu_bench.describe docs/benchmark.md` rewrites the text between the markers.
"""

import sys
from pathlib import Path

from pu_bench.data.tasks import PINS, POSITIVE, TASKS
from pu_bench.methods import METHODS
from pu_bench.report.generated import plain_table, renewed
from puicl_config import exit_on_input_error, write_atomically

_SEES = {"class_prior": "the true share of positives", "labels": "the hidden labels"}


def tasks_table() -> str:
    """Markdown: name, title, size, positive class, who published it, sources, licence, checksum."""
    rows = [
        [
            f"`{spec.name}`",
            spec.title,
            f"{spec.n_rows:,}",
            str(len(PINS[spec.name]["columns"]) - 1),
            POSITIVE[spec.name],
            spec.origin,
            " or ".join(map(str, spec.sources)),
            spec.licence,
            f"`{spec.digest[:12]}`",
        ]
        for spec in TASKS.values()
    ]
    head = ["name", "task", "rows", "columns", "positive", "published", "taken from", "licence"]
    return plain_table([*head, "SHA-256"], rows)


def methods_table() -> str:
    """Markdown: name, title, paper, whether scores are probabilities, inputs beyond P and U."""
    rows = [
        [
            f"`{method.name}`",
            method.title,
            method.reference,
            "yes" if method.is_probability else "no",
            ", ".join(_SEES[item] for item in sorted(method.sees)) or "–",
        ]
        for method in METHODS.values()
    ]
    return plain_table(
        ["name", "method", "reference", "a probability", "given beyond P and U"], rows
    )


def with_tables(text: str) -> str:
    """A document with its blocks renewed; raises `InputError` if a marker is missing."""
    return renewed(text, {"tasks": tasks_table(), "methods": methods_table()})


@exit_on_input_error
def main() -> None:
    """Command line."""
    path = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/benchmark.md")
    write_atomically(path, with_tables(path.read_text(encoding="utf-8")).encode())


if __name__ == "__main__":
    main()
