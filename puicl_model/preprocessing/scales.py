"""Words that have an order of their own: grades, answers of questionnaires, sizes, months.

The alphabet knows nothing of it: it puts `high` before `low` and `always` before `never`.
"""

import functools
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

_WRITTEN = Path(__file__).with_name("scales.txt")

# So many levels of different ranks make a scale: of two, each order is the other turned round.
_FEWEST = 3

# What questionnaires ask for, from the one to the other.
_OPPOSITES = (
    *("disagree < agree", "dissatisfied, unsatisfied < satisfied", "unhappy, sad < happy"),
    *("unlikely < likely", "unimportant < important", "unconcerned < concerned"),
    *("negative < positive", "unfavorable, unfavourable < favorable, favourable"),
    *("difficult, hard < easy", "unsafe < safe", "uncomfortable < comfortable", "worse < better"),
    *("oppose, against < favor, favour, support", "distrust < trust", "dislike < like"),
    *("liberal < conservative", "decreased, decrease < increased, increase"),
)
# How much of them, from a little to all of it; on either side of the word.
_DEGREES = (
    "slightly, a little, a bit, mildly, lean, leaning, probably",
    "somewhat, moderately, tend to",
    "fairly, rather, quite, mostly, generally",
    "",
    "very, strongly, highly, much, definitely, very much",
    "extremely, completely, totally, entirely, absolutely",
)
_NEITHER = (
    "neutral, neither, undecided, unsure, uncertain, mixed, moderate, indifferent, no opinion, "
    "no change, unchanged, same, the same, about the same, in the middle, normal"
)
# By the distance to which a word is denied: "not at all important" is as far as "extremely
# unimportant", "not important" as "unimportant".
_NOT = {6: "not at all", 4: "not", 2: "not very, not so, not too, not really"}
# What people say who say nothing else: behind all ranks.
NO_ANSWER = frozenset(
    {
        *("unknown", "other", "not known", "dont know", "dk", "unspecified", "unassigned"),
        *("missing", "unavailable", "not available", "not recorded", "not reported", "not stated"),
        *("not applicable", "refused", "refusal", "declined", "declined to answer", "no answer"),
        *("not answered", "no response", "no data", "undisclosed", "prefer not to say"),
        *("prefer not to answer", "do not know", "not sure", "cant say"),
    }
)
# What stands before 1 where it stands beside numbers, and what before the least of them.
ZERO = frozenset(
    {
        *("none", "no", "nil", "zero", "never", "absent", "negative", "neg", "not at all"),
        *("not detected", "undetected", "undetectable"),
    }
)
TRACE = frozenset({"trace", "traces"})
# How much a test strip has changed: -, (+), +, ++.
_PLUSES = re.compile(r"\++")
_NO_PLUS, _HARDLY_A_PLUS = (
    frozenset("-\u2010\u2011\u2012\u2013\u2014\u22120"),
    {"(+)", "+-", "+/-", "±"},
)
# Who grades something as one of these has a word for its absence.
_MILD = frozenset({"mild", "very mild", "slight", "very slight", "minor", "trivial"})
_APART = re.compile(r"[\s_\-–—./]+")
_MARKS = re.compile(r"['’`´\"()!,;:]")


def ranks(levels: Iterable[str]) -> dict[str, int]:
    """Of each level its place on the scale that all of `levels` are from; empty where none is.

    Case, hyphens and the like do not matter, nor words that all levels begin or end with (low risk,
    high risk). What gives no answer (`unknown`, `refused`) comes last. Pluses count: -, +, ++.
    """
    said = {level: bare(level) for level in levels}
    if pluses := _pluses(said):
        return pluses
    for words in _readings(said):
        for scale in _scales():
            places = [scale[each] for each in words.values() if each in scale]
            if len(places) == len(words) and len(set(places)) >= _FEWEST:
                found = dict(zip(words, places, strict=True))
                return {level: found.get(level, len(scale)) for level in said}
    return {}


