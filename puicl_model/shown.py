"""Progress of reading tables, shown where it takes long."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock

from puicl_config import ProgressReport
from puicl_config.speaking import is_terminal

# Below this many cells (rows times columns, over all passes) no progress is shown: reading them
# takes about ten seconds on one CPU core without AVX-512.
_WORTH_SHOWING = 50_000


@contextmanager
def shown(
    verbose: bool | None, total: int, unit: str, cells: int
) -> Iterator[Callable[[int], None]]:
    """Yield a function that takes how many more of `total` units are done, to show progress.

    Any thread may call it, also after the end, when it shows nothing.

    verbose: whether to show it; None shows it on a terminal if `cells`, the number of cells read in
    total, is large.
    """
    if verbose is None:
        verbose = cells >= _WORTH_SHOWING and is_terminal(sys.stderr)
    if not verbose:
        yield lambda n: None
        return
    lock, over = Lock(), False
    with ProgressReport("puicl", total, unit) as progress:

        def advance(n: int) -> None:
            with lock:
                if not over:
                    progress.advance(n)

        try:
            yield advance
        finally:
            over = True
