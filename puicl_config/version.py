"""What the commands' option `--version` does."""

import importlib.metadata
from collections.abc import Callable


def version_printer(command: str) -> Callable[[bool], None]:
    """Return a callback that, if its option is given, prints the version and ends the program."""

    def print_version(wanted: bool) -> None:
        if wanted:
            print(f"{command} {importlib.metadata.version('puicl')}")
            raise SystemExit

    return print_version
