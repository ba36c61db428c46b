"""What a fit was, as plain data, with reasons not to trust its answer."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from puicl_model.contexts import View
from puicl_model.separation import separation

FEW_POSITIVES = 10
_EXTREME_PRIOR = 0.02
# What orders labelled before unlabelled rows this well, a column alone (|2 AUC - 1|) or all of
# them together (AUC), is suspicious.
_SEPARATES = 0.99
_MOST_NAMED = 5


def make_report(
    classifier: BaseEstimator, X: np.ndarray, relevance: np.ndarray, estimators: list[list[View]]
) -> dict[str, Any]:
    """`report_` of a fitted classifier.

    X: [n, w], the preprocessed table; relevance: [w], see `doubts`; estimators: what was run.
    """
    preprocessor = classifier.preprocessor_
    names = [f"x{j}" for j in range(X.shape[1])]
    if hasattr(preprocessor, "get_feature_names_out"):
        names = [str(name) for name in preprocessor.get_feature_names_out()]
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
        "columns": dict(getattr(preprocessor, "kinds_", {})),
        "network_columns": names,
        "forward_passes": len(contexts),
        "largest_context": {
            "labeled": max(len(context.labeled) for context in contexts),
            "unlabeled": max(len(context.unlabeled) for context in contexts),
            "columns": max(len(view.columns) for view in views),
        },
        "blend": classifier.blend,
        "separation": apart,
        "warnings": doubts(
            n_labeled=n_labeled,
            class_prior=classifier.class_prior_,
            relevance=relevance,
            names=names,
            apart=apart,
            left_out=getattr(preprocessor, "left_out_", ""),
            says_nothing=bool((np.ptp(X, axis=0) == 0).all()),
        ),
    }


def doubts(
    *,
    n_labeled: int,
    class_prior: float,
    relevance: np.ndarray,
    names: Sequence[str],
    apart: float,
    left_out: str = "",
    says_nothing: bool = False,
) -> list[str]:
    """Warnings about a fit; empty where nothing is conspicuous.

    relevance: [w], each column's |2 AUC - 1|, labelled against unlabelled; names: theirs; apart:
    the AUC of all columns together (`separation`), NaN where there are too few rows; left_out: a
    sentence on columns that were; says_nothing: whether all rows are the same.
    """
    found = [left_out] if left_out else []
    if says_nothing:
        found.append(
            "no column tells any two rows apart, so that all scores are the same and mean nothing"
        )
    if n_labeled < FEW_POSITIVES:
        positives = "positive" if n_labeled == 1 else "positives"
        found.append(
            f"only {n_labeled} labelled {positives}: with fewer than {FEW_POSITIVES} the scores "
            "depend on which ones they happen to be"
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
    if class_prior < _EXTREME_PRIOR:
        found.append(
            f"hardly any unlabelled row looks positive ({class_prior:.1%}): either positives are "
            "rare, or the labelled rows differ from every unlabelled one in how they were collected"
        )
    if class_prior > 1 - _EXTREME_PRIOR:
        found.append(
            f"nearly every unlabelled row looks positive ({class_prior:.1%}): the columns may say "
            "nothing of the class, or there may be hardly any negatives"
        )
    return found
