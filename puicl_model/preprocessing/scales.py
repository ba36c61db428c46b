"""Scales of words with a natural order: grades, answers of questionnaires, sizes, months.

Alphabetical order would put `high` before `low` and `always` before `never`.
"""

import functools
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

_WRITTEN = Path(__file__).with_name("scales.txt")

# Least number of different ranks in a scale: the order of two levels does not matter.
_FEWEST = 3

# Opposites that questionnaires ask for.
_OPPOSITES = (
    *("disagree < agree", "dissatisfied, unsatisfied < satisfied", "unhappy, sad < happy"),
    *("unlikely < likely", "unimportant < important", "unconcerned < concerned"),
    *("negative < positive", "unfavorable, unfavourable < favorable, favourable"),
    *("difficult, hard < easy", "unsafe < safe", "uncomfortable < comfortable", "worse < better"),
    *("oppose, against < favor, favour, support", "distrust < trust", "dislike < like"),
    *("liberal < conservative", "decreased, decrease < increased, increase"),
)
# Degrees of these, increasing; they may come before or after the word.
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
# Negations by their distance from neutral: "not at all important" equals "extremely unimportant",
# and "not important" equals "unimportant".
_NOT = {6: "not at all", 4: "not", 2: "not very, not so, not too, not really"}
# Answers without information, which are ranked after all others.
NO_ANSWER = frozenset(
    {
        *("unknown", "other", "not known", "dont know", "dk", "unspecified", "unassigned"),
        *("missing", "unavailable", "not available", "not recorded", "not reported", "not stated"),
        *("not applicable", "refused", "refusal", "declined", "declined to answer", "no answer"),
        *("not answered", "no response", "no data", "undisclosed", "prefer not to say"),
        *("prefer not to answer", "do not know", "not sure", "cant say"),
    }
)
# Words that mean 0 beside numbers, and words for an amount below the least of the numbers.
ZERO = frozenset(
    {
        *("none", "no", "nil", "zero", "never", "absent", "negative", "neg", "not at all"),
        *("not detected", "undetected", "undetectable"),
    }
)
TRACE = frozenset({"trace", "traces"})
# Results of test strips: -, (+), +, ++.
_PLUSES = re.compile(r"\++")
_NO_PLUS, _HARDLY_A_PLUS = (
    frozenset("-\u2010\u2011\u2012\u2013\u2014\u22120"),
    {"(+)", "+-", "+/-", "±"},
)
# A scale with one of these grades should also have a word for absence.
_MILD = frozenset({"mild", "very mild", "slight", "very slight", "minor", "trivial"})
_APART = re.compile(r"[\s_\-–—./]+")
_MARKS = re.compile(r"['’`´\"()!,;:]")


def ranks(levels: Iterable[str]) -> dict[str, int]:
    """Rank of each level on the scale to which all of `levels` belong; empty if there is none.

    Ignores case, hyphens and the like, and words with which all levels begin or end (low risk, high
    risk). Levels without an answer (`unknown`, `refused`) come last. Pluses (-, +, ++) are a scale.
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
    """Rank of each level by its pluses; empty if an answer is no such sign, or ranks are few."""
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
    """Whether `levels` are grades of severity without a word for `none`."""
    levels = list(levels)
    if _MILD.isdisjoint(map(bare, levels)):
        return False
    found = ranks([*levels, "none"])
    return bool(found) and min(found[level] for level in levels) > found["none"]


def _readings(said: dict[str, str]) -> Iterator[dict[str, str]]:
    """Yield ways to read the levels' words, without those that give no answer.

    First the words unchanged; then without words that all answers share; then without words that
    all levels share (no risk, unknown risk).
    """
    yield (answers := _answers(said))
    yield _without_what_is_common(answers)
    yield _answers(_without_what_is_common(said))


def no_answer(level: str) -> bool:
    """Whether `level` gives no answer: `unknown`, `refused`, or nothing but marks."""
    return bare(level) in _SILENT


def _answers(said: dict[str, str]) -> dict[str, str]:
    return {level: words for level, words in said.items() if words not in _SILENT}


def bare(level: str) -> str:
    """`level` in lower case, with blanks in place of hyphens and the like, without punctuation."""
    return _APART.sub(" ", _MARKS.sub("", level.casefold())).strip()


def _without_what_is_common(said: dict[str, str]) -> dict[str, str]:
    """`said` without the words with which all texts begin, and those with which all end."""
    rest = [words.split() for words in said.values()]
    shared = n_shared(rest)
    backwards = [words[shared:][::-1] for words in rest]
    shared = n_shared(backwards)
    return {
        level: " ".join(words[shared:][::-1]) for level, words in zip(said, backwards, strict=True)
    }


def n_shared(texts: Sequence[Sequence[str]]) -> int:
    """The number of words with which all `texts` begin, at most all but one of the shortest."""
    most = min(map(len, texts), default=1) - 1
    return next((n for n in range(most) if len({words[n] for words in texts}) > 1), max(most, 0))


def _words(text: str) -> list[str]:
    return text.split(", ")


_SILENT = NO_ANSWER | {""}


@functools.cache
def _scales() -> list[dict[str, int]]:
    """Ranks of the words of each scale: those in the file, and one for each of `_OPPOSITES`."""
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
