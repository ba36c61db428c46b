"""A slow, literal reference of PUICL's forward pass in float64: one task, row, column, head a loop.

Written from the paper (Section 3) and the decided table, sharing no code with `puicl_model`.
It knows of the model only the names of its parameters, and that `qkv` stacks the queries', keys'
and values' projections in this order, each split into heads from the first to the last.

Letters: R rows, C = d + 1 columns with the label's last, E embedding size.
"""

from collections.abc import Mapping

import numpy as np
from scipy.special import erf

Parameters = Mapping[str, np.ndarray]

NORM_EPSILON = 1e-5  # layer normalisation's usual one


def forward(
    parameters: Parameters, x: np.ndarray, n_labeled: int, heads: int, clip: float = 100.0
) -> np.ndarray:
    """Logits [B, R - n_labeled, 2] of (negative, positive) for tables [B, R, d]."""
    p = _double(parameters)
    logits = []
    for table in np.asarray(x, dtype=np.float64):
        n_rows = len(table)
        standardized = standardize(table, table, n_labeled, clip)
        labeled = [i < n_labeled for i in range(n_rows)]
        h = _transform(p, _embed(p, standardized, labeled), n_rows, heads)
        logits.append([_decode(p, h[i, -1]) for i in range(n_labeled, n_rows)])
    return np.array(logits)


def score_new_rows(
    parameters: Parameters,
    x: np.ndarray,
    n_labeled: int,
    x_new: np.ndarray,
    heads: int,
    clip: float = 100.0,
) -> np.ndarray:
    """Logits [B, Q, 2] of new rows [B, Q, d].

    Each is put alone below its table, unlabelled; it attends to the table and itself, and the
    table's rows attend to the table only.
    """
    p = _double(parameters)
    logits = []
    for table, new_rows in zip(
        np.asarray(x, dtype=np.float64), np.asarray(x_new, dtype=np.float64), strict=True
    ):
        n_rows = len(table)
        labeled = [i < n_labeled for i in range(n_rows + 1)]
        logits.append([])
        for row in new_rows:
            extended = np.concatenate([table, row[None]])
            standardized = standardize(extended, table, n_labeled, clip)
            h = _transform(p, _embed(p, standardized, labeled), n_rows, heads)
            logits[-1].append(_decode(p, h[n_rows, -1]))
    return np.array(logits)


def standardize(
    rows: np.ndarray, table: np.ndarray, n_labeled: int, clip: float = 100.0
) -> np.ndarray:
    """`rows` [Q, d] scaled, column by column, by the first `n_labeled` rows of `table` [R, d]."""
    scaled = np.zeros(np.shape(rows))
    for j in range(table.shape[1]):
        column = [float(value) for value in table[:, j]]
        if max(column) == min(column):
            continue  # a constant column is zero
        positives = column[:n_labeled]
        mean, sigma = _mean(positives), _population_sigma(positives)
        sigma_all = _population_sigma(column)
        if sigma < 1e-6 * sigma_all:
            sigma = sigma_all
        for i in range(len(rows)):
            scaled[i, j] = min(max((float(rows[i, j]) - mean) / sigma, -clip), clip)
    return scaled


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def _population_sigma(values: list[float]) -> float:
    mean = _mean(values)
    return (sum((value - mean) ** 2 for value in values) / len(values)) ** 0.5


def _embed(p: Parameters, x: np.ndarray, labeled: list[bool]) -> np.ndarray:
    """One vector a cell [R, C, E] (Section 3.1)."""
    n_rows, d = x.shape
    cells = np.empty((n_rows, d + 1, len(p["unlabeled_token"])))
    for i in range(n_rows):
        for j in range(d):
            cells[i, j] = _linear(p, "feature_encoder", x[i, j : j + 1])
        if labeled[i]:
            cells[i, d] = _linear(p, "label_encoder", np.ones(1))
        else:
            cells[i, d] = p["unlabeled_token"]
    return cells


def _transform(p: Parameters, h: np.ndarray, n_context: int, heads: int) -> np.ndarray:
    """All blocks (Section 3.2) on [R, C, E].

    In a column, each row attends to the first `n_context` rows and to itself.
    """
    n_rows, n_columns, _ = h.shape
    n_blocks = 1 + max(int(name.split(".")[1]) for name in p if name.startswith("blocks."))
    for block in (f"blocks.{number}" for number in range(n_blocks)):
        attended = np.empty_like(h)
        for i in range(n_rows):
            for j in range(n_columns):
                attended[i, j] = _attend(
                    p, f"{block}.feature_attention", h[i, j], list(h[i]), heads
                )
        h = _normalize(p, f"{block}.feature_norm", h + attended)

        attended = np.empty_like(h)
        for j in range(n_columns):
            for i in range(n_rows):
                seen = list(h[:n_context, j])
                if i >= n_context:
                    seen.append(h[i, j])
                attended[i, j] = _attend(p, f"{block}.row_attention", h[i, j], seen, heads)
        h = _normalize(p, f"{block}.row_norm", h + attended)

        h = _normalize(p, f"{block}.feedforward_norm", h + _mlp(p, f"{block}.feedforward", h))
    return h


def _attend(
    p: Parameters, name: str, cell: np.ndarray, seen: list[np.ndarray], heads: int
) -> np.ndarray:
    """What one cell [E] takes from the cells it sees: softmax(q kᵀ / √D) v, a head at a time."""
    e = len(cell)
    width = e // heads
    weight, bias = p[f"{name}.qkv.weight"], p[f"{name}.qkv.bias"]
    memory = np.array(seen)
    merged = np.empty(e)
    for head in range(heads):
        own = slice(head * width, (head + 1) * width)
        query = weight[0:e][own] @ cell + bias[0:e][own]
        keys = memory @ weight[e : 2 * e][own].T + bias[e : 2 * e][own]
        values = memory @ weight[2 * e : 3 * e][own].T + bias[2 * e : 3 * e][own]
        scores = keys @ query / np.sqrt(width)
        shares = np.exp(scores - scores.max())
        merged[own] = (shares / shares.sum()) @ values
    return _linear(p, f"{name}.out", merged)


def _normalize(p: Parameters, name: str, h: np.ndarray) -> np.ndarray:
    """Layer normalisation of each cell."""
    centered = h - h.mean(axis=-1, keepdims=True)
    variance = (centered**2).mean(axis=-1, keepdims=True)
    return centered / np.sqrt(variance + NORM_EPSILON) * p[f"{name}.weight"] + p[f"{name}.bias"]


def _mlp(p: Parameters, name: str, h: np.ndarray) -> np.ndarray:
    """Linear, GELU, linear."""
    inner = _linear(p, f"{name}.inner", h)
    return _linear(p, f"{name}.outer", inner * 0.5 * (1 + erf(inner / np.sqrt(2))))


def _decode(p: Parameters, cell: np.ndarray) -> np.ndarray:
    """Logits [2] from a label cell (Section 3.3)."""
    return _mlp(p, "decoder", cell)


def _linear(p: Parameters, name: str, x: np.ndarray) -> np.ndarray:
    return x @ p[f"{name}.weight"].T + p[f"{name}.bias"]


def _double(parameters: Parameters) -> dict[str, np.ndarray]:
    return {name: np.asarray(array, dtype=np.float64) for name, array in parameters.items()}
