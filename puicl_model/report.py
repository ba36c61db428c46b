"""What a fit was, as plain data, with reasons not to trust its answer."""

import contextlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import logit
from sklearn.base import BaseEstimator

from puicl_model import class_prior as priors
from puicl_model.contexts import View
from puicl_model.separation import separation

FEW_POSITIVES = 10
_EXTREME_PRIOR = 0.02
# Probabilities whose variance is less than this share of p (1 - p), p their mean, say hardly more
# than p. Of five noise columns it is .01 to .05 as a rule, of real tables .1 to .6.
_NO_SPREAD = 0.06
_FEW_UNLABELED = 10
# An interval of shares as wide says hardly anything of them. Of real tables whose estimate misses
# by more than .15 it warns of nine in ten, of the others of half (docs/unseen.md).
_WIDE = 0.5
# What orders labelled before unlabelled rows this well, a column alone (|2 AUC - 1|) or all of
# them together (AUC), is suspicious.
_SEPARATES = 0.99
# A column that tells them apart this well alone (|2 AUC - 1|) is named where hardly any unlabelled
# row looks positive.
_TELLS_MUCH = 0.5
_MOST_NAMED = 5


def make_report(
    classifier: BaseEstimator,
    X: np.ndarray,
    relevance: np.ndarray,
    estimators: list[list[View]],
    class_prior: float | tuple[float, float] | None,
    table_interval: tuple[float, float],
) -> dict[str, Any]:
    """`report_` of a fitted classifier.

    X: [n, w], the preprocessed table; relevance: see `doubts`; estimators: what was run;
    class_prior: the share that was given, or its range; table_interval: that of the share which the
    table gives without either.
    """
    prior_range: tuple[float, float] | None = None
    given: float | None = None
    if isinstance(class_prior, tuple | list):
        prior_range = float(class_prior[0]), float(class_prior[1])
    elif class_prior is not None:
        given = float(class_prior)
    prior_is_given = given is not None
    preprocessor = classifier.preprocessor_
    names = _names(preprocessor, X.shape[1])
    views = [view for estimator in estimators for view in estimator]
    contexts = [context for view in views for context in view.contexts]
    labeled = np.ones(len(X), dtype=bool)
    labeled[classifier.unlabeled_rows_] = False
    apart = separation(X, labeled)
    n_unlabeled = len(classifier.unlabeled_rows_)
    n_labeled = len(X) - n_unlabeled
    return {
        "n_labeled": n_labeled,
        "n_unlabeled": n_unlabeled,
        "class_prior": classifier.class_prior_,
        "class_prior_interval": classifier.class_prior_interval_,
        # As `fit` was told: a share, its range as a list, or None.
        "class_prior_given": given if prior_range is None else list(prior_range),
        "columns": dict(getattr(preprocessor, "kinds_", {})),
        "network_columns": names,
        "forward_passes": len(contexts),
        "largest_context": {
            "labeled": max(len(context.labeled) for context in contexts),
            "unlabeled": max(len(context.unlabeled) for context in contexts),
            "columns": max(len(view.columns) for view in views),
        },
        # None where the table was left to the network.
        "blend": None if classifier._blend is None else classifier.blend,
        "separation": apart,
        "column_separation": dict(zip(names, relevance.tolist(), strict=True)),
        "warnings": doubts(
            n_labeled=n_labeled,
            proba=classifier.unlabeled_proba_,
            resolution=priors.resolution(logit(classifier.unlabeled_proba_) - classifier._offset),
            interval=None if prior_is_given else classifier.class_prior_interval_,
            prior_is_given=prior_is_given,
            prior_range=prior_range,
            table_interval=table_interval,
            trained_shares=priors.trained_shares(classifier.model_card_),
            relevance=relevance,
            names=names,
            apart=apart,
            of_columns=getattr(preprocessor, "doubts_", ()),
            says_nothing=bool((X.max(axis=0) == X.min(axis=0)).all()),
        ),
    }


