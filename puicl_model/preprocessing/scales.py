"""Words that have an order of their own: grades, answers of questionnaires, sizes, months.

The alphabet knows nothing of it: it puts `high` before `low` and `always` before `never`.
"""

import functools
import re
from collections.abc import Iterable, Sequence
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
    *("liberal, left < conservative, right", "decreased, decrease < increased, increase"),
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
    "no change, unchanged, same, the same, about the same, in the middle"
)
# In questions that go from "not at all important" to "very important".
_NOT = ("not at all", "not, not very, not so, not too, not really")
# What people say who say nothing else: behind all ranks.
_NO_ANSWER = (
    "unknown, other, not known, dont know, dk, unspecified, unassigned, missing, unavailable, "
    "not available, not recorded, not reported, not stated, not applicable, refused, refusal, "
    "no answer, no response, prefer not to say"
)
# What stands before 1 where it stands beside numbers, and what before the least of them.
NOTHING = frozenset({"none", "no", "nil", "zero", "never", "absent", "negative", "not at all"})
TRACE = frozenset({"trace", "traces"})
_APART = re.compile(r"[\s_\-./]+")
_MARKS = re.compile(r"['’\"()!,;:]")


def ranks(levels: Iterable[str]) -> dict[str, int]:
    """Of each level its place on the scale that all of `levels` are from; empty where none is.

    Case, hyphens and the like do not matter, nor words that all levels begin or end with (low risk,
    high risk). What gives no answer (`unknown`, `refused`) comes last.
    """
    silent = _words(_NO_ANSWER)
    said = {level: plain(level) for level in levels}
    answers = {level: words for level, words in said.items() if words not in silent}
    if len(answers) < _FEWEST:
        return {}
    for words in (list(answers.values()), _without_what_is_common(list(answers.values()))):
        for scale in _scales():
            places = [scale[each] for each in words if each in scale]
            if len(places) == len(words) and len(set(places)) >= _FEWEST:
                found = dict(zip(answers, places, strict=True))
                return {level: found.get(level, len(scale)) for level in said}
    return {}


def plain(level: str) -> str:
    """`level` in lower case, with blanks for hyphens and the like, and without marks."""
    return _APART.sub(" ", _MARKS.sub("", level.casefold())).strip()


def _without_what_is_common(levels: Sequence[str]) -> list[str]:
    """`levels` without the words that all begin with, and without those that all end with."""
    rest = [level.split() for level in levels]
    for end in (0, -1):
        while all(len(words) > 1 for words in rest) and len({words[end] for words in rest}) == 1:
            for words in rest:
                words.pop(end)
    return [" ".join(words) for words in rest]


def _words(text: str) -> list[str]:
    return text.split(", ")


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
    middle = len(_NOT) + len(_DEGREES)
    neither = {
        f"neither {a} nor {b}"
        for one in negative
        for other in positive
        for a, b in ((one, other), (other, one))
    }
    scale = dict.fromkeys({*_words(_NEITHER), *neither}, middle)
    for place, denials in enumerate(_NOT):
        said = {f"{denial} {word}" for denial in _words(denials) for word in positive}
        scale |= dict.fromkeys(said, place)
    for words, direction in ((negative, -1), (positive, 1)):
        for distance, degrees in enumerate(_DEGREES, start=1):
            pairs = [(degree, word) for degree in _words(degrees) for word in words]
            said = {f"{a} {b}".strip() for pair in pairs for a, b in (pair, pair[::-1])}
            scale |= dict.fromkeys(said, middle + direction * distance)
    return scale
