"""What every method of the benchmark is: positives and unlabelled rows in, scores out."""

from abc import ABC, abstractmethod
from typing import ClassVar, Literal, NamedTuple

import numpy as np


class Prediction(NamedTuple):
    """One method's answer about the n_u unlabelled rows of a task.

    score: [n_u], higher is more positive. label: [n_u], 1 = positive, 0 = negative.
    class_prior: the estimated share of positives among the unlabelled rows, or None.
    ranking: [n_u], the same order, but finer: of rows whose scores are equal for having been cut
    off at the end of a scale. None where there are no such.
    """

    score: np.ndarray
    label: np.ndarray
    class_prior: float | None
    ranking: np.ndarray | None = None

    @property
    def order(self) -> np.ndarray:
        """What the rows are ranked by, [n_u]."""
        return self.score if self.ranking is None else self.ranking


class Method(ABC):
    """A method with its name in the registry, its title in tables and its paper.

    `is_probability`: the score is meant as P(positive), so that Brier score and calibration error
    are defined. `sees`: what the method is given beyond P and U, as keyword arguments of
    `fit_predict`: "class_prior" (the true one) or "labels" (y of the unlabelled rows, [n_u]).
    Such methods are references, marked as such in every table.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    reference: ClassVar[str]
    is_probability: ClassVar[bool] = False
    sees: ClassVar[frozenset[Literal["class_prior", "labels"]]] = frozenset()

    def check(self) -> None:  # noqa: B027 (most methods need nothing)
        """Raise `InputError` where a package or weights that the method needs are missing."""

    @abstractmethod
    def fit_predict(self, P: np.ndarray, U: np.ndarray, seed: int, **seen) -> Prediction:
        """Fit on labelled positives P [n_p, d] and unlabelled rows U [n_u, d], and score U.

        Everything random is drawn from `seed`: the same call gives the same answer, and global
        random states are left as they were. Raises what `check` raises.
        """
