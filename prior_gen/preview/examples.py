"""Random example tasks, for every source of features and every third of the stages."""

from dataclasses import dataclass

import numpy as np

from prior_gen.preview.difficulty import pu_auc, task_seed
from prior_gen.preview.sample import Sample, Seen, stage_groups
from prior_gen.structure import SCM_SOURCES, SOURCES, WITHOUT_SCM

MAX_COLUMNS = 3


@dataclass(frozen=True)
class Example:
    """One whole task: x [P + n_u, d] float64, labelled positives first, and y [n_u].

    `auc` is that of the tree baseline.
    """

    seen: Seen
    task: int
    x: np.ndarray
    y: np.ndarray
    auc: float

    @property
    def source(self) -> str:
        """Where the features come from."""
        return self.seen.source

    @property
    def groups(self) -> np.ndarray:
        """[P + n_u]: 2 labelled positive, 1 unlabelled positive, 0 unlabelled negative."""
        return np.concatenate([np.full(len(self.x) - len(self.y), 2), self.y.astype(int)])

    def plane(self) -> np.ndarray:
        """[P + n_u, 2]: the first two principal components of all rows."""
        return first_components(self.x)


def choose_examples(sample: Sample) -> tuple[list[list[int]], dict[tuple[str, int], Example]]:
    """Divide the stages into up to three runs and choose a random task for each source in each run.

    Returns the runs, and examples by (source, index of the run). A source without sampled
    microbatches in a run has no example there.
    """
    rng = sample.rng("examples")
    columns = stage_groups(sample.stages, MAX_COLUMNS)
    examples = {}
    for source in SOURCES:
        for column, stages in enumerate(columns):
            fitting = [
                seen for seen in sample.seen if seen.source == source and seen.stage in set(stages)
            ]
            if fitting:
                seen = fitting[int(rng.integers(len(fitting)))]
                task = int(rng.integers(len(seen.negatives)))
                batch = sample.read(seen)
                x, y = batch.x[task].astype(np.float64), batch.y[task]
                auc = pu_auc("trees", x, y, task_seed(sample.seed, seen.address, task))
                examples[source, column] = Example(seen, task, x, y, auc)
    return columns, examples


def choose_pairs(examples: dict[tuple[str, int], Example]) -> list[Example]:
    """The latest non-causal, causal and SCM-free example, as far as these exist."""
    chosen = []
    for sources in (SCM_SOURCES[:2], SCM_SOURCES[2:], WITHOUT_SCM):
        fitting = [key for key in examples if key[0] in sources]
        if fitting:
            latest = max(column for _, column in fitting)
            source = next(s for s in sources if (s, latest) in examples)
            chosen.append(examples[source, latest])
    return chosen


def first_components(x: np.ndarray) -> np.ndarray:
    """Scores [n, 2] of x [n, d] on its first two principal components.

    If there is only one component, the second score is zero. The largest loading of each component
    is positive.
    """
    centred = x - x.mean(axis=0)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    axes = axes[:2]
    largest = np.abs(axes).argmax(axis=1)
    axes = axes * np.where(axes[np.arange(len(axes)), largest] < 0, -1.0, 1.0)[:, None]
    scores = centred @ axes.T
    return np.pad(scores, ((0, 0), (0, 2 - scores.shape[1])))
