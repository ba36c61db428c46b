"""Save and load a fitted `PUICLClassifier` as one file of arrays and JSON (`saved_file`).

The JSON holds the parameters, the model card and the preprocessor's state; the arrays are the
weights, contexts, scores and (from format 4 on) those of the scalings.
"""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted

from puicl_config import InputError, parse_config
from puicl_model.blend import Blend, Students
from puicl_model.ensemble import NewRows, Reference
from puicl_model.inference import resolve_device
from puicl_model.model import PUICL
from puicl_model.neighbors import Neighbors
from puicl_model.precision import set_precision
from puicl_model.preprocessing import RECODED, ROTATED, TablePreprocessor, scaling_from_state
from puicl_model.saved_file import packed, read_saved, unpacked, write_saved
from puicl_model.trees import Forest
from puicl_model.weights import network_of

# What each format adds: 2: negated columns; 3: principal axes of columns in quantile scaling; 4:
# rotations, and the scalings' arrays beside the JSON, because a header is limited to 100 MB; 5:
# uniform scalings (ranks); 6: a blend of several students; 7: trees that subtract an origin from a
# column; 8: alternative codes of categories.
_FIRST_PACKED = 4
_FITTED = (
    "unlabeled_proba_",
    "unlabeled_rows_",
    "estimator_log_odds_",
    "classes_",
    "_keys",
    "_key_log_odds",
)
# Parameters that older versions would reject; they are stored apart from the others.
_LATER = ("keep_context", "precision")
_PLAIN = ("class_prior_", "class_prior_interval_", "report_", "n_features_in_", "_offset")


def save_classifier(classifier: Any, path: str | Path) -> None:
    """Write the fitted `classifier` to `path`, atomically.

    Raises `ValueError` if its preprocessing is a transformer of the user's own, if a parameter is
    not plain data, or if the text exceeds the file's header (100 MB); `IsADirectoryError` if `path`
    is a folder; `InputError` if the folder of `path` does not exist; and scikit-learn's
    `NotFittedError` before the fit.
    """
    check_is_fitted(classifier)
    if classifier.preprocessor_ is not None and not isinstance(
        classifier.preprocessor_, TablePreprocessor
    ):
        raise ValueError(
            "a transformer of your own cannot be saved without pickling: save the classifier with "
            "preprocessing=None and the transformer apart"
        )
    if Path(path).is_dir():
        raise IsADirectoryError(f"{path} is a folder; give a file to save to")
    arrays = _arrays_of(classifier)
    parameters = _parameters_of(classifier)
    later = {name: parameters.pop(name) for name in _LATER if name in parameters}
    names = getattr(classifier, "feature_names_in_", None)
    preprocessor = classifier.preprocessor_
    rows = classifier._new_rows
    number = _format_number(classifier)
    states = [scaling.state() for scaling in rows.scalings.values()]
    if number >= _FIRST_PACKED:
        states = packed(states, "scaling", arrays)
    about = {
        "parameters": parameters,
        **later,
        "computed_in": classifier.network_.precision,
        "card": classifier.model_card_,
        "plain": {name: getattr(classifier, name) for name in _PLAIN},
        "column_orders": [order.tolist() for order in classifier.column_orders_],
        "feature_names_in": None if names is None else list(names),
        "names_in_order": getattr(classifier, "_names_in_order", None),
        "scalings": states,
        "references": [[each.estimators, each.scaling, each.n_labeled] for each in rows.references],
        "preprocessor": None if preprocessor is None else preprocessor.state(),
    }
    write_saved(path, number, about, arrays)


def _arrays_of(classifier: Any) -> dict[str, np.ndarray]:
    """A fitted classifier's arrays, except those of its scalings, by their names in the file."""
    arrays = {name: np.asarray(getattr(classifier, name)) for name in _FITTED}
    for name, tensor in classifier.network_.state_dict().items():
        arrays[f"network.{name}"] = tensor.cpu().numpy()
    for number, reference in enumerate(classifier._new_rows.references):
        for name in ("rows", "columns", "signs"):
            arrays[f"reference.{number}.{name}"] = getattr(reference, name)
    if classifier._blend is not None:
        for kind, part in {
            "blend": classifier._blend,
            "forest": classifier._students.forest,
            "neighbors": classifier._students.neighbors,
        }.items():
            arrays |= {f"{kind}.{name}": getattr(part, name) for name in part.arrays}
    return arrays


def _parameters_of(classifier: Any) -> dict[str, Any]:
    """The classifier's parameters as plain data; a preprocessor becomes a dict of its own.

    A subclass may have fewer parameters, and others of its own.
    """
    parameters = classifier.get_params(deep=False)
    preprocessing = parameters.get("preprocessing")
    if isinstance(preprocessing, TablePreprocessor):
        parameters["preprocessing"] = preprocessing = preprocessing.get_params()
    for some in (parameters, preprocessing):
        # May be any iterable, such as an index or a series.
        if isinstance(some, dict) and some.get("categorical_features") is not None:
            some["categorical_features"] = list(some["categorical_features"])
    if parameters.get("model") is not None:
        parameters["model"] = str(parameters["model"])
    return parameters


