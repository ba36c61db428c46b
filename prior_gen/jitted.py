"""Numba settings shared by all compiled loops."""

from collections.abc import Callable
from typing import Any

import numba


def jit(function: Callable[..., Any]) -> Any:
    """Compile `function` at its first call, and cache the machine code for later processes.

    If neither the function's folder nor the user's cache folder is writable (a read-only
    installation without a home), every process compiles again, to the same code.
    """
    # No fastmath: it would allow roundings that differ between processors. error_model="numpy",
    # since checks for division by zero would keep loops from being vectorised.
    settings: dict[str, Any] = {"boundscheck": False, "error_model": "numpy"}
    try:
        return numba.njit(cache=True, **settings)(function)
    except RuntimeError as error:
        if "no locator available" not in str(error):
            raise
        return numba.njit(**settings)(function)
