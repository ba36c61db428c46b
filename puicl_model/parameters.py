"""What `PUICLClassifier`'s parameters may be, checked in `fit` as scikit-learn asks."""

from numbers import Integral, Real
from typing import Any

from sklearn.base import BaseEstimator

from puicl_model.preprocessing import SCALINGS


def check_parameters(classifier: BaseEstimator, class_prior: Any) -> None:
    """Raise `ValueError` for the first parameter out of range; `class_prior` is `fit`'s."""
    for name in ("batch_rows", "n_estimators", "n_threads"):
        value = getattr(classifier, name)
        if name == "n_threads" and value is None:
            continue
        if not isinstance(value, Integral) or value < 1:
            raise ValueError(f"{name} must be a whole number from 1, not {value!r}")
    scalings = classifier.scalings
    if isinstance(scalings, str) or not scalings or set(scalings) - set(SCALINGS):
        raise ValueError(f"scalings must be some of {', '.join(SCALINGS)}, not {scalings!r}")
    for name, allowed in (("columns", ("random", "relevant", "all")), ("blend", (None, "trees"))):
        value = getattr(classifier, name)
        if value not in allowed:
            raise ValueError(f"{name} must be one of {allowed}, not {value!r}")
    preprocessing = classifier.preprocessing
    named = isinstance(preprocessing, str) and preprocessing == "auto"
    if not (named or preprocessing is None or hasattr(preprocessing, "transform")):
        raise ValueError(
            f"preprocessing must be 'auto', None or a transformer, not {preprocessing!r}"
        )
    if class_prior is not None and not (isinstance(class_prior, Real) and 0 < class_prior < 1):
        raise ValueError(f"class_prior must lie between 0 and 1, not {class_prior!r}")
