"""The report on a fit, as plain data, with reasons not to trust its result."""

import contextlib
from typing import Any

import numpy as np
from scipy.special import logit
from sklearn.base import BaseEstimator

from puicl_model import class_prior as priors
from puicl_model.contexts import View
from puicl_model.doubts import Answer, Labeling, doubts
from puicl_model.separation import copies, separation, telltale


def make_report(
    classifier: BaseEstimator,
    X: np.ndarray,
    relevance: np.ndarray,
    estimators: list[list[View]],
    given: tuple[float, float] | None,
    table_interval: tuple[float, float],
) -> dict[str, Any]:
    """Return `report_` of a fitted classifier.

    X: [n, w], the preprocessed table; relevance: see `puicl_model.doubts.Labeling`; estimators: the
    lists of views that were run; given: the share of positives that `fit` was given, as a range
    (`parameters.as_range`); table_interval: interval of the share from the table alone.
    """
    log_odds = logit(classifier.unlabeled_proba_)
    preprocessor = classifier.preprocessor_
    names = _names(preprocessor, X.shape[1])
    labeled = np.ones(len(X), dtype=bool)
    labeled[classifier.unlabeled_rows_] = False
    n_unlabeled = len(classifier.unlabeled_rows_)
    n_labeled = len(X) - n_unlabeled
    labeling = Labeling(
        n_labeled,
        names,
        relevance,
        apart=separation(X, labeled),
        telltale=telltale(X, labeled),
        n_copies=copies(X, labeled),
    )
    answer = Answer(
        classifier.unlabeled_proba_,
        resolution=max(map(priors.resolution, (log_odds, log_odds - classifier._offset))),
        interval=classifier.class_prior_interval_,
        given=given,
        table_interval=table_interval,
        trained_shares=priors.trained_shares(classifier.model_card_),
    )
    as_given: float | list[float] | None = None
    if given is not None:
        as_given = given[0] if answer.is_told_the_share else list(given)
    says_nothing = bool((X.max(axis=0) == X.min(axis=0)).all())
    return {
        "n_labeled": n_labeled,
        "n_unlabeled": n_unlabeled,
        "class_prior": classifier.class_prior_,
        "class_prior_interval": classifier.class_prior_interval_,
        # As given to `fit`: a share, a range as a list, or None.
        "class_prior_given": as_given,
        "columns": dict(getattr(preprocessor, "kinds_", {})),
        "network_columns": names,
        **_sizes([view for views in estimators for view in views]),
        # None if the table was not blended, even if a blend was requested.
        "blend": None if classifier._blend is None else classifier.blend,
        "separation": labeling.apart,
        "column_separation": dict(zip(names, relevance.tolist(), strict=True)),
        "warnings": doubts(
            labeling, answer, getattr(preprocessor, "doubts_", ()), says_nothing=says_nothing
        ),
    }


def _sizes(views: list[View]) -> dict[str, Any]:
    """Number of forward passes, and the sizes of the largest."""
    contexts = [context for view in views for context in view.contexts]
    return {
        "forward_passes": len(contexts),
        "largest_context": {
            "labeled": max(len(context.labeled) for context in contexts),
            "unlabeled": max(len(context.unlabeled) for context in contexts),
            "columns": max(len(view.columns) for view in views),
        },
    }


def _names(preprocessor: Any, width: int) -> list[str]:
    """The preprocessor's names of its `width` output columns, or x0, x1, ... if it has none."""
    # A pipeline always has the method, but it raises if one of the steps lacks it.
    with contextlib.suppress(AttributeError, NotImplementedError, TypeError, ValueError):
        names = [str(name) for name in preprocessor.get_feature_names_out()]
        if len(names) == width:
            return names
    return [f"x{j}" for j in range(width)]
