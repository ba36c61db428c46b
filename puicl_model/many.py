"""Fit many tables at once: contexts of the same shape share the network's forward passes."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.base import clone

from puicl_config import InputError
from puicl_model.classifier import PUICLClassifier
from puicl_model.process_settings import threads, tiny_to_zero
from puicl_model.telling import tell
from puicl_model.unlabeled import score_unlabeled


def fit_many(
    tables: Iterable[tuple[Any, ...]], classifier: PUICLClassifier | None = None
) -> list[PUICLClassifier]:
    """Return a fitted clone of `classifier` for each of `tables`, as separate calls of `fit` would.

    tables: tuples (X, s) or (X, s, class_prior), as for `PUICLClassifier.fit`. classifier: default
    parameters if None. Scores differ from those of separate fits by float32 rounding at most.
    Contexts with the same numbers of labelled rows, rows and columns (after preprocessing) go
    through the network together, and the weights are read once. All tables are held in memory.

    Warns once if any table gives reasons not to trust its result; each clone lists its own in
    `report_["warnings"]`. Raises `ValueError` or `TypeError` with the position of the first table
    that cannot be fitted, before any is scored; `TypeError` if `classifier` is no
    `PUICLClassifier`; and `InputError` if the weights cannot be read.
    """
    classifier = PUICLClassifier() if classifier is None else classifier
    if not isinstance(classifier, PUICLClassifier):
        raise TypeError(f"fit_many takes a PUICLClassifier, not {type(classifier).__name__}")
    fits: list[PUICLClassifier] = []
    tasks = []
    for number, given in enumerate(tables):
        fit = clone(classifier)
        loaded = (fits[0].network_, fits[0].model_card_) if fits else None
        if not isinstance(given, tuple) or len(given) not in (2, 3):
            raise ValueError(f"table {number}: give (X, s) or (X, s, class_prior)")
        X, s, *prior = given
        try:
            with tiny_to_zero():
                tasks.append(fit._prepare(X, s, *(prior or [None]), loaded))
        except InputError:
            raise
        except (ValueError, TypeError) as error:
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(f"table {number}: {error}") from None
        fits.append(fit)
    if not fits:
        return []
    with tiny_to_zero():
        with threads(classifier.n_threads):
            plans = [task.plan for task in tasks]
            keep = classifier.keep_context
            answers = score_unlabeled(fits[0].network_, plans, classifier.verbose, keep)
        for fit, task, scores in zip(fits, tasks, answers, strict=True):
            fit._finish(task, scores)
    doubtful = [n for n, fit in enumerate(fits) if fit.report_["warnings"]]
    if doubtful:
        first = fits[doubtful[0]].report_["warnings"][0]
        tell(
            f"{len(doubtful)} of {len(fits)} tables give reasons not to trust their answers (see "
            f"report_['warnings']); table {doubtful[0]}: {first}"
        )
    return fits


def predict_many(
    tables: Iterable[tuple[Any, ...]], classifier: PUICLClassifier | None = None
) -> list[np.ndarray]:
    """Return P(positive) [n_u] of the unlabelled rows of each of `tables`, in table order.

    Equals `unlabeled_proba_` of the classifiers that `fit_many` returns; takes the same arguments
    and raises the same errors. Ignores `keep_context`, since there are no new rows to score.
    """
    if isinstance(classifier, PUICLClassifier):
        classifier = clone(classifier).set_params(keep_context=False)
    return [fit.unlabeled_proba_ for fit in fit_many(tables, classifier)]