def _format_number(classifier: Any) -> int:
    """Number, from 1, of the earliest format that can represent the fitted classifier."""
    kinds = classifier._new_rows.scalings
    has_blend = classifier._blend is not None
    needed = {
        2: any((reference.signs < 0).any() for reference in classifier._new_rows.references),
        3: "principal_quantile" in kinds,
        4: any(kind in ROTATED for kind in kinds),
        5: any(kind.endswith("uniform") for kind in kinds),
        6: has_blend,
        7: has_blend and classifier._students.forest.origin.any(),
        8: any(kind.startswith(RECODED) for kind in kinds),
    }
    return max((number for number, is_needed in needed.items() if is_needed), default=1)


def load_classifier(cls: type, path: str | Path, device: str | None = None) -> Any:
    """Read the classifier that `save_classifier` wrote to `path`.

    device: where to run the network; None means the saved device. Raises `InputError` if the file
    is missing, damaged or something else, or if the device is not available.
    """
    about, arrays, has_digest = read_saved(path)
    if "blend.trees" in arrays:
        raise InputError(
            f"{path} holds a blend as older versions made it, of trees alone: fit anew"
        )
    try:
        return _restored(cls, about, arrays, device)
    except InputError:
        raise
    except KeyError as error:
        raise InputError(f"{path} is damaged, or no saved classifier: no {error} in it") from None
    except (AttributeError, IndexError, RuntimeError, TypeError, ValueError) as error:
        if has_digest:  # the file is intact: some other error, such as too little device memory
            raise
        reason = " ".join(str(error).split())
        raise InputError(f"{path} is damaged, or no saved classifier: {reason}") from None


def _restored(
    cls: type, about: dict[str, Any], arrays: dict[str, np.ndarray], device: str | None
) -> Any:
    # Files of older versions lack these parameters.
    later = {name: about[name] for name in _LATER if name in about}
    classifier = cls(**about["parameters"], **later)
    if device is not None:  # set afterwards, because a subclass need not take it
        classifier.device = device
    if isinstance(classifier.preprocessing, dict):
        classifier.preprocessing = TablePreprocessor(**classifier.preprocessing)
    for name in _FITTED:
        setattr(classifier, name, arrays[name])
    for name in _PLAIN:
        setattr(classifier, name, about["plain"][name])
    if "column_orders" in about:  # files of older versions lack it
        classifier.column_orders_ = [np.array(order) for order in about["column_orders"]]
    classifier.class_prior_interval_ = tuple(classifier.class_prior_interval_)
    classifier.report_["class_prior_interval"] = classifier.class_prior_interval_
    if about.get("names_in_order"):  # also missing in files of older versions
        classifier._names_in_order = about["names_in_order"]
    if about["feature_names_in"] is not None:
        classifier.feature_names_in_ = np.array(about["feature_names_in"], dtype=object)
    classifier.model_card_ = about["card"]
    classifier.network_ = _network(arrays, about["card"], classifier.device)
    # The precision of the fit, not the parameter's, so that answers stay the same.
    set_precision(classifier.network_, about.get("computed_in", "float32"))
    scalings = {
        state["kind"]: scaling_from_state(state) for state in unpacked(about["scalings"], arrays)
    }
    references = _references(about["references"], arrays)
    classifier._new_rows = NewRows(classifier.network_, references, scalings)
    classifier._blend, classifier._students = _blended(arrays)
    classifier.preprocessor_ = None
    if about["preprocessor"] is not None:
        classifier.preprocessor_ = TablePreprocessor.from_state(about["preprocessor"])
    return classifier


def _references(stated: list[Any], arrays: dict[str, np.ndarray]) -> list[Reference]:
    """The references of new rows: `stated` in the file's JSON, with their arrays."""
    found = []
    for number, (estimators, scaling, n_labeled) in enumerate(stated):
        columns = arrays[f"reference.{number}.columns"]
        # Older versions named a single estimator, and negated no column.
        numbers = tuple(estimators) if isinstance(estimators, list) else (estimators,)
        if not set(numbers) <= set(range(len(arrays["estimator_log_odds_"]))):
            raise InputError(f"the saved classifier has no estimators {estimators}")
        signs = arrays.get(f"reference.{number}.signs", np.ones(len(columns)))
        rows = arrays[f"reference.{number}.rows"]
        found.append(Reference(numbers, scaling, columns, signs, n_labeled, rows))
    return found


def _blended(arrays: dict[str, np.ndarray]) -> tuple[Blend, Students] | tuple[None, None]:
    """The blend and its students; None for both if the fit was not blended."""
    if "blend.mixed" not in arrays:
        return None, None
    arrays.setdefault("forest.origin", np.zeros(1))  # older versions had no origin
    blend, forest, neighbors = (
        {name: arrays[f"{kind}.{name}"] for name in part.arrays}
        for kind, part in (("blend", Blend), ("forest", Forest), ("neighbors", Neighbors))
    )
    mixed = Blend.from_arrays(**blend)
    students = Students(Forest(**forest), Neighbors(**neighbors))
    if students.forest.has_circles():  # scoring would never end
        raise InputError("the saved classifier's trees lead in circles")
    return mixed, students


def _network(arrays: dict[str, np.ndarray], card: dict[str, Any], device: str) -> PUICL:
    config = parse_config({"model": card["model"]}, where="the saved classifier").model
    prefix = "network."
    tensors = {
        name.removeprefix(prefix): torch.from_numpy(array.copy())
        for name, array in arrays.items()
        if name.startswith(prefix)
    }
    model = network_of(config, tensors, "the saved classifier has another network than it says")
    try:
        place = resolve_device(device)
    except ValueError as error:
        raise InputError(f"{error}; load(path, device=...) takes another one") from None
    return model.to(place)
