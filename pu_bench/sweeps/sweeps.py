"""The sweeps: the varied quantities and their values."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pu_bench.sweeps.pools import Composition, Pool, pools_between

# Number of synthetic tasks for each value, and their range of features, unless that is varied.
POOLS = 24
FEATURES = (5, 20)


@dataclass(frozen=True)
class Sweep:
    """One varied quantity. `label` is that of the axis; `log`: whether the axis is logarithmic."""

    name: str
    label: str
    values: tuple[float, ...]
    composition: Callable[[float], Composition]
    log: bool = False
    # A synthetic task's number of features is fixed, so a value stands for one of these ranges.
    feature_ranges: tuple[tuple[int, int], ...] | None = None

    def pools(self, value: float, pools: Sequence[Pool]) -> list[tuple[Pool, Composition]]:
        """Pools from which this value can be drawn, each with the composition to draw."""
        real = [pool for pool in pools if pool.kind == "real"]
        synthetic = [pool for pool in pools if pool.kind == "synthetic"]
        wanted = self.composition(value)
        pairs = [(pool, wanted) for pool in real]
        if self.feature_ranges is None:
            pairs += [(pool, wanted) for pool in pools_between(synthetic, *FEATURES, POOLS)]
        else:
            low, high = self.feature_ranges[self.values.index(value)]
            pairs += [(pool, Composition()) for pool in pools_between(synthetic, low, high, POOLS)]
        return [(pool, wanted) for pool, wanted in pairs if wanted.fits(pool)]


_SWEEPS = (
    Sweep(
        "pi",
        "share of positives among the unlabelled rows",
        (0.1, 0.3, 0.5, 0.7, 0.9),
        lambda value: Composition(prior=value),
    ),
    Sweep(
        "labeled",
        "labelled positives (200 unlabelled rows)",
        (5, 10, 20, 50, 100, 200, 300),
        lambda value: Composition(n_labeled=int(value), eta=200 / value),
        log=True,
    ),
    Sweep(
        "eta",
        "unlabelled rows per labelled positive (100 labelled)",
        (0.5, 1, 2, 4, 8),
        lambda value: Composition(eta=value),
        log=True,
    ),
    Sweep(
        "features",
        "features (synthetic tasks: ranges around the value)",
        (2, 4, 8, 16, 32, 57),
        lambda value: Composition(n_features=int(value)),
        log=True,
        feature_ranges=((2, 3), (4, 6), (7, 11), (12, 22), (23, 45), (46, 60)),
    ),
    Sweep(
        "scar_score",
        "labelling leans on the score: weight exp(value * z)",
        (0, 0.5, 1, 2, 4),
        lambda value: Composition(bias=value, bias_by="score"),
    ),
    Sweep(
        "scar_feature",
        "labelling leans on one feature: weight exp(value * z)",
        (0, 0.5, 1, 2, 4),
        lambda value: Composition(bias=value, bias_by="feature"),
    ),
)
SWEEPS: dict[str, Sweep] = {sweep.name: sweep for sweep in _SWEEPS}
