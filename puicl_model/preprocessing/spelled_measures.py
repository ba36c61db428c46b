"""Read angles, lengths in feet, fractions and durations in several units."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, ClassVar

from puicl_model.preprocessing.magnitudes import time_units
from puicl_model.preprocessing.spelling import Spelling, reads_all

_PRIME, _SECOND = "['\u2019\u2032]", "(?:[\"\u201d\u2033]|''|\u2019\u2019)"
# 46°12'30"N, 46° 12.5′, N 46.2°; 46.2N
_ANGLE = re.compile(
    r"(?P<ahead>[NSEW])?\s?(?P<sign>[+\-\u2212])?(?P<degrees>\d{1,3}(?:\.\d+)?)\s?"
    rf"(?P<mark>°)?(?:(?<=°)\s?(?P<minutes>\d{{1,2}}(?:\.\d+)?)\s?{_PRIME}"
    rf"(?:\s?(?P<seconds>\d{{1,2}}(?:\.\d+)?)\s?{_SECOND})?)?\s?(?P<behind>[NSEW])?"
)
# 5'11", 5 ft 11 in
_FEET = re.compile(
    rf"(?P<feet>\d{{1,3}})\s?(?:{_PRIME}|ft\.?|feet|foot)\s?"
    rf"(?:(?P<inches>\d{{1,2}}(?:\.\d+)?)\s?(?:{_SECOND}|in\.?|inch(?:es)?))?",
    re.IGNORECASE,
)
# 3/4
PART_OF_ONE = r"(?P<above>\d{1,2})/(?P<below>2|3|4|8|16|32|64)"
# 3 1/2, 3-1/2, 3/4
_FRACTION = re.compile(rf"(?:(?P<whole>\d+)(?:[ -](?=\d+/)|$))?(?:{PART_OF_ONE})?")
# PT1H20M, P1DT2H
_ISO = re.compile(
    r"P(?=.*\d)(?:(?P<w>\d+)W)?(?:(?P<d>\d+)D)?"
    r"(?:T(?:(?P<h>\d+)H)?(?:(?P<m>\d+)M)?(?:(?P<s>\d+(?:\.\d+)?)S)?)?"
)
# 1h 20m, 2 hours and 5 min, 3 years, 2 months
_PART = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s?(?P<unit>[^\W\d_]{1,12})\.?(?:,?\s?(?:and\s)?)?")


@dataclass(frozen=True)
class MeasureSpelling(Spelling):
    """Measures in several parts or with a compass direction.

    form: "angle" (read as degrees, negative in the south and west), "feet" (as inches), "fraction",
    "iso" (ISO 8601 durations, as seconds) or "lasting" (other durations, as seconds); units: for
    "lasting", the seconds in each unit.
    """

    kind: ClassVar[str] = "measure"

    form: str
    units: dict[str, float] = field(default_factory=dict)

    def of_text(self, cell):
        """See `Spelling`."""
        return _lasting(cell, self.units) if self.form == "lasting" else _FORMS[self.form](cell)

    def of_other(self, cell):
        """See `Spelling`. Accepts integers, which readers return for batches without fractions."""
        if self.form != "fraction" or not isinstance(cell, Real) or isinstance(cell, bool):
            return None
        value = float(cell)
        return value if value >= 0 and value.is_integer() else None


def measure_spelling(texts: Sequence[str], others: Sequence[Any]) -> MeasureSpelling | None:
    """The form in which all cells are angles, feet, fractions or durations; None if there is none.

    texts: the distinct texts; others: cells that are not text. Feet and durations with only one
    unit each are left to `number_spelling`, as numbers with units.
    """
    example = max(texts, key=len)
    for form in _FORMS:
        spelling = MeasureSpelling(example, form)
        if form == "angle" and not _of_one_circle(texts):
            continue
        if reads_all(spelling, texts, others) and (
            form not in _PARTS or any(_PARTS[form](text) > 1 for text in texts)
        ):
            return spelling
    if not all(map(_PART.match, texts)):
        return None
    parts = [list(_PART.finditer(text)) for text in texts]
    if not any(len(found) > 1 for found in parts):
        return None
    units = time_units(part["unit"] for found in parts for part in found)
    spelling = MeasureSpelling(example, "lasting", units)
    return spelling if units and reads_all(spelling, texts, others) else None


def _angle(text: str) -> float | None:
    found = _ANGLE.fullmatch(text)
    if not found or not (found["mark"] or found["ahead"] or found["behind"]):
        return None
    side = found["ahead"] or found["behind"]
    # -46 S would be negated twice; 46N may be a code, but 46.2N is not.
    if (found["ahead"] and found["behind"]) or (side and found["sign"] in ("-", "\u2212")):
        return None
    if not found["mark"] and "." not in found["degrees"]:
        return None
    minutes, seconds = (float(found[name] or 0) for name in ("minutes", "seconds"))
    degrees = float(found["degrees"]) + minutes / 60 + seconds / 3600
    most = 90 if side in ("N", "S") else 360
    if minutes >= 60 or seconds >= 60 or degrees > most:
        return None
    below = found["sign"] in ("-", "\u2212") or (side or "N") in "SW"
    return -degrees if below else degrees


def _of_one_circle(texts: Sequence[str]) -> bool:
    """Whether all `texts` may be latitudes, or all longitudes.

    Without degree signs, both directions must occur: 0.5W may be watts, and S1.2 a room.
    """
    sides = set("NSEW") & set("".join(texts))
    one = sides <= set("NS") or sides <= set("EW")
    return one and (len(sides) > 1 or any("°" in text for text in texts))


def _feet(text: str) -> float | None:
    found = _FEET.fullmatch(text)
    inches = float(found["inches"] or 0) if found else 0.0
    return None if found is None or inches >= 12 else 12 * float(found["feet"]) + inches


def _fraction(text: str) -> float | None:
    found = _FRACTION.fullmatch(text)
    if not found or not text:
        return None
    above, below = int(found["above"] or 0), int(found["below"] or 1)
    return None if above >= below else int(found["whole"] or 0) + above / below


def _iso(text: str) -> float | None:
    found = _ISO.fullmatch(text)
    if not found:
        return None
    sizes = {"w": 604_800, "d": 86_400, "h": 3600, "m": 60, "s": 1}
    return sum(float(found[unit] or 0) * size for unit, size in sizes.items())


def _lasting(text: str, units: dict[str, float]) -> float | None:
    """Sum of parts in seconds; None unless `text` has parts only, with ever smaller units."""
    total, end, before = 0.0, 0, float("inf")
    for part in _PART.finditer(text):
        size = units.get(part["unit"], 0.0)
        if part.start() != end or not 0 < size < before:
            return None
        total, end, before = total + float(part["number"]) * size, part.end(), size
    return total if end == len(text) > 0 else None


_FORMS: dict[str, Callable[[str], float | None]] = {
    "angle": _angle,
    "feet": _feet,
    "fraction": _fraction,
    "iso": _iso,
}
# Counts the parts of texts of these forms. Some text must have two: otherwise, 5 ft may just be one
# of several units, and 1/2 something else than a fraction.
_PARTS: dict[str, Callable[[str], int]] = {
    "feet": lambda text: len(re.findall(r"\d+(?:\.\d+)?", text)),
    "fraction": lambda text: len(re.findall(r"\d+", text)) - 1,
}
