"""`PUICLClassifier`: positive-unlabeled learning in context, in scikit-learn's manner."""

from collections.abc import Callable
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from puicl_config import InputError
from puicl_model.labels import labeled_mask
from puicl_model.weights import load_model

_SHIPPED_WEIGHTS = Path(__file__).parent / "weights" / "default.safetensors"


class PUICLClassifier(ClassifierMixin, BaseEstimator):
    """Classify the unlabelled rows of a table in a forward pass of a pretrained network.

    Nothing is fitted to the table: `fit` reads it as the network's context.

    Parameters
    ----------
    model : str, Path or None
        A `model.safetensors` with its `model.json` beside it, as the trainer writes them; None
        takes the weights that come with the package.
    n_estimators : int or None
        Column orders to average the probabilities over, the first as given. Only networks that
        embed columns in groups see their order; None takes 1 where they do not, else 4.
    random_state : int, RandomState or None
        Draws the column orders.
    device : str
        Where the network runs, such as "cpu" or "cuda".
    batch_rows : int
        New rows scored together by `predict_proba`; bounds memory, changes no score beyond
        rounding.

    Attributes
    ----------
    classes_ : ndarray [2]
        [0, 1]: unlabelled negatives, positives.
    unlabeled_proba_ : ndarray [n_u]
        P(positive) of the unlabelled rows of `fit`, in their order there (paper, Section 4.2).
    unlabeled_rows_ : ndarray [n_u]
        Which rows of `fit` these are.
    class_prior_ : float
        Estimated share of positives among the unlabelled rows: the mean of `unlabeled_proba_`.
    column_orders_ : list of ndarray [d]
        The column orders averaged over.
    n_features_in_, feature_names_in_
        As in scikit-learn.
    """

    def __init__(
        self,
        model: str | Path | None = None,
        *,
        n_estimators: int | None = None,
        random_state: int | np.random.RandomState | None = 0,
        device: str = "cpu",
        batch_rows: int = 256,
    ):
        self.model = model
        self.n_estimators = n_estimators
        self.random_state = random_state
        self.device = device
        self.batch_rows = batch_rows

    def fit(self, X: Any, s: Any) -> "PUICLClassifier":
        """Read the table `X` [n, d] of finite numbers with the labels `s` [n].

        `s`: 1 or True marks a labelled positive; 0, -1, False or a missing value an unlabelled
        row. Scales and offsets of the columns do not matter.

        Raises `ValueError` for cells that are not finite numbers, other values in `s`, no
        labelled positive or no unlabelled row, and where the weights cannot be read.
        """
        X = validate_data(self, X, dtype=np.float64)
        labeled = labeled_mask(s)
        if len(labeled) != len(X):
            raise ValueError(f"X has {len(X)} rows but s has {len(labeled)} entries")
        if not labeled.any():
            raise ValueError("s holds no labelled positive: mark at least one row with 1")
        if labeled.all():
            raise ValueError("s holds no unlabelled row: there is nothing to classify")
        for name in ("batch_rows", "n_estimators"):
            value = getattr(self, name)
            if name == "n_estimators" and value is None:
                continue
            if not isinstance(value, Integral) or value < 1:
                raise ValueError(f"{name} must be a whole number from 1, not {value!r}")
        if self.model is None and not _SHIPPED_WEIGHTS.exists():
            raise InputError(
                "this package ships no weights yet: give model=PATH of a model.safetensors"
            )
        self.network_, self.model_card_ = load_model(self.model or _SHIPPED_WEIGHTS)
        try:
            self.network_.to(self.device)
        except (RuntimeError, AssertionError) as error:
            raise ValueError(f"device {self.device!r}: {str(error).splitlines()[0]}") from None

        # In float64, so that offsets and units beyond float32's digits do not matter; the
        # network standardises again by the labelled positives alone.
        largest = np.abs(X).max(axis=0)
        self._unit = np.where(largest > 0, largest, 1.0)
        self._center = (X / self._unit).mean(axis=0)
        spread = (X / self._unit).std(axis=0)
        self._spread = np.where(spread > 0, spread, 1.0)
        self._n_labeled = int(labeled.sum())
        self._context = self._tensor(np.concatenate([X[labeled], X[~labeled]]))
        self.column_orders_ = self._draw_orders(X.shape[1])
        self.classes_ = np.array([0, 1])
        self.unlabeled_rows_ = np.flatnonzero(~labeled)
        self.unlabeled_proba_ = self._average(
            lambda order: self.network_(self._context[..., order], self._n_labeled)
        )
        self.class_prior_ = float(self.unlabeled_proba_.mean())
        self._seen = dict(zip(_keys(X[~labeled]), self.unlabeled_proba_, strict=True))
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities [m, 2] of (negative, positive) for the rows of `X` [m, d].

        A row equal to an unlabelled row of `fit` gets its `unlabeled_proba_`. Any other row
        attends to the fitted table and itself, and nothing attends to it: its score is a function
        of the fit and the row alone.
        """
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        positive = np.array([self._seen.get(key, np.nan) for key in _keys(X)])
        new = np.flatnonzero(np.isnan(positive))
        for start in range(0, len(new), self.batch_rows):
            rows = new[start : start + self.batch_rows]
            new_rows = self._tensor(X[rows])
            positive[rows] = self._average(
                lambda order, new_rows=new_rows: self.network_.score_new_rows(
                    self._context[..., order], self._n_labeled, new_rows[..., order]
                )
            )
        return np.column_stack([1 - positive, positive])

    def predict(self, X: Any) -> np.ndarray:
        """Class 1 where P(positive) is at least one half, else 0, for the rows of `X` [m, d]."""
        positive = self.predict_proba(X)[:, 1] >= 0.5
        return self.classes_[positive.astype(int)]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Refused: `s` is no truth to score against. Raises `NotImplementedError`."""
        raise NotImplementedError(
            "the labels of a PU task are no truth to score against; where you know the true "
            "classes, give predict_proba's answer to a metric of sklearn.metrics"
        )

    def _draw_orders(self, d: int) -> list[np.ndarray]:
        count = self.n_estimators
        if count is None:
            count = 1 if self.network_.config.feature_group == (0,) else 4
        rng = check_random_state(self.random_state)
        return [np.arange(d), *(rng.permutation(d) for _ in range(count - 1))]

    def _average(self, logits_of: Callable[[np.ndarray], torch.Tensor]) -> np.ndarray:
        """Mean P(positive) over the column orders."""
        with torch.inference_mode():
            return np.mean([_positive(logits_of(order)) for order in self.column_orders_], axis=0)

    def _tensor(self, X: np.ndarray) -> torch.Tensor:
        """[m, d] float64 as [1, m, d] float32 on the device."""
        scaled = (X / self._unit - self._center) / self._spread
        # A new row may lie so far out that float32 cannot hold it; the network clips it anyway.
        scaled = np.clip(scaled, -1e30, 1e30)
        return torch.from_numpy(scaled.astype(np.float32)).unsqueeze(0).to(self.device)


def _positive(logits: torch.Tensor) -> np.ndarray:
    """P(positive) [n] from logits [1, n, 2] of (negative, positive)."""
    return logits[0].double().softmax(-1)[:, 1].cpu().numpy()


def _keys(X: np.ndarray) -> list[bytes]:
    """Each row's bytes, -0.0 taken for 0.0."""
    return [row.tobytes() for row in X + 0.0]
