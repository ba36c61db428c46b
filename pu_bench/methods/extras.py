"""Packages that only some methods need: imported when used, told in one sentence when missing."""

import importlib
from types import ModuleType

from puicl_config import InputError


def extra_package(name: str, extra: str) -> ModuleType:
    """Import a package of an optional group; raises `InputError` where it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise InputError(f"{name} is missing ({error}): pip install 'puicl[{extra}]'") from None
