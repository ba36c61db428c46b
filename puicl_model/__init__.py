"""The dual-axis transformer, its weights on disk, and the scikit-learn estimator."""

from puicl_config import ModelConfig
from puicl_model.classifier import PUICLClassifier
from puicl_model.many import fit_many, predict_many
from puicl_model.model import PUICL
from puicl_model.preprocessing import TablePreprocessor
from puicl_model.weights import (
    find_weights,
    load_model,
    save_model,
    shipped_weights,
    weights_digest,
)

__all__ = [
    "PUICL",
    "ModelConfig",
    "PUICLClassifier",
    "TablePreprocessor",
    "find_weights",
    "fit_many",
    "load_model",
    "predict_many",
    "save_model",
    "shipped_weights",
    "weights_digest",
]
