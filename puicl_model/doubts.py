"""Reasons not to trust the result of a fit, as sentences."""

from collections.abc import Sequence

import numpy as np
from scipy.special import logit

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


def doubts(
    *,
    n_labeled: int,
    proba: np.ndarray,
    resolution: float,
    relevance: np.ndarray,
    names: Sequence[str],
    apart: float,
    telltale: Telltale | None = None,
    n_copies: int = 0,
    given: tuple[float, float] | None = None,
    table_interval: tuple[float, float] = (np.nan, np.nan),
    interval: tuple[float, float] = (np.nan, np.nan),
    trained_shares: tuple[float, float] = (-np.inf, np.inf),
    of_columns: Sequence[str] = (),
    says_nothing: bool = False,
) -> list[str]:
    """Return warnings about a fit; empty if nothing is conspicuous.

    proba: [n_u], P(positive) of the unlabelled rows; resolution: their `class_prior.resolution`,
    before or after shifting to a given share, whichever is greater; relevance: [w], each column's
    |2 AUC - 1|, labelled against unlabelled rows; names: of the columns; apart: AUC of all columns
    together (`separation`), NaN with too few rows; telltale: result of `separation.telltale`;
    n_copies: result of `separation.copies`; given: the user's range of shares, with equal ends for
    a single share; table_interval: the interval without it; interval: of the estimated share;
    trained_shares: see `class_prior`; of_columns: warnings of the preprocessor; says_nothing:
    whether all rows are equal.
    """
    found = list(of_columns)
    share_is_given = given is not None and given[0] == given[1]
    if says_nothing:
        found.append(
            "no column tells any two rows apart, so all scores are the same and mean nothing"
        )
    if n_labeled < FEW_POSITIVES:
        positives = "positive" if n_labeled == 1 else "positives"
        guess = ", and the estimated share of positives is little more than a guess"
        found.append(
            f"only {n_labeled} labelled {positives}: with fewer than {FEW_POSITIVES} the scores "
            f"depend on which ones they happen to be{'' if share_is_given else guess}"
        )
    known, telling = "", ""
    if n_labeled >= FEW_POSITIVES:
        known = _who_is_labeled(n_labeled, proba, relevance, names, apart, telltale)
    if known:
        found.append(known)
    else:
        telling = _best_column(relevance, names)
    expected = 0.1 * len(proba) * n_copies / n_labeled
    many = n_copies >= _COPIES * n_labeled and expected >= _COPIES_EXPECTED
    if many and not known:
        found = [doubt for doubt in found if COPIES not in doubt]  # the warning below says more
        found.append(
            f"{n_copies} of the {n_labeled} labelled rows repeat other labelled rows, and no "
            "unlabelled row does: if they were oversampled, or drawn with replacement, they look "
            "unlike all others, and positives look rarer than they are. Leave the copies out"
        )
    of_share = [] if given is None else _doubts_of_given(given, table_interval, telling)
    if not of_share and not share_is_given:
        of_share = _doubts_of_estimate(proba, trained_shares, given, telling)
    lie_close = resolution < _NO_SPREAD and len(proba) >= _FEW_UNLABELED and not says_nothing
    if lie_close and not of_share:
        found.append(_close_together(proba, given, reverse=n_labeled > len(proba)))
    low, high = interval
    told = of_share or (lie_close and given is None)
    if not told and not share_is_given and high - low >= _WIDE:
        more = "that positives are the rarer class" if given is None else "a closer range"
        of_share = [
            f"the share of positives may be anything from {low:.0%} to {high:.0%}: every "
            "probability depends on it, but the order of the rows does not. If you know the "
            f"share, or {more}, give class_prior"
        ]
    return found + of_share


def in_percent(given: Sequence[float]) -> str:
    """Format a given range of shares; fractions of a percent matter if positives are rare."""
    least, most = given
    return f"{100 * least:.4g}% to {100 * most:.4g}%"