def _pluses(said: dict[str, str]) -> dict[str, int]:
    """Of each level how many pluses it has, where all levels say so and two are some."""
    found, silent = {}, {}
    for level, words in said.items():
        sign = level.strip()
        if sign in _NO_PLUS or words in ZERO:
            found[level] = 0
        elif sign in _HARDLY_A_PLUS or words in TRACE:
            found[level] = 1
        elif _PLUSES.fullmatch(sign):
            found[level] = 1 + len(sign)
        elif no_answer(level):
            silent[level] = 0
        else:
            return {}
    most = max(found.values(), default=0)
    if most < 3 or len(set(found.values())) < _FEWEST:
        return {}
    return found | dict.fromkeys(silent, most + 1)


def lacks_none(levels: Iterable[str]) -> bool:
    """Whether `levels` are grades of something bad without a word for none of it."""
    levels = list(levels)
    if _MILD.isdisjoint(map(bare, levels)):
        return False
    found = ranks([*levels, "none"])
    return bool(found) and min(found[level] for level in levels) > found["none"]


def _readings(said: dict[str, str]) -> Iterator[dict[str, str]]:
    """The words of the levels that give an answer; then without what these have in common, and
    without what all have (no risk, unknown risk)."""
    yield (answers := _answers(said))
    yield _without_what_is_common(answers)
    yield _answers(_without_what_is_common(said))


def no_answer(level: str) -> bool:
    """Whether `level` is what people say who say nothing else: `unknown`, `refused`."""
    return bare(level) in _SILENT


def _answers(said: dict[str, str]) -> dict[str, str]:
    return {level: words for level, words in said.items() if words not in _SILENT}


def bare(level: str) -> str:
    """`level` in lower case, with blanks for hyphens and the like, and without marks."""
    return _APART.sub(" ", _MARKS.sub("", level.casefold())).strip()


def _without_what_is_common(said: dict[str, str]) -> dict[str, str]:
    """`said` without the words that all begin with, and without those that all end with."""
    rest = {level: words.split() for level, words in said.items()}
    for end in (0, -1):
        while rest and all(len(words) > 1 for words in rest.values()):
            if len({words[end] for words in rest.values()}) > 1:
                break
            for words in rest.values():
                words.pop(end)
    return {level: " ".join(words) for level, words in rest.items()}


def _words(text: str) -> list[str]:
    return text.split(", ")


_SILENT = NO_ANSWER | {""}


@functools.cache
def _scales() -> list[dict[str, int]]:
    """Each scale's words and their ranks: those of the file, and one for each of `_OPPOSITES`."""
    lines = _WRITTEN.read_text(encoding="utf-8").splitlines()
    paragraphs = "\n".join(line for line in lines if not line.startswith("#")).split("\n\n")
    written = [
        {word: rank for rank, line in enumerate(scale.split("\n")) for word in _words(line)}
        for scale in map(str.strip, paragraphs)
        if scale
    ]
    return written + [_between(*map(_words, pair.split(" < "))) for pair in _OPPOSITES]


def _between(negative: Sequence[str], positive: Sequence[str]) -> dict[str, int]:
    """The scale from `extremely negative` to `extremely positive`."""
    middle = len(_DEGREES) + 1
    neither = {
        f"neither {a} nor {b}"
        for one in negative
        for other in positive
        for a, b in ((one, other), (other, one))
    }
    scale = dict.fromkeys({*_words(_NEITHER), *neither}, middle)
    for distance, denials in _NOT.items():
        said = {f"{denial} {word}" for denial in _words(denials) for word in positive}
        scale |= dict.fromkeys(said, middle - distance)
    for words, direction in ((negative, -1), (positive, 1)):
        for distance, degrees in enumerate(_DEGREES, start=1):
            pairs = [(degree, word) for degree in _words(degrees) for word in words]
            said = {f"{a} {b}".strip() for pair in pairs for a, b in (pair, pair[::-1])}
            scale |= dict.fromkeys(said, middle + direction * distance)
    return scale
