"""The compiler's settings, the same for every loop that is compiled."""

from collections.abc import Callable
from typing import Any

import numba


def jit(function: Callable[..., Any]) -> Any:
    """Compile `function` at its first call, and keep the code for the next process.

    Where no folder can be written to, neither the function's own nor the user's (an installation
    that is read only, without a home), every process compiles anew, to the same code.
    """
    # fastmath stays off: it would allow other roundings, on other processors others. And
    # error_model="numpy", as a check for division by zero would keep loops from being vectorised.
    settings: dict[str, Any] = {"boundscheck": False, "error_model": "numpy"}
    try:
        return numba.njit(cache=True, **settings)(function)
    except RuntimeError as error:
        if "no locator available" not in str(error):
            raise
        return numba.njit(**settings)(function)
