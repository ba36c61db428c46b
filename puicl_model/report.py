"""The report on a fit, as plain data, with reasons not to trust its result."""

import contextlib
from typing import Any

import numpy as np
from scipy.special import logit
from sklearn.base import BaseEstimator

from puicl_model import class_prior as priors
from puicl_model.contexts import View
from puicl_model.doubts import doubts
from puicl_model.separation import copies, separation, telltale


def make_report(
    classifier: BaseEstimator,
    X: np.ndarray,
    relevance: np.ndarray,
    estimators: list[list[View]],
    class_prior: float | tuple[float, float] | None,
    table_interval: tuple[float, float],
) -> dict[str, Any]:
    """Return `report_` of a fitted classifier.

    X: [n, w], the preprocessed table; relevance: see `puicl_model.doubts`; estimators: the lists of
    views that were run; class_prior: the share or range given to `fit`; table_interval: interval of
    the share from the table alone.
    """
    given: tuple[float, float] | None = None
    as_told: float | list[float] | None = None
    if isinstance(class_prior, tuple | list):
        given = float(class_prior[0]), float(class_prior[1])
        as_told = list(given)
    elif class_prior is not None:
        as_told = float(class_prior)
        given = as_told, as_told
    log_odds = logit(classifier.unlabeled_proba_)
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
        # As given to `fit`: a share, a range as a list, or None.
        "class_prior_given": as_told,
        "columns": dict(getattr(preprocessor, "kinds_", {})),
        "network_columns": names,
        "forward_passes": len(contexts),
        "largest_context": {
            "labeled": max(len(context.labeled) for context in contexts),
            "unlabeled": max(len(context.unlabeled) for context in contexts),
            "columns": max(len(view.columns) for view in views),
        },
        # None if the table was not blended, even if a blend was requested.
        "blend": None if classifier._blend is None else classifier.blend,
        "separation": apart,
        "column_separation": dict(zip(names, relevance.tolist(), strict=True)),
        "warnings": doubts(
            n_labeled=n_labeled,
            proba=classifier.unlabeled_proba_,
            resolution=max(map(priors.resolution, (log_odds, log_odds - classifier._offset))),
            interval=classifier.class_prior_interval_,
            given=given,
            table_interval=table_interval,
            trained_shares=priors.trained_shares(classifier.model_card_),
            relevance=relevance,
            names=names,
            apart=apart,
            telltale=telltale(X, labeled),
            n_copies=copies(X, labeled),
            of_columns=getattr(preprocessor, "doubts_", ()),
            says_nothing=bool((X.max(axis=0) == X.min(axis=0)).all()),
        ),
    }


def _names(preprocessor: Any, width: int) -> list[str]:
    """The preprocessor's names of its `width` output columns, or x0, x1, ... if it has none."""
    # A pipeline always has the method, but it raises if one of the steps lacks it.
    with contextlib.suppress(AttributeError, NotImplementedError, TypeError, ValueError):
        names = [str(name) for name in preprocessor.get_feature_names_out()]
        if len(names) == width:
            return names
    return [f"x{j}" for j in range(width)]
