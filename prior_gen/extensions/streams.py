"""One random stream for each extension: switching one on or off does not shift another's stream.

What an extension makes of its stream may still depend on the extensions before it.
"""

from dataclasses import dataclass

import numpy as np

from prior_gen.seeding import extension_generator, extension_task_generator
from puicl_config import Split

# Words of the spawn key. Appending is safe; renumbering would change every extended task.
NUMBERS = {
    "choice": 0,
    "shallow": 1,
    "independent": 2,
    "discrete": 3,
    "warped": 4,
    "irrelevant": 5,
    "duplicated": 6,
    "tree_labels": 7,
    "rule_labels": 8,
    "free_border": 9,
    "label_noise": 10,
    "sar": 11,
    "missing": 12,
    "split": 13,
    "proportional": 14,
    "factorial": 15,
    "few_labeled": 16,
    "soft_border": 17,
    "cluster_labels": 18,
    "two_sided": 19,
    "factor_model": 20,
    "censored": 21,
    "normal_scores": 22,
    "graph": 23,
    "principal_axes": 24,
    "mirrored": 25,
    "grouped": 26,
}


@dataclass(frozen=True)
class Streams:
    """The streams of one microbatch or, if `task` is given, of one of its tasks."""

    seed: int
    split: Split
    address: tuple[int, int, int]
    task: int | None = None

    def of(self, extension: str) -> np.random.Generator:
        """The extension's own stream, from its beginning."""
        number = NUMBERS[extension]
        if self.task is None:
            return extension_generator(self.seed, self.split, number, *self.address)
        return extension_task_generator(self.seed, self.split, number, *self.address, self.task)
