"""uLSIF: the density of P over that of U, by least squares on kernels."""

import numpy as np

from pu_bench.methods.base import Method, Prediction
from pu_bench.methods.class_prior import best_bin_estimate
from pu_bench.methods.extras import extra_package
from pu_bench.methods.global_state import global_generators_seeded
from pu_bench.methods.rows import standardized


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

    def check(self):
        """See `Method.check`."""
        extra_package("densratio", "bench")

    def fit_predict(self, P, U, seed):
        """See `Method.fit_predict`."""
        alpha = best_bin_estimate(P, U, seed)
        ratio = self.ratio(*standardized(P, U), seed)
        return Prediction(ratio, (alpha * ratio > 0.5).astype(int), alpha)

    def ratio(self, P: np.ndarray, U: np.ndarray, seed: int) -> np.ndarray:
        """The density ratio [n_u] at the rows of U; P [n_p, d], U [n_u, d] on one scale."""
        densratio = extra_package("densratio", "bench").densratio
        with global_generators_seeded(seed):
            fitted = densratio(P, U, verbose=False)
        return np.asarray(fitted.compute_density_ratio(U))
