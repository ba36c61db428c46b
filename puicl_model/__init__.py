"""The dual-axis transformer, its weights on disk, and the scikit-learn estimator.

The estimator is imported lazily, on first access. Every trainer process imports this package but
needs neither scikit-learn nor SciPy, which together take as long to import as torch.
"""

import importlib
import importlib.metadata
from typing import TYPE_CHECKING, Any

from puicl_config import ModelConfig
from puicl_model.model import PUICL
from puicl_model.weights import (
    find_weights,
    load_model,
    save_model,
    shipped_weights,
    weights_digest,
)

if TYPE_CHECKING:
    from puicl_model.classifier import PUICLClassifier
    from puicl_model.contexts import TrainedRange, auto_scalings
    from puicl_model.importance import permutation_importance
    from puicl_model.many import fit_many, predict_many
    from puicl_model.preprocessing import NOTHING, TURNED, TablePreprocessor

_LATER = {
    "PUICLClassifier": "puicl_model.classifier",
    "NOTHING": "puicl_model.preprocessing",
    "TablePreprocessor": "puicl_model.preprocessing",
    "TURNED": "puicl_model.preprocessing",
    "TrainedRange": "puicl_model.contexts",
    "auto_scalings": "puicl_model.contexts",
    "fit_many": "puicl_model.many",
    "permutation_importance": "puicl_model.importance",
    "predict_many": "puicl_model.many",
}

__all__ = [
    "NOTHING",
    "PUICL",
    "TURNED",
    "ModelConfig",
    "PUICLClassifier",
    "TablePreprocessor",
    "TrainedRange",
    "auto_scalings",
    "find_weights",
    "fit_many",
    "load_model",
    "permutation_importance",
    "predict_many",
    "save_model",
    "shipped_weights",
    "weights_digest",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return importlib.metadata.version("puicl")
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_LATER[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
