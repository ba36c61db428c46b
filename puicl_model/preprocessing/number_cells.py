"""Cells that say numbers taken apart: sign, currency, digits, unit."""

import re
from typing import NamedTuple

# Hyphens and dashes that stand for a minus, but ASCII's, which has to be the last in a class.
DASHES = "\u2010\u2011\u2012\u2013\u2212"
_MINUS = f"{DASHES}-"
# Blanks and apostrophes part thousands wherever they stand; \u2019 is a typographer's.
BLANKS = "'\u2019 \u00a0\u2009\u202f"
CURRENCY_SIGNS = "$€£¥₹₩₽₺₫₪฿₴₦"
_SYMBOL = f"[{CURRENCY_SIGNS}]"
CURRENCIES = re.findall(
    r"\w+",
    "USD EUR GBP CHF JPY CNY INR AUD CAD NZD SEK NOK DKK PLN CZK HUF RON TRY BRL MXN ZAR KRW SGD",
)
_BEFORE = rf"(?:[A-Z]{{1,3}})?{_SYMBOL}|{'|'.join(CURRENCIES)}|R\$|Rs\.?"
# kg, mg/dl, cm², years old; no capitals but those of a few: 10A and 11AB are flats.
_WORD = r"[^\W\d_]{1,12}[²³]?"
_AFTER = (
    rf"[%‰]|°\s?[^\W\d_]?|{_SYMBOL}(?:\s?/\s?{_WORD})?"
    rf"|{_WORD}\.?(?:\s?/\s?{_WORD}|\s{_WORD}|\s?{_SYMBOL})?"
)
MONEY = frozenset({*CURRENCIES, *CURRENCY_SIGNS})
_CELL = re.compile(
    rf"(?P<open>\()?(?P<sign>[+{_MINUS}])?\s?"
    rf"(?:(?P<before>{_BEFORE})\s?(?P<inner>[{_MINUS}])?(?P<inside>\()?)?"
    rf"(?P<digits>(?:\d[\d.,{BLANKS}]*)?\d(?:[eE][+-]?\d+)?|[.,]\d+)"
    rf"\s?(?P<after>{_AFTER})?(?P<close>\))?(?P<behind>[{_MINUS}])?"
)
# By the decimal mark, groups of three, of two and three as in India, or none; no group begins
# with 0.
_POINT = re.compile(
    rf"(?:[1-9]\d{{0,2}}(?:(?:,\d{{2,3}})*,\d{{3}}|(?:[{BLANKS}]\d{{3}})+)|\d*)(?:\.\d+)?"
    r"(?:[eE][+-]?\d+)?"
)
_COMMA = re.compile(
    rf"(?:[1-9]\d{{0,2}}(?:(?:\.\d{{3}})+|(?:[{BLANKS}]\d{{3}})+)|\d*)(?:,\d+)?(?:[eE][+-]?\d+)?"
)
_PARTING = {".": re.compile(rf"[,{BLANKS}]"), ",": re.compile(rf"[.{BLANKS}]")}
MARK = re.compile("[.,]")
BLANK = re.compile(f"[{BLANKS}]")


class NumberCell(NamedTuple):
    """A text taken apart; sign: 1 or -1."""

    sign: int
    before: str
    digits: str
    after: str
    in_brackets: bool


def taken_apart(cell: str) -> NumberCell | None:
    """The parts of `cell`; None where it says no number."""
    found = _CELL.fullmatch(cell)
    if not found:
        return None
    signs = [sign for sign in found.group("sign", "inner", "behind") if sign]
    in_brackets = bool(found["open"] or found["inside"])
    if found["open"] and found["inside"]:
        return None
    if in_brackets != bool(found["close"]) or len(signs) + in_brackets > 1:
        return None
    # 5- and (5) may be a grade and the number of a list.
    marked = in_brackets or found["behind"]
    if marked and not (found["before"] or MARK.search(found["digits"])):
        return None
    if found["sign"] == "+" and BLANK.search(found["digits"]):  # +49 170 123 456 is a telephone's
        return None
    minus = in_brackets or any(sign in _MINUS for sign in signs)
    after = "".join((found["after"] or "").split()).removesuffix(".")
    if after and any(sign.isnumeric() for sign in re.sub("(?<=.)[²³]", "", after)):  # 5½, 10²
        return None
    return NumberCell(
        -1 if minus else 1, found["before"] or "", found["digits"], after, in_brackets
    )


def value_of(digits: str, decimal: str) -> float | None:
    """The number that `digits` are with that `decimal` mark; None where they are none."""
    if not (_POINT if decimal == "." else _COMMA).fullmatch(digits):
        return None
    return float(_PARTING[decimal].sub("", digits).replace(",", "."))
