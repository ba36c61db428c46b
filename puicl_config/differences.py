"""Differences between two configs, key by key."""

from collections.abc import Mapping, Sequence
from typing import Any

from puicl_config.digests import canonical_json
from puicl_config.fields import Section


def differences(
    first: Mapping[str, Any], second: Mapping[str, Any], section: type[Section]
) -> dict[str, tuple[Any, Any]]:
    """Map each dotted key that differs to its two values; both `section`s are given as plain data.

    A key that one of them lacks has its default there, since newer keys are written only if used.
    """
    found: dict[str, tuple[Any, Any]] = {}
    for key in {**first, **second}:
        field = section.model_fields[key]
        if isinstance(field.annotation, type) and issubclass(field.annotation, Section):
            inner = differences(first.get(key, {}), second.get(key, {}), field.annotation)
            found |= {f"{key}.{name}": pair for name, pair in inner.items()}
            continue
        usual = list(field.default) if isinstance(field.default, tuple) else field.default
        pair = first.get(key, usual), second.get(key, usual)
        if canonical_json(pair[0]) != canonical_json(pair[1]):
            found[key] = pair
    return found


def first_of(phrases: Sequence[str], most: int = 8) -> str:
    """The phrases of a sentence about differences; of many only the first, and how many more."""
    more = len(phrases) - most
    return "; ".join([*phrases[:most], *([f"and {more} more"] if more > 0 else [])])
