"""A table's blend: who is asked beside the network's passes, and how all that is averaged."""

from typing import Self

import numpy as np

from puicl_model.blend import Blend, Students, taught_by
from puicl_model.contexts import TrainedRange
from puicl_model.ensemble import mean_by
from puicl_model.kernel_reading import KernelReader, read_along_kernels
from puicl_model.model import PUICL


class Blended:
    """Students that learnt the network's probabilities, its readers along kernels, the average."""

    def __init__(self, students: Students, readers: list[KernelReader], average: Blend):
        self.students, self.readers, self.average = students, readers, average

    @classmethod
    def of(
        cls,
        network: PUICL,
        trained: TrainedRange,
        X: np.ndarray,
        labeled: np.ndarray,
        passes: np.ndarray,
        equal: np.ndarray,
        *,
        rng: np.random.Generator,
        verbose: bool | None = None,
        keep: bool = False,
    ) -> Self:
        """Of a table X [n, w], preprocessed but unscaled, of which `passes` have said.

        labeled: boolean [n], at least 2 of each kind; passes: the network's log-odds
        [n_estimators, n_u]; equal: [n_u], numbers of groups of equal rows, which are answered
        alike; keep: whether to keep what is read for new rows.
        """
        (kernels,) = rng.spawn(1)
        answers = taught_by(passes.mean(axis=0), labeled)
        students, taught = Students.taught(X, labeled, answers, rng)
        readers, read = read_along_kernels(
            network,
            trained,
            X,
            labeled,
            answers,
            n_estimators=len(passes),
            rng=kernels,
            verbose=verbose,
            keep=keep,
        )
        average = Blend(passes, mean_by(taught[:, ~labeled], equal), mean_by(read, equal))
        return cls(students, readers, average)

    def __call__(
        self,
        X: np.ndarray,
        network: np.ndarray,
        batch_rows: int,
        verbose: bool | None = None,
        keep: bool = False,
    ) -> np.ndarray:
        """Log-odds [m] of new rows X [m, w], of which the network's passes say `network` [m]."""
        read = [reader(X, batch_rows, verbose, keep) for reader in self.readers]
        return self.average(network, self.students(X), np.array(read))

    def forget(self) -> None:
        """Drop what was kept for new rows."""
        for reader in self.readers:
            reader.new_rows.forget()
