"""uLSIF: the density of P over that of U, by least squares on kernels."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from pu_bench.methods.base import Method, Prediction
from pu_bench.methods.class_prior import best_bin_estimate
from pu_bench.methods.extras import extra_package
from pu_bench.methods.rows import standardized

_GLOBAL_GENERATOR = threading.Lock()


class ULSIF(Method):
    """Unconstrained least-squares importance fitting of r = p(x | positive) / p(x | unlabelled).

    `densratio` with its defaults, on standardised columns: 100 Gaussian kernels at rows of P,
    width and ridge by leave-one-out error. P(positive | x) is alpha * r (Bayes), so the class
    is positive where that is above one half, with alpha by best-bin estimation; the score is r.
    """

    name = "ulsif"
    title = "uLSIF"
    reference = (
        "Kanamori, Hido and Sugiyama, JMLR 2009; Hido et al., Knowl. Inf. Syst. 2011 (as a score)"
    )

    def __init__(self):
        self.densratio = extra_package("densratio", "bench")

    def fit_predict(self, P, U, seed):
        """See `Method.fit_predict`."""
        alpha = best_bin_estimate(P, U, seed)
        ratio = self.ratio(*standardized(P, U), seed)
        return Prediction(ratio, (alpha * ratio > 0.5).astype(int), alpha)

    def ratio(self, P: np.ndarray, U: np.ndarray, seed: int) -> np.ndarray:
        """The density ratio [n_u] at the rows of U; P [n_p, d], U [n_u, d] on one scale."""
        with _numpy_seeded(seed):
            fitted = self.densratio.densratio(P, U, verbose=False)
        return np.asarray(fitted.compute_density_ratio(U))


@contextmanager
def _numpy_seeded(seed: int) -> Iterator[None]:
    """numpy's global generator at `seed`, and afterwards where it was: the package draws from it."""
    with _GLOBAL_GENERATOR:
        before = np.random.get_state()  # noqa: NPY002 (the package knows no other generator)
        np.random.seed(seed)  # noqa: NPY002
        try:
            yield
        finally:
            np.random.set_state(before)  # noqa: NPY002
