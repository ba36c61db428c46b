"""Warnings that name the user's own line, however many of our frames lie between."""

import sys
import warnings

# Packages whose frames are not the user's: this one, and those that call it for the user.
_BETWEEN = ("puicl_model", "sklearn", "joblib")


def tell(sentence: str, category: type[Warning] = UserWarning) -> None:
    """Warn as of the nearest frame outside these packages, or of the outermost frame of all.

    What Python 3.12's `skip_file_prefixes` does. A `stacklevel` in numbers would name a line of
    this package wherever a function is called through another one than was counted on.
    """
    level, frame = 1, sys._getframe()
    while frame.f_back and frame.f_globals.get("__name__", "").split(".")[0] in _BETWEEN:
        level, frame = level + 1, frame.f_back
    warnings.warn(sentence, category, stacklevel=level)
