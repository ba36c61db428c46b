"""Split text of numbers into its parts: sign, currency, digits, unit."""

import re
from typing import NamedTuple

# Hyphens and dashes for a minus, without the ASCII one, which must come last in a character class.
DASHES = "\u2010\u2011\u2012\u2013\u2212"
_MINUS = f"{DASHES}-"
# Blanks and apostrophes that separate thousands; \u2019 is the typographic apostrophe.
BLANKS = "'\u2019 \u00a0\u2009\u202f"
CURRENCY_SIGNS = "$€£¥₹₩₽₺₫₪฿₴₦"
_SYMBOL = f"[{CURRENCY_SIGNS}]"
CURRENCIES = re.findall(
    r"\w+",
    "USD EUR GBP CHF JPY CNY INR AUD CAD NZD SEK NOK DKK PLN CZK HUF RON TRY BRL MXN ZAR KRW SGD",
)
_BEFORE = rf"(?:[A-Z]{{1,3}})?{_SYMBOL}|{'|'.join(CURRENCIES)}|R\$|Rs\.?"
# kg, mg/dl, cm², years old. `amounts` rejects most capitals: 10A and 11AB are flats.
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
# Digits with decimal point or decimal comma: in groups of three, of two and three as in India, or
# without groups. The first group does not begin with 0.
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
    """Parts of a number's text; sign: 1 or -1."""

    sign: int
    before: str
    digits: str
    after: str
    in_brackets: bool


def taken_apart(cell: str) -> NumberCell | None:
    """Split `cell` into its parts; None if it is not a number."""
    found = _CELL.fullmatch(cell)
    if not found:
        return None
    signs = [sign for sign in found.group("sign", "inner", "behind") if sign]
    in_brackets = bool(found["open"] or found["inside"])
    if found["open"] and found["inside"]:
        return None
    if in_brackets != bool(found["close"]) or len(signs) + in_brackets > 1:
        return None
    # 5- may be a grade, and (5) the number of a list item.
    marked = in_brackets or found["behind"]
    if marked and not (found["before"] or MARK.search(found["digits"])):
        return None
    if found["sign"] == "+" and BLANK.search(found["digits"]):  # a telephone: +49 170 123 456
        return None
    minus = in_brackets or any(sign in _MINUS for sign in signs)
    after = "".join((found["after"] or "").split()).removesuffix(".")
    if after and any(sign.isnumeric() for sign in re.sub("(?<=.)[²³]", "", after)):  # 5½, 10²
        return None
    return NumberCell(
        -1 if minus else 1, found["before"] or "", found["digits"], after, in_brackets
    )


def value_of(digits: str, decimal: str) -> float | None:
    """The number that `digits` mean with this `decimal` mark; None if they are not a number."""
    if not (_POINT if decimal == "." else _COMMA).fullmatch(digits):
        return None
    return float(_PARTING[decimal].sub("", digits).replace(",", "."))
