"""Pools of rows with known classes, from which sweeps draw tasks of any composition."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from pu_bench.data import Table
from pu_bench.protocol import PUTask
from puicl_config import InputError
from shard_io import NoShards, open_shards

# Tables with fewer rows of a class are too small for some values of a sweep.
FEWEST_OF_A_CLASS = 1000
_FIT_ROWS = 2000
COMMAND = "prior-gen --config bench --split heldout --tail --out shards/bench"


@dataclass(frozen=True)
class Pool:
    """Rows with known classes. x: [n, d]; positive: boolean [n]; `kind` is their origin."""

    name: str
    kind: Literal["synthetic", "real"]
    x: np.ndarray
    positive: np.ndarray

    @property
    def n_features(self) -> int:
        """Number of columns, d."""
        return self.x.shape[1]


@dataclass(frozen=True)
class Composition:
    """The composition of a drawn task.

    `prior` is the share of positives among the unlabelled rows, `eta` the number of unlabelled rows
    per labelled positive. `n_features` is the size of a random subset of the columns; None means
    all. Labelled positives are drawn with weights exp(bias * z), where z is standardised: the score
    of a logistic regression fitted to the classes, or one random feature, as `bias_by` says. A
    `bias` of 0 is selection completely at random.
    """

    n_labeled: int = 100
    eta: float = 2.0
    prior: float = 0.5
    n_features: int | None = None
    bias: float = 0.0
    bias_by: Literal["score", "feature"] = "score"

    @property
    def n_unlabeled(self) -> tuple[int, int]:
        """Numbers of positives and negatives among the unlabelled rows, each at least one."""
        n = max(2, round(self.n_labeled * self.eta))
        positives = min(max(1, round(n * self.prior)), n - 1)
        return positives, n - positives

    def fits(self, pool: Pool) -> bool:
        """Whether the pool has enough rows of each class and enough columns."""
        positives, negatives = self.n_unlabeled
        have = int(pool.positive.sum())
        return (
            self.n_labeled + positives <= have
            and negatives <= len(pool.positive) - have
            and (self.n_features or 1) <= pool.n_features
        )


def draw(pool: Pool, composition: Composition, rng: np.random.Generator) -> PUTask:
    """Draw a task of that composition; raises `ValueError` if the pool is too small for it."""
    if not composition.fits(pool):
        raise ValueError(f"{pool.name} is too small for {composition}")
    columns = rng.permutation(pool.n_features)
    positives = rng.permutation(np.flatnonzero(pool.positive))
    negatives = rng.permutation(np.flatnonzero(~pool.positive))
    # Sorting by falling key draws without replacement by the weights (Efraimidis and Spirakis).
    keys = rng.gumbel(size=len(positives))
    if composition.bias:
        keys = keys + composition.bias * _labelling_score(pool, positives, composition, rng)
        positives = positives[np.argsort(-keys, kind="stable")]
    n_hidden, n_negative = composition.n_unlabeled
    labeled, rest = positives[: composition.n_labeled], positives[composition.n_labeled :]
    hidden = rng.permutation(rest)[:n_hidden]
    unlabeled = rng.permutation(np.concatenate([hidden, negatives[:n_negative]]))
    x = pool.x[np.concatenate([labeled, unlabeled])]
    if composition.n_features:
        x = x[:, np.sort(columns[: composition.n_features])]
    return PUTask(x, len(labeled), pool.positive[unlabeled].astype(int))


def table_pools(tables: Iterable[Table]) -> list[Pool]:
    """Pools of the tables with at least 1,000 rows of each class."""
    return [
        Pool(table.name, "real", table.x, table.positive)
        for table in tables
        if min(table.positive.sum(), (~table.positive).sum()) >= FEWEST_OF_A_CLASS
    ]


def shard_pools(shards: str) -> tuple[list[Pool], str]:
    """A pool for every task in a folder of held-out shards, and the digest of their plan.

    Labelled and hidden positives of a task have the same distribution, so a pool merges them.
    Raises `InputError` for a folder without shards, for shards of the training split, and if no
    part is published.
    """
    try:
        reader = open_shards(shards)
    except NoShards as error:
        raise InputError(f"{error}; make some with: {COMMAND}") from None
    if reader.manifest.split != "heldout":
        raise InputError(
            f"{shards} holds the split {reader.manifest.split!r}, which networks are trained on; "
            f"make held-out ones with: {COMMAND}"
        )
    pools = []
    for part in reader.published_parts():
        for position in reader.positions(part):
            microbatch = reader.part(part)[position]
            for number in range(len(microbatch.x)):
                name = ".".join(map(str, (*microbatch.address, number)))
                labels = np.concatenate(
                    [np.ones(microbatch.n_labeled, dtype=bool), microbatch.y[number] == 1]
                )
                pools.append(
                    Pool(name, "synthetic", microbatch.x[number].astype(np.float64), labels)
                )
    if not pools:
        raise InputError(f"{shards} holds no published part; make some with: {COMMAND}")
    return pools, reader.manifest.plan_digest


def pools_between(pools: Sequence[Pool], low: int, high: int, most: int) -> list[Pool]:
    """The first `most` pools with `low` to `high` features."""
    return [pool for pool in pools if low <= pool.n_features <= high][:most]


def _labelling_score(
    pool: Pool, positives: np.ndarray, composition: Composition, rng: np.random.Generator
) -> np.ndarray:
    """The standardised score z of the positives, [n_positives]; zeros if it is constant."""
    if composition.bias_by == "feature":
        varying = np.flatnonzero(pool.x[positives].std(axis=0) > 0)
        if not len(varying):
            return np.zeros(len(positives))
        score = pool.x[positives, rng.choice(varying)]
    else:
        scaler = StandardScaler().fit(pool.x)
        rows = rng.permutation(len(pool.x))[:_FIT_ROWS]
        model = LogisticRegression(max_iter=1000)
        model.fit(scaler.transform(pool.x[rows]), pool.positive[rows])
        score = model.decision_function(scaler.transform(pool.x[positives]))
    spread = score.std()
    return (score - score.mean()) / spread if spread > 0 else np.zeros(len(positives))