def _who_is_labeled(
    n_labeled: int,
    proba: np.ndarray,
    relevance: np.ndarray,
    names: Sequence[str],
    apart: float,
    telltale: Telltale | None,
) -> str:
    """A warning if columns reveal which rows are labelled; empty if none seems to."""
    alone = [name for name, value in zip(names, relevance, strict=True) if value >= _SEPARATES]
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
    if apart >= _SEPARATES:
        return (
            "the columns together separate nearly all labelled from unlabelled rows (AUC "
            f"{apart:.3f}): if the labelled rows are a fair sample, at most {2 * (1 - apart):.1%} "
            "of the unlabelled ones are positive; if more must be, the labelled ones were "
            "collected or measured differently"
        )
    share = proba.mean()
    if telltale is None or telltale.at_most > max(_LEAVES_FEW, share):
        return ""
    wrong = "; if more must be,"
    if telltale.at_most < share:
        up_to = f"class_prior a range up to {telltale.at_most:.2g}"
        wrong = f", not {share:.1%}: give {up_to} then; if more must be,"
    return (
        f"one value of column {names[telltale.column]} occurs in {telltale.n_labeled} of the "
        f"{n_labeled} labelled rows and in {telltale.n_unlabeled or 'none'} of the "
        f"{len(proba):,} unlabelled ones: if the labelled rows are a fair sample, at most "
        f"{telltale.at_most:.1%} of the unlabelled ones are positive{wrong} the column reveals "
        "who was labelled (a note made afterwards) and must be left out"
    )


def _best_column(relevance: np.ndarray, names: Sequence[str]) -> str:
    """Addition to a warning that few rows look positive: the best column, or empty."""
    most = max(relevance, default=0.0)
    # A column this good separates few labelled rows by chance; for more, there is another warning.
    if not _TELLS_MUCH <= most < _SEPARATES:
        return ""
    return (
        f". Column {names[int(np.argmax(relevance))]} alone separates labelled from unlabelled "
        f"rows well (AUC {(1 + most) / 2:.2f}): leave it out if it reveals who was labelled"
    )


def _doubts_of_given(
    given: tuple[float, float], own: tuple[float, float], telling: str
) -> list[str]:
    """A warning if the interval from the table alone, `own`, lies outside the `given` range.

    telling: sentence to add if the table suggests a smaller share.
    """
    is_range = given[0] < given[1]
    least, most = np.array(own)
    if not is_range:
        least, most = logit(own) + np.array([-_FAR, _FAR])
        given_there = logit(given)
    else:
        given_there = np.array(given)
    below, above = most <= given_there[0], least >= given_there[1]  # both False for NaN
    if not (below or above):
        return []
    what = f"the range that was given ({in_percent(given)})"
    if not is_range:
        what = f"the share that was given ({100 * given[0]:.4g}%)"
    return [
        f"by the table alone, {own[0]:.0%} to {own[1]:.0%} of the unlabelled rows are positive, "
        f"which contradicts {what}: one of the two is wrong, or the labelled rows are not a fair "
        f"sample of the positives{telling if below else ''}"
    ]


def _doubts_of_estimate(
    proba: np.ndarray,
    trained_shares: tuple[float, float],
    given: tuple[float, float] | None,
    telling: str,
) -> list[str]:
    """Warnings about the estimated share of positives, the mean of `proba` [n_u].

    Extreme estimates are no surprise if the `given` range holds only extreme shares. telling:
    sentence to add if few rows look positive.
    """
    share = proba.mean()
    least, most = trained_shares
    low, high = (0.0, 1.0) if given is None else given
    if share < _EXTREME_PRIOR and high > max(_EXTREME_PRIOR, least):
        return [
            f"hardly any unlabelled row looks positive ({share:.1%}): either positives are "
            "rare, or the labelled rows were collected differently from all unlabelled ones"
            f"{telling}"
        ]
    if share > 1 - _EXTREME_PRIOR and low < min(1 - _EXTREME_PRIOR, most):
        return [
            f"nearly every unlabelled row looks positive ({share:.1%}): the columns may say "
            "nothing about the class, or there may be hardly any negatives"
        ]
    if at_the_limit(share, trained_shares) and (high > least if share < 0.5 else low < most):
        return [
            f"the estimated share of positives ({share:.1%}) is near the limit of those that the "
            f"network was trained on ({least:.0%} to {most:.0%}): the true share may lie beyond "
            "it, and then the probabilities are wrong, too. If you know the share, give class_prior"
            f"{telling if share < 0.5 else ''}"
        ]
    return []


def _close_together(proba: np.ndarray, given: tuple[float, float] | None, *, reverse: bool) -> str:
    """A warning that the probabilities [n_u] hardly differ. reverse: `s` may be inverted."""
    low, high = np.quantile(proba, [0.05, 0.95])
    what = (
        "the table says little about the share of positives, whose estimate is little more than "
        "a guess, and perhaps little about the rows, too"
    )
    if given is not None:
        what = "they say little more than class_prior does"
    turned = ". Most rows are labelled: if 1 marks the unlabelled ones, invert s"
    return (
        "the probabilities of the unlabelled rows lie close together (nine in ten between "
        f"{100 * low:.2g}% and {100 * high:.2g}%): {what}{turned if reverse else ''}"
    )
