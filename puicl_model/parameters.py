"""Validate the parameters of `PUICLClassifier`, in `fit` as scikit-learn requires."""

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from puicl_model.preprocessing import SCALINGS

# More than cores of any machine; starting tens of thousands would take minutes.
_MOST_THREADS = 1024


def check_parameters(classifier: BaseEstimator, class_prior: Any) -> None:
    """Raise `ValueError` for the first invalid parameter, including `fit`'s `class_prior`."""
    for name in ("batch_rows", "n_estimators", "n_threads"):
        value = getattr(classifier, name)
        if name == "n_threads" and value is None:
            continue
        if not isinstance(value, Integral) or value < 1:
            raise ValueError(f"{name} must be a whole number from 1, not {value!r}")
        if name == "n_threads" and int(value) > _MOST_THREADS:
            raise ValueError(f"n_threads must be at most {_MOST_THREADS:,}, not {value}")
    if not isinstance(classifier.keep_context, bool | np.bool_):
        raise ValueError(f"keep_context must be True or False, not {classifier.keep_context!r}")
    if not isinstance(classifier.verbose, bool | np.bool_ | Integral | None):
        raise ValueError(f"verbose must be True, False or None, not {classifier.verbose!r}")
    try:
        check_random_state(classifier.random_state)
    except ValueError:
        raise ValueError(
            "random_state must be a whole number from 0 to 2**32 - 1, a RandomState or None, not "
            f"{classifier.random_state!r}"
        ) from None
    scalings = classifier.scalings
    if isinstance(scalings, str):
        known = scalings == "auto"
    else:  # a sequence, because a set has no order
        known = isinstance(scalings, Sequence) and all(kind in SCALINGS for kind in scalings)
    if not known or not len(scalings):
        raise ValueError(
            f"scalings must be 'auto' or a list of some of {', '.join(SCALINGS)}, not {scalings!r}"
        )
    for name, allowed in (
        ("columns", ("random", "relevant", "all")),
        ("blend", (None, "trees")),
        ("precision", ("float32", "bfloat16")),
    ):
        value = getattr(classifier, name)
        if value not in allowed:
            raise ValueError(f"{name} must be one of {allowed}, not {value!r}")
    preprocessing = classifier.preprocessing
    named = isinstance(preprocessing, str) and preprocessing == "auto"
    if not (named or preprocessing is None or hasattr(preprocessing, "transform")):
        raise ValueError(
            f"preprocessing must be 'auto', None or a transformer, not {preprocessing!r}"
        )
    if classifier.categorical_features is not None and not named:
        raise ValueError(
            "categorical_features needs preprocessing='auto'; give it to the TablePreprocessor "
            "that is preprocessing instead"
        )
    if class_prior is not None and not (is_share(class_prior) or is_range(class_prior)):
        raise ValueError(
            "class_prior must lie between 0 and 1, or be a pair of least and most, not "
            f"{class_prior!r}"
        )


def as_range(class_prior: float | tuple[float, float] | None) -> tuple[float, float] | None:
    """A valid `class_prior` of `fit` as a range, which has equal ends for a share."""
    if class_prior is None:
        return None
    ends = class_prior if isinstance(class_prior, tuple | list) else (class_prior, class_prior)
    return float(ends[0]), float(ends[1])


def is_share(class_prior: Any) -> bool:
    """Whether `class_prior` is a share of positives: a number strictly between 0 and 1."""
    return isinstance(class_prior, Real) and 0 < float(class_prior) < 1


def is_range(class_prior: Any) -> bool:
    """Whether `class_prior` is a range of shares: two numbers from 0 to 1, the first smaller."""
    if not isinstance(class_prior, tuple | list) or len(class_prior) != 2:
        return False
    return all(isinstance(end, Real) for end in class_prior) and (
        0 <= float(class_prior[0]) < float(class_prior[1]) <= 1
    )
