"""Tabular foundation models as PU methods: labelled against unlabelled, in context, out of fold."""

from typing import ClassVar

import numpy as np

from pu_bench.methods.crossfit import CrossFitted
from pu_bench.methods.extras import extra_package
from pu_bench.methods.global_state import global_generators_seeded
from puicl_config import InputError


class FoundationModel(CrossFitted):
    """A pretrained classifier that reads the training folds as context.

    Runs on the CPU. The packages fetch their weights when first used; `check` says in one
    sentence where package or weights cannot be had, and so does `fit_predict`.
    """

    package: ClassVar[str]
    weights_from: ClassVar[str]

    def fit_predict(self, P, U, seed):
        """See `Method.fit_predict`; raises `InputError` as `check` does."""
        try:
            with global_generators_seeded(seed):
                return super().fit_predict(P, U, seed)
        except Exception:
            self.check()  # tells whether it is for want of package or weights
            raise

    def check(self) -> None:
        """Raise `InputError` where package or weights are missing: fits twenty made-up rows."""
        extra_package(self.package, self.package)
        x = np.linspace(0.0, 1.0, 40).reshape(20, 2)
        try:
            with global_generators_seeded(0):
                self.classifier(0).fit(x, np.arange(20) % 2)
        except Exception as error:  # whatever the package raises; the sentence passes it on
            first_line = next(iter(str(error).strip().splitlines()), "")
            raise InputError(
                f"{self.title} cannot be run: a first fit failed, most likely for want of its "
                f"weights ({self.weights_from}): {type(error).__name__}: {first_line}"
            ) from error


class TabPFN(FoundationModel):
    """TabPFN, the package's current weights and defaults.

    The weights are gated: they want a token of the publisher in TABPFN_TOKEN, and their licence
    is not the package's.
    """

    name = "tabpfn"
    title = "TabPFN P vs U"
    reference = "Hollmann et al., Nature 2025; posterior: Elkan and Noto, KDD 2008"
    package = "tabpfn"
    weights_from = "fetched from huggingface.co/Prior-Labs, with a token in TABPFN_TOKEN"

    def classifier(self, seed):
        """See `CrossFitted.classifier`."""
        return extra_package("tabpfn", "tabpfn").TabPFNClassifier(device="cpu", random_state=seed)


class TabICL(FoundationModel):
    """TabICL, the package's current weights and defaults."""

    name = "tabicl"
    title = "TabICL P vs U"
    reference = "Qu et al., ICML 2025; posterior: Elkan and Noto, KDD 2008"
    package = "tabicl"
    weights_from = "fetched from huggingface.co/jingang/TabICL"

    def classifier(self, seed):
        """See `CrossFitted.classifier`."""
        return extra_package("tabicl", "tabicl").TabICLClassifier(device="cpu", random_state=seed)