def doubts(
    *,
    n_labeled: int,
    proba: np.ndarray,
    resolution: float,
    relevance: np.ndarray,
    names: Sequence[str],
    apart: float,
    prior_is_given: bool = False,
    prior_range: tuple[float, float] | None = None,
    table_interval: tuple[float, float] = (np.nan, np.nan),
    interval: tuple[float, float] | None = None,
    trained_shares: tuple[float, float] = (-np.inf, np.inf),
    of_columns: Sequence[str] = (),
    says_nothing: bool = False,
) -> list[str]:
    """Warnings about a fit; empty where nothing is conspicuous.

    proba: [n_u], of the unlabelled rows; resolution: `class_prior.resolution` of them before a
    given share or range moved them; relevance: [w], each column's |2 AUC - 1|, labelled against
    unlabelled; names: theirs; apart: the AUC of all columns together (`separation`), NaN where
    there are too few rows; prior_is_given: whether the share of positives is the user's;
    prior_range: the range of shares that is; table_interval: what the table gives without one;
    interval: of the estimated share;
    trained_shares: see `class_prior`; of_columns: what the preprocessor warns of; says_nothing:
    whether all rows are the same.
    """
    found = list(of_columns)
    mostly_labeled = n_labeled > len(proba)
    tells_little = resolution < _NO_SPREAD and len(proba) >= _FEW_UNLABELED and not says_nothing
    if says_nothing:
        found.append(
            "no column tells any two rows apart, so that all scores are the same and mean nothing"
        )
    if n_labeled < FEW_POSITIVES:
        positives = "positive" if n_labeled == 1 else "positives"
        guess = ", and the estimated share of positives is little more than a guess"
        found.append(
            f"only {n_labeled} labelled {positives}: with fewer than {FEW_POSITIVES} the scores "
            f"depend on which ones they happen to be{'' if prior_is_given else guess}"
        )
    alone = [name for name, value in zip(names, relevance, strict=True) if value >= _SEPARATES]
    if n_labeled >= FEW_POSITIVES and alone:
        which = f"column {alone[0]} alone tells"
        if len(alone) > 1:
            more = f" and {len(alone) - _MOST_NAMED} more" if len(alone) > _MOST_NAMED else ""
            which = f"columns {', '.join(alone[:_MOST_NAMED])}{more}, each alone, tell"
        found.append(
            f"{which} nearly all labelled from unlabelled rows: either hardly any unlabelled row "
            "is positive, or it knows who was labelled (an identifier, a date of entry, a note "
            "made afterwards) and must be left out"
        )
    elif n_labeled >= FEW_POSITIVES and apart >= _SEPARATES:
        found.append(
            "the columns together tell nearly all labelled from unlabelled rows (AUC "
            f"{apart:.3f}): if the labelled rows are a fair sample, at most {2 * (1 - apart):.1%} "
            "of the unlabelled ones are positive; if more must be, the labelled ones were "
            "collected or measured in another way"
        )
    if not prior_is_given:
        telling, most = "", max(relevance, default=0.0)
        if _TELLS_MUCH <= most < _SEPARATES:
            telling = (
                f". Column {names[int(np.argmax(relevance))]} alone tells labelled from unlabelled "
                f"rows well (AUC {(1 + most) / 2:.2f}): leave it out if it knows who was labelled"
            )
        if prior_range is None:
            of_prior = _doubts_of_prior(
                proba, trained_shares, telling, tells_little, mostly_labeled
            )
        else:
            of_prior = _doubts_of_range(prior_range, table_interval)
        if not of_prior and interval is not None and interval[1] - interval[0] >= _WIDE:
            low, high = interval
            more = "that positives are the rarer class" if prior_range is None else "a closer range"
            of_prior.append(
                f"the share of positives may be anything from {low:.0%} to {high:.0%}: every "
                "probability rises and falls with it, the order of the rows does not. Where "
                f"you know the share, or {more}, give class_prior"
            )
        found += of_prior
    if tells_little and (prior_is_given or prior_range is not None):
        found.append(
            "the columns hardly tell the unlabelled rows apart: their probabilities say little "
            f"more than class_prior does{_REVERSED if mostly_labeled else ''}"
        )
    return found


def _doubts_of_range(given: tuple[float, float], own: tuple[float, float]) -> list[str]:
    """A warning where the interval that the table gives by itself lies beyond the range `given`."""
    if not (own[1] <= given[0] or own[0] >= given[1]):  # or there is none
        return []
    return [
        f"the table by itself would have {own[0]:.0%} to {own[1]:.0%} of the unlabelled rows "
        f"positive, beyond the range that was given ({in_percent(given)}): one of the two is "
        "wrong, or the labelled rows are no fair sample of the positives"
    ]


def in_percent(given: Sequence[float]) -> str:
    """A range of shares as it was given: of rare positives, less than a percent counts."""
    least, most = given
    return f"{100 * least:.4g}% to {100 * most:.4g}%"


_REVERSED = ". Most rows are labelled: if 1 marks the unlabelled ones, turn s round"


def _doubts_of_prior(
    proba: np.ndarray,
    trained_shares: tuple[float, float],
    telling: str,
    tells_little: bool,
    mostly_labeled: bool,
) -> list[str]:
    """Warnings about the estimated share of positives, the mean of `proba` [n_u].

    telling: what to add where few look positive; tells_little: whether the rows look alike;
    mostly_labeled: whether most rows are labelled.
    """
    share = proba.mean()
    if share < _EXTREME_PRIOR:
        return [
            f"hardly any unlabelled row looks positive ({share:.1%}): either positives are "
            "rare, or the labelled rows differ from every unlabelled one in how they were "
            f"collected{telling}"
        ]
    if share > 1 - _EXTREME_PRIOR:
        return [
            f"nearly every unlabelled row looks positive ({share:.1%}): the columns may say "
            "nothing of the class, or there may be hardly any negatives"
        ]
    if priors.at_the_limit(share, trained_shares):
        least, most = trained_shares
        return [
            f"the estimated share of positives ({share:.1%}) is near the limit of those that the "
            f"network was trained on ({least:.0%} to {most:.0%}): the true one may lie beyond, and "
            "the probabilities with it. Where you know the share, give class_prior"
            f"{telling if share < 0.5 else ''}"
        ]
    if tells_little:
        return [
            f"the columns hardly tell the unlabelled rows apart (all have nearly {share:.0%}): the "
            "estimated share of positives is little more than a guess then"
            f"{_REVERSED if mostly_labeled else ''}"
        ]
    return []


def _names(preprocessor: Any, width: int) -> list[str]:
    """What the preprocessor calls its `width` columns; x0, x1, ... where it has no such names."""
    # A pipeline has the method always, and raises where one of its steps lacks it.
    with contextlib.suppress(AttributeError, NotImplementedError, TypeError, ValueError):
        names = [str(name) for name in preprocessor.get_feature_names_out()]
        if len(names) == width:
            return names
    return [f"x{j}" for j in range(width)]
