"""Factors of units, by which levels can be ordered: 2 years are more than 11 months."""

import re
from collections.abc import Iterable

_MONEY = {
    **dict.fromkeys(("", "usd", "eur", "gbp", "dollars", "euros"), 1.0),
    **dict.fromkeys(("k", "thousand"), 1e3),
    **dict.fromkeys(("m", "mn", "mio", "mill", "million", "millions"), 1e6),
    **dict.fromkeys(("b", "bn", "billion", "billions"), 1e9),
    **dict.fromkeys(("t", "tn", "trillion", "trillions"), 1e12),
}
_DAY = 86_400.0
_DAYS = dict.fromkeys(("d", "day", "days"), _DAY)
_MONTHS = ("mo", "mos", "mth", "mths", "month", "months")
_SHORT = {  # beside hours m is a minute, beside years a month
    **dict.fromkeys(("ms", "millisecond", "milliseconds"), 1e-3),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1.0),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), 3600.0),
    **_DAYS,
}
_LONG = {
    **_DAYS,
    **dict.fromkeys(("w", "wk", "wks", "week", "weeks"), 7 * _DAY),
    **dict.fromkeys(("m", *_MONTHS), 365.25 / 12 * _DAY),  # twelve are a year
    **dict.fromkeys(("y", "yr", "yrs", "year", "years"), 365.25 * _DAY),
}
_ANY_TIME = {unit: size for unit, size in (_LONG | _SHORT).items() if unit != "m"}
_BYTES = {
    unit: 1000.0**power
    for power, units in enumerate(("b", "kb kib", "mb mib", "gb gib", "tb tib", "pb pib"))
    for unit in units.split()
}
_MASS = {"ng": 1e-9, **dict.fromkeys(("µg", "μg", "ug", "mcg"), 1e-6), "mg": 1e-3}
_MASS |= {"g": 1.0, "kg": 1e3, **dict.fromkeys(("t", "ton", "tons", "tonne", "tonnes"), 1e6)}
_LENGTH = {"nm": 1e-9, **dict.fromkeys(("µm", "μm", "um"), 1e-6), "mm": 1e-3, "cm": 1e-2}
_LENGTH |= {"m": 1.0, "km": 1e3}
_VOLUME = {**dict.fromkeys(("µl", "μl", "ul"), 1e-6), "ml": 1e-3, "cl": 1e-2, "dl": 0.1, "l": 1.0}
_HERTZ = {"hz": 1.0, "khz": 1e3, "mhz": 1e6, "ghz": 1e9}
_BITS = {"bps": 1.0, "kbps": 1e3, "mbps": 1e6, "gbps": 1e9, "tbps": 1e12}
_TIMES = (_SHORT, _LONG, _ANY_TIME)
_FAMILIES = (_MONEY, *_TIMES, _BYTES, _MASS, _LENGTH, _VOLUME, _HERTZ, _BITS)

# Words before a bound, and words after an open end.
BELOW = ("<", "≤", "under", "below", "less than", "fewer than", "up to", "before", "pre-")
ABOVE = (">", "≥", "over", "above", "more than", "at least", "after", "since", "post-")
OPEN_END = r"\+|(?:or|and) (?:more|over|above|less|under|below)|plus"
_AMOUNT = r"[$€£]?\s?(?P<{0}>\d[\d,]*(?:\.\d+)?|\.\d+)\s?\+?\s?(?P<{0}_unit>[^\W\d_]+)?\s?[$€£]?"
_LEVEL = re.compile(
    rf"(?:{'|'.join(BELOW + ABOVE)})?=?\s*"
    rf"{_AMOUNT.format('first')}(?:\s*(?:-|–|—|to)\s*{_AMOUNT.format('second')})?"
    rf"\s*(?:{OPEN_END})?",
    re.IGNORECASE,
)


def factors(levels: Iterable[str]) -> dict[str, float]:
    """Factor of the unit of each level's first number; empty if the units cannot be compared.

    Each level must be an amount, a bound or a range. The unit is the word after the number or, if
    there is none in an ascending range, after the second number (2-3 months). All units must be of
    one kind, and at least two must differ. Only money may lack a unit (<500, 1K, 2M).
    """
    units: dict[str, str] = {}
    for level in levels:
        found = _LEVEL.fullmatch(level)
        if not found:
            return {}
        units[level] = _unit(found)
    sizes = units_of(units.values())
    return {level: sizes[unit] for level, unit in units.items()} if sizes else {}


def units_of(units: Iterable[str]) -> dict[str, float]:
    """Size of each of `units`, where "" counts as money, by the first kind that has all of them.

    Ignores case. Empty unless all units are of one kind and at least two differ in size.
    """
    units = set(units)
    for family in _FAMILIES:
        if all(unit.lower() in family for unit in units):
            sizes = {unit: family[unit.lower()] for unit in units}
            if len(set(sizes.values())) > 1:
                return sizes
    return {}


def time_units(units: Iterable[str]) -> dict[str, float]:
    """Seconds in each of `units`, ignoring case; empty unless all are units of time."""
    units = set(units)
    for family in _TIMES:
        if all(unit.lower() in family for unit in units):
            return {unit: family[unit.lower()] for unit in units}
    return {}


def _unit(found: re.Match[str]) -> str:
    unit = found["first_unit"] or ""
    if not unit and found["second_unit"]:
        first, second = (float(found[end].replace(",", "")) for end in ("first", "second"))
        if first <= second:  # 1,000 to 5K begins at one thousand
            unit = found["second_unit"]
    return unit.lower()
