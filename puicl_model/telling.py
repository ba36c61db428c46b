"""Warnings that are attributed to the user's own line, however deep the call stack."""

import sys
import warnings

# Packages whose frames are not the user's: this one, and those that call it for the user.
_BETWEEN = ("puicl_model", "sklearn", "joblib")


def tell(sentence: str, category: type[Warning] = UserWarning) -> None:
    """Warn with the nearest frame outside `_BETWEEN` as location, or else the outermost frame.

    Python 3.12's `skip_file_prefixes` does the same. A fixed `stacklevel` would name a line of this
    package whenever a function is called by another path than assumed.
    """
    level, frame = 1, sys._getframe()
    while frame.f_back and frame.f_globals.get("__name__", "").split(".")[0] in _BETWEEN:
        level, frame = level + 1, frame.f_back
    warnings.warn(sentence, category, stacklevel=level)
