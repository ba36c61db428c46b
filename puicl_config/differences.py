"""What two configs differ in, key by key."""

from collections.abc import Mapping
from typing import Any

from puicl_config.digests import canonical_json
from puicl_config.fields import Section


def differences(
    first: Mapping[str, Any], second: Mapping[str, Any], section: type[Section]
) -> dict[str, tuple[Any, Any]]:
    """Dotted key to both values, of two `section`s as plain data.

    A key that one of them leaves out has its default there: what came later is written only where
    it is used.
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
