"""Row counts of a task, by kind of row (paper, Section 2.3)."""

import math
from dataclasses import dataclass


def ceil_count(value: float) -> int:
    """Ceiling of a count that tolerates rounding errors: 100 / (1 - 0.9) is 1000, not 1001."""
    return math.ceil(value - 1e-9 * max(1.0, abs(value)))


@dataclass(frozen=True)
class TaskSizes:
    """Row counts of one task.

    `n_removed` is the number of negatives in the training part, which are removed. `n_negative`
    counts all negatives, including these.
    """

    n_labeled: int
    n_unlabeled: int
    n_removed: int
    n_negative: int

    @property
    def n_rows(self) -> int:
        """n = n_tr + n_u, with n_tr = n_labeled + n_removed."""
        return self.n_labeled + self.n_removed + self.n_unlabeled


def task_sizes(n_labeled: int, n_unlabeled: int, pi: float) -> TaskSizes:
    """Row counts: n_tr = ceil(P / (1 - pi)), and ceil(pi * n) negatives among n = n_tr + n_u rows.

    The unlabelled part then holds `n_negative - n_removed` negatives, within one row of pi * n_u.
    `n_negative` is adjusted only as far as needed to keep one row of each class there.
    """
    n_training = ceil_count(n_labeled / (1 - pi))
    n_removed = n_training - n_labeled
    n_negative = ceil_count(pi * (n_training + n_unlabeled))
    n_negative = min(max(n_negative, n_removed + 1), n_removed + n_unlabeled - 1)
    return TaskSizes(n_labeled, n_unlabeled, n_removed, n_negative)
