"""Generated blocks of documents: text between markers that scripts renew or check."""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from pu_bench.report.blocks import Cell, Table, markdown_rows
from puicl_config import InputError, write_atomically


def markers(name: str) -> tuple[str, str]:
    """The markers before and after the block `name` in a document."""
    return f"<!-- {name}: generated -->", f"<!-- /{name} -->"


def renewed(text: str, blocks: Mapping[str, str]) -> str:
    """`text` with its blocks replaced; raises `InputError` if a marker is missing."""
    for name, block in blocks.items():
        first, last = markers(name)
        before, begin, rest = text.partition(first)
        _, end, after = rest.partition(last)
        if not begin or not end:
            raise InputError(f"the document lacks the markers of its block {name}: {first}, {last}")
        text = f"{before}{begin}\n{block}\n{end}{after}"
    return text


def plain_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Markdown table of texts."""
    return markdown_rows(Table("", list(head), [[Cell(text) for text in row] for row in rows]))


def renew_from_results(about: str, default: Path, renew: Callable[[str, Path], str]) -> None:
    """Command line of a script that renews a document from a folder of results.

    about: the script's docstring, whose first line becomes the description. With `--check` the
    process exits with 1 if the document would change, else with 0, and writes nothing.
    """
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    parser.add_argument("document", nargs="?", type=Path, default=default)
    parser.add_argument("--results", type=Path, default=Path("results/published"))
    parser.add_argument("--check", action="store_true", help="only exit with 1 if it would change")
    arguments = parser.parse_args()
    old = arguments.document.read_text(encoding="utf-8")
    new = renew(old, arguments.results)
    if arguments.check:
        sys.exit(old != new)
    write_atomically(arguments.document, new.encode())
