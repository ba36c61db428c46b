"""Reasons not to trust the result of a fit, as sentences."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import logit

from puicl_config import counted
from puicl_model.class_prior import at_the_limit
from puicl_model.preprocessing.column_doubts import COPIES
from puicl_model.separation import Telltale

FEW_POSITIVES = 10
_EXTREME_PRIOR = 0.02
# Probabilities whose variance is less than this share of p (1 - p), with p their mean, say hardly
# more than p. The share is usually .01 to .05 for five columns of noise, .1 to .6 for real tables.
_NO_SPREAD = 0.06
_FEW_UNLABELED = 10
# An interval of shares this wide says hardly anything. The warning is given for nine in ten real
# tables whose estimate misses by more than .15, and for half of the others (docs/unseen.md).
_WIDE = 0.5
# A separation of labelled from unlabelled rows this good is suspicious, by a single column
# (|2 AUC - 1|) or by all columns together (AUC).
_SEPARATES = 0.99
# If hardly any unlabelled row looks positive, a column that alone separates labelled from
# unlabelled rows this well (|2 AUC - 1|) is named.
_TELLS_MUCH = 0.5
# A column is also named, whatever the share, if one of its values is so rare among unlabelled rows
# that, if the labelled rows are a fair sample, at most this share of them, or less than the
# estimated share, can be positive. Of 95 real tables as people have them, with shares from .02 to
# .4, none has a bound below .2, and two have one below the true share, by .012
# (benchmarks/telltales.py).
_LEAVES_FEW = 0.1
# Copies are reported if they are at least this share of the labelled rows, and if at least this
# many unlabelled rows should be copies, too, were a tenth of them positive.
_COPIES, _COPIES_EXPECTED = 0.1, 3
_MOST_NAMED = 5
# A given share contradicts the table's interval if it is this far outside, in log-odds. The margin
# is there because one in ten intervals does not reach the true share.
_FAR = 1.0


@dataclass(frozen=True)
class Labeling:
    """How the labelled rows differ from the unlabelled ones.

    names: of the columns; relevance: [w], each column's |2 AUC - 1|, labelled against unlabelled
    rows; apart: AUC of all columns together (`separation`), NaN with too few rows; telltale: result
    of `separation.telltale`; n_copies: result of `separation.copies`.
    """

    n_labeled: int
    names: Sequence[str]
    relevance: np.ndarray
    apart: float
    telltale: Telltale | None
    n_copies: int

    @property
    def are_few(self) -> bool:
        """Whether the labelled rows are so few that columns may separate them by chance."""
        return self.n_labeled < FEW_POSITIVES


@dataclass(frozen=True)
class Answer:
    """What a fit says of the unlabelled rows, and of the share of positives among them.

    proba: [n_u], P(positive); resolution: their `class_prior.resolution`, before or after shifting
    to a given share, whichever is greater; interval: of the estimated share; given: the user's
    range of shares, with equal ends for a single share; table_interval: the interval without it;
    trained_shares: see `class_prior`.
    """

    proba: np.ndarray
    resolution: float
    interval: tuple[float, float]
    given: tuple[float, float] | None
    table_interval: tuple[float, float]
    trained_shares: tuple[float, float]

    @property
    def is_told_the_share(self) -> bool:
        """Whether the user gave a single share, so that there is nothing to estimate."""
        return self.given is not None and self.given[0] == self.given[1]


def doubts(
    labeling: Labeling, answer: Answer, of_columns: Sequence[str], *, says_nothing: bool
) -> list[str]:
    """Return warnings about a fit; empty if nothing is conspicuous.

    of_columns: warnings of the preprocessor; says_nothing: whether all rows are equal.
    """
    no_column = "no column tells any two rows apart, so all scores are the same and mean nothing"
    known = _who_is_labeled(labeling, answer.proba)
    copied = "" if known else _copies(labeling, len(answer.proba))
    if copied:  # it says more than the preprocessor does of any copies
        of_columns = [doubt for doubt in of_columns if COPIES not in doubt]
    telling = "" if known else _best_column(labeling)
    of_share = _against_what_was_given(answer, telling) or _odd_estimate(answer, telling)
    enough = len(answer.proba) >= _FEW_UNLABELED
    alike = answer.resolution < _NO_SPREAD and enough and not says_nothing
    close = _close_together(answer, labeling.n_labeled) if alike and not of_share else ""
    if not of_share and not (alike and answer.given is None):
        of_share = _wide_interval(answer)
    sentences = (
        *of_columns,
        no_column if says_nothing else "",
        _few_positives(labeling.n_labeled, answer) if labeling.are_few else "",
        known,
        copied,
        close,
        of_share,
    )
    return [sentence for sentence in sentences if sentence]


def in_percent(given: Sequence[float]) -> str:
    """Format a given range of shares; fractions of a percent matter if positives are rare."""
    least, most = given
    return f"{100 * least:.4g}% to {100 * most:.4g}%"


def _few_positives(n_labeled: int, answer: Answer) -> str:
    guess = ", and the estimated share of positives is little more than a guess"
    return (
        f"only {counted(n_labeled, 'labelled positive')}: with fewer than {FEW_POSITIVES} the "
        f"scores depend on which ones they happen to be{'' if answer.is_told_the_share else guess}"
    )


def _who_is_labeled(labeling: Labeling, proba: np.ndarray) -> str:
    """A warning if columns reveal which rows are labelled; empty if none seems to."""
    if labeling.are_few:
        return ""
    named = zip(labeling.names, labeling.relevance, strict=True)
    alone = [name for name, value in named if value >= _SEPARATES]
    if alone:
        which, reveals = f"column {alone[0]} alone separates", "it reveals"
        if len(alone) > 1:
            more = f" and {len(alone) - _MOST_NAMED} more" if len(alone) > _MOST_NAMED else ""
            reveals = "they reveal"
            which = f"columns {', '.join(alone[:_MOST_NAMED])}{more}, each alone, separate"
        return (
            f"{which} nearly all labelled from unlabelled rows: either hardly any unlabelled row "
            f"is positive, or {reveals} who was labelled (an identifier, a date of entry, a note "
            "made afterwards) and must be left out"
        )
    apart = labeling.apart
    if apart >= _SEPARATES:
        return (
            "the columns together separate nearly all labelled from unlabelled rows (AUC "
            f"{apart:.3f}): if the labelled rows are a fair sample, at most {2 * (1 - apart):.1%} "
            "of the unlabelled ones are positive; if more must be, the labelled ones were "
            "collected or measured differently"
        )
    share, telltale = proba.mean(), labeling.telltale
    if telltale is None or telltale.at_most > max(_LEAVES_FEW, share):
        return ""
    wrong = "; if more must be,"
    if telltale.at_most < share:
        up_to = f"class_prior a range up to {telltale.at_most:.2g}"
        wrong = f", not {share:.1%}: give {up_to} then; if more must be,"
    return (
        f"one value of column {labeling.names[telltale.column]} occurs in {telltale.n_labeled} of "
        f"the {labeling.n_labeled} labelled rows and in {telltale.n_unlabeled or 'none'} of the "
        f"{len(proba):,} unlabelled ones: if the labelled rows are a fair sample, at most "
        f"{telltale.at_most:.1%} of the unlabelled ones are positive{wrong} the column reveals "
        "who was labelled (a note made afterwards) and must be left out"
    )


def _copies(labeling: Labeling, n_unlabeled: int) -> str:
    """A warning if labelled rows are copies of each other, and too many by chance; else empty."""
    n_copies, n_labeled = labeling.n_copies, labeling.n_labeled
    expected = 0.1 * n_unlabeled * n_copies / n_labeled
    if n_copies < _COPIES * n_labeled or expected < _COPIES_EXPECTED:
        return ""
    return (
        f"{n_copies} of the {n_labeled} labelled rows repeat other labelled rows, and no "
        "unlabelled row does: if they were oversampled, or drawn with replacement, they look "
        "unlike all others, and positives look rarer than they are. Leave the copies out"
    )


def _best_column(labeling: Labeling) -> str:
    """Addition to a warning that few rows look positive: the best column, or empty."""
    most = max(labeling.relevance, default=0.0)
    # A column this good separates few labelled rows by chance; for more, there is another warning.
    if not _TELLS_MUCH <= most < _SEPARATES:
        return ""
    name = labeling.names[int(np.argmax(labeling.relevance))]
    return (
        f". Column {name} alone separates labelled from unlabelled "
        f"rows well (AUC {(1 + most) / 2:.2f}): leave it out if it reveals who was labelled"
    )


def _against_what_was_given(answer: Answer, telling: str) -> str:
    """A warning if the interval from the table alone lies outside the given range; else empty.

    telling: sentence to add if the table suggests a smaller share.
    """
    given, own = answer.given, answer.table_interval
    if given is None:
        return ""
    least, most = np.array(own)
    given_there = np.array(given)
    what = f"the range that was given ({in_percent(given)})"
    if answer.is_told_the_share:
        least, most = logit(own) + np.array([-_FAR, _FAR])
        given_there = logit(given)
        what = f"the share that was given ({100 * given[0]:.4g}%)"
    below, above = most <= given_there[0], least >= given_there[1]  # both False for NaN
    if not (below or above):
        return ""
    return (
        f"by the table alone, {own[0]:.0%} to {own[1]:.0%} of the unlabelled rows are positive, "
        f"which contradicts {what}: one of the two is wrong, or the labelled rows are not a fair "
        f"sample of the positives{telling if below else ''}"
    )


def _odd_estimate(answer: Answer, telling: str) -> str:
    """A warning about the estimated share of positives, the mean of the probabilities; or empty.

    Extreme estimates are no surprise if the given range holds only extreme shares. telling:
    sentence to add if few rows look positive.
    """
    if answer.is_told_the_share:
        return ""
    share = answer.proba.mean()
    least, most = answer.trained_shares
    low, high = answer.given or (0.0, 1.0)
    if share < _EXTREME_PRIOR and high > max(_EXTREME_PRIOR, least):
        return (
            f"hardly any unlabelled row looks positive ({share:.1%}): either positives are "
            "rare, or the labelled rows were collected differently from all unlabelled ones"
            f"{telling}"
        )
    if share > 1 - _EXTREME_PRIOR and low < min(1 - _EXTREME_PRIOR, most):
        return (
            f"nearly every unlabelled row looks positive ({share:.1%}): the columns may say "
            "nothing about the class, or there may be hardly any negatives"
        )
    if at_the_limit(share, (least, most)) and (high > least if share < 0.5 else low < most):
        return (
            f"the estimated share of positives ({share:.1%}) is near the limit of those that the "
            f"network was trained on ({least:.0%} to {most:.0%}): the true share may lie beyond "
            "it, and then the probabilities are wrong, too. If you know the share, give class_prior"
            f"{telling if share < 0.5 else ''}"
        )
    return ""


def _wide_interval(answer: Answer) -> str:
    """A warning if the interval of an estimated share says hardly anything; else empty."""
    low, high = answer.interval
    if answer.is_told_the_share or not high - low >= _WIDE:  # NaN is not wide
        return ""
    more = "that positives are the rarer class" if answer.given is None else "a closer range"
    return (
        f"the share of positives may be anything from {low:.0%} to {high:.0%}: every "
        "probability depends on it, but the order of the rows does not. If you know the "
        f"share, or {more}, give class_prior"
    )


def _close_together(answer: Answer, n_labeled: int) -> str:
    """A warning that the probabilities hardly differ; if most rows are labelled, `s` may be why."""
    low, high = np.quantile(answer.proba, [0.05, 0.95])
    what = (
        "the table says little about the share of positives, whose estimate is little more than "
        "a guess, and perhaps little about the rows, too"
    )
    if answer.given is not None:
        what = "they say little more than class_prior does"
    turned = ". Most rows are labelled: if 1 marks the unlabelled ones, invert s"
    return (
        "the probabilities of the unlabelled rows lie close together (nine in ten between "
        f"{100 * low:.2g}% and {100 * high:.2g}%): {what}"
        f"{turned if n_labeled > len(answer.proba) else ''}"
    )
