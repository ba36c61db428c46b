"""Discrete columns: counts with few levels, grades, categories coded as numbers, yes or no.

Layout "shared" gives every column the same levels with the same shares, like the attributes of
MONK's. Layout "own" bins only some columns, each into its own levels, among them skewed yes/no.

Order "ordinal" keeps the order of each column. "nominal" shuffles the codes by one permutation for
the whole table, since coded categories have no order. "mixed" (layout "own" only) shuffles the
codes of some columns, each by its own permutation: a table may hold grades beside trades and towns.
"""

import numpy as np

from puicl_config import ExtensionsConfig

CONTINUOUS = -1


def draw(rng: np.random.Generator, config: ExtensionsConfig, d: int, drawn: dict) -> dict:
    """Layout, order and the shares of each column's levels (an empty list: continuous)."""
    layout = ("shared", "own")[int(rng.integers(2))]
    order = ("ordinal", "nominal")[int(rng.integers(2))]
    if layout == "shared":
        shares = [_shares(rng, config.levels)] * d
    else:
        binned = rng.random(d) < rng.uniform(0.3, 1.0)
        binned[int(rng.integers(d))] = True
        shares = [_shares(rng, config.levels) if chosen else [] for chosen in binned]
    parameters = {
        "layout": layout,
        "order": order,
        "levels": [len(column) for column in shares],
        "shares": shares,
    }
    if config.mixed_orders and layout == "own" and rng.random() < config.mixed_orders:
        nominal = np.flatnonzero(rng.random(d) < rng.uniform(0.1, 0.9))
        parameters |= {
            "order": "mixed",
            "nominal": [int(column) for column in nominal if shares[column]],
        }
    return parameters


def level_codes(rng: np.random.Generator, parameters: dict, x: np.ndarray) -> np.ndarray:
    """Codes 0, 1, ... of the binned columns of x [n, d], `CONTINUOUS` elsewhere: int64 [n, d].

    Each column is cut at its own quantiles, so that every level holds its share of the rows, except
    for ties: equal cells get equal codes.
    """
    codes = np.full(x.shape, CONTINUOUS)
    most = max(parameters["levels"])
    # One permutation of the codes for the whole table, so that shared marginals stay shared.
    order = rng.permutation(most) if parameters["order"] == "nominal" else np.arange(most)
    nominal = set(parameters.get("nominal", ()))
    for column, shares in enumerate(parameters["shares"]):
        if shares:
            ranked = np.sort(x[:, column])
            ends = np.round(np.cumsum(shares[:-1]) * len(x)).astype(int)
            cuts = ranked[np.clip(ends - 1, 0, len(x) - 1)]
            own_order = order[order < len(shares)]
            if column in nominal:
                own_order = rng.permutation(own_order)
            codes[:, column] = own_order[np.searchsorted(cuts, x[:, column], side="left")]
    return codes


def _shares(rng: np.random.Generator, levels: tuple[int, int]) -> list[float]:
    """Shares of one column's levels: equal or uneven; with two uneven levels, one is rare."""
    count = int(rng.integers(*levels, endpoint=True))
    if rng.random() < 0.5:
        shares = np.full(count, 1 / count)
    elif count == 2:
        rare = rng.uniform(0.05, 0.4)
        shares = np.array([1 - rare, rare])
    else:
        shares = 0.3 / count + 0.7 * rng.dirichlet(np.ones(count))
    return [round(float(share), 4) for share in shares]
