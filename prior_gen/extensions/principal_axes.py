"""Principal axes: tables rotated as `PUICLClassifier` does in "principal" scaling.

Sums over many columns, and small differences between columns that share much, lie along single
principal axes of a table. For this reason some passes of the classifier rotate tables of
measurements. A network that was never trained on rotated tables reads these less well than the
columns themselves.
"""

import numpy as np

from prior_gen.jitted import jit
from puicl_config import ExtensionsConfig

# Axes with a smaller share of the variance hold rounding errors and copies. The classifier leaves
# them out; here they are constant.
_LEAST_SHARE = 1e-5
# Most tables need six to ten. If these were not enough, the axes would be slightly correlated.
_SWEEPS = 60


def draw(rng: np.random.Generator, config: ExtensionsConfig, d: int, drawn: dict) -> dict | None:
    """Nothing is drawn: all tasks of the microbatch are rotated.

    None if there is only one column or all columns are discrete.
    """
    levels = drawn.get("discrete", {}).get("levels", [0])
    return {"columns": "all"} if d > 1 and not all(levels) else None


def principal_axes(rng: np.random.Generator, x: np.ndarray, clip: float) -> np.ndarray:
    """x [n, d] of one task along its principal axes, in x's dtype and clipped to +-`clip`.

    The axes are those of the columns' correlation matrix, scaled to unit variance and in random
    order. The largest loading of each is positive. Sums run over rows and columns in order, which
    gives the same bits on every processor.
    """
    z = _turned(np.ascontiguousarray(x, np.float64), _LEAST_SHARE, _SWEEPS)
    return np.clip(z, -clip, clip)[:, rng.permutation(x.shape[1])].astype(x.dtype)


@jit
def _turned(x, least, sweeps):
    n, d = x.shape
    z = np.zeros((n, d))
    for j in range(d):
        mean, variance = 0.0, 0.0
        for i in range(n):
            mean += x[i, j]
        mean /= n
        for i in range(n):
            z[i, j] = x[i, j] - mean
            variance += z[i, j] * z[i, j]
        for i in range(n):
            z[i, j] = z[i, j] / np.sqrt(variance / n) if variance > 0.0 else 0.0

    a, axes = np.zeros((d, d)), np.eye(d)
    for j in range(d):
        for k in range(j + 1):
            for i in range(n):
                a[j, k] += z[i, j] * z[i, k]
            a[j, k] /= n
            a[k, j] = a[j, k]
    _diagonalize(a, axes, sweeps)

    total = 0.0
    for j in range(d):
        total += a[j, j]
    out = np.zeros((n, d))
    for j in range(d):
        if not a[j, j] > least * total:
            continue
        largest = 0
        for k in range(d):
            if abs(axes[k, j]) > abs(axes[largest, j]):
                largest = k
        scale = np.sqrt(a[j, j]) if axes[largest, j] > 0.0 else -np.sqrt(a[j, j])
        for k in range(d):
            for i in range(n):
                out[i, j] += z[i, k] * axes[k, j]
        for i in range(n):
            out[i, j] /= scale
    return out


@jit
def _diagonalize(a, axes, sweeps):
    """Jacobi's method, in place: diagonalise symmetric a [d, d]; `axes` gets its eigenvectors."""
    d = len(a)
    for _ in range(sweeps):
        off = 0.0
        for p in range(d):
            for q in range(p):
                off += a[p, q] * a[p, q]
        if off < 1e-22:
            return
        for p in range(d - 1):
            for q in range(p + 1, d):
                if a[p, q] == 0.0:
                    continue
                theta = (a[q, q] - a[p, p]) / (2.0 * a[p, q])
                t = 1.0 / (abs(theta) + np.sqrt(theta * theta + 1.0))
                if theta < 0.0:
                    t = -t
                c = 1.0 / np.sqrt(t * t + 1.0)
                s = t * c
                for k in range(d):
                    first, second = a[k, p], a[k, q]
                    a[k, p], a[k, q] = c * first - s * second, s * first + c * second
                for k in range(d):
                    first, second = a[p, k], a[q, k]
                    a[p, k], a[q, k] = c * first - s * second, s * first + c * second
                for k in range(d):
                    first, second = axes[k, p], axes[k, q]
                    axes[k, p], axes[k, q] = c * first - s * second, s * first + c * second
