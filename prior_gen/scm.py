"""One SCM: a random MLP, its exogenous draws, and what is read from it (paper, Sections 2.1-2.2).

Dimensions: n rows, k causes, h hidden units, L = L_g layers (one input layer, L - 1 hidden
blocks), d features. Arithmetic follows the dtype of the draws: float32 in production.
"""

from dataclasses import dataclass

import numpy as np

from prior_gen.activations import BANK
from prior_gen.factors import Factors
from puicl_config import PriorConfig

# A column whose spread is below this share of its largest magnitude is rounding noise.
CONSTANT_COLUMN_TOLERANCE = 1e-6


@dataclass(frozen=True)
class ScmDraws:
    """Everything random in one SCM: weights (biases are zero), causes and noise."""

    input_weight: np.ndarray  # [h, k], W_0
    hidden_weights: np.ndarray  # [L-1, h, h], W_1 .. W_{L-1}
    readouts: np.ndarray | None  # [d+1, h]: R_x, then r_y; None when causal
    causes: np.ndarray  # [n, k], u
    noise: np.ndarray  # [L-1, n, h], epsilon


def draw_scm(rng: np.random.Generator, prior: PriorConfig, factors: Factors, n: int) -> ScmDraws:
    """Draw one SCM's weights ~ N(0, sigma_init^2), causes and noise, in float32.

    With features taken from the causes only r_y is read, but R_x is drawn all the same: the
    streams of the two sources stay alike.
    """
    h, k, blocks = factors.hidden_width, factors.n_causes, factors.hidden_layers - 1

    def normals(scale: float, *shape: int) -> np.ndarray:
        values = rng.standard_normal(shape, dtype=np.float32)
        values *= np.float32(scale)
        return values

    return ScmDraws(
        input_weight=normals(prior.sigma_init, h, k),
        hidden_weights=normals(prior.sigma_init, blocks, h, h),
        readouts=None if factors.causal else normals(prior.sigma_init, factors.n_features + 1, h),
        causes=rng.random((n, k), dtype=np.float32)
        if factors.input_distribution == "uniform"
        else normals(1.0, n, k),
        noise=normals(factors.sigma_noise, blocks, n, h),
    )


def hidden_block(
    state: np.ndarray, activation: str, weight: np.ndarray, noise: np.ndarray, clamp: float
) -> np.ndarray:
    """h^(l) = W_l phi_l(h^(l-1)) + eps^(l), for [n, h] rows.

    The state is clamped to +-`clamp` before the activation, so that squares of squares stay
    finite in float32.
    """
    block = BANK[activation](np.clip(state, -clamp, clamp)) @ weight.T
    block += noise
    return block


def run_scm(draws: ScmDraws, factors: Factors, clamp: float) -> tuple[np.ndarray, np.ndarray]:
    """Raw features [n, d] and label score [n] of one SCM, before standardisation."""
    state = draws.causes @ draws.input_weight.T
    h = factors.hidden_width
    columns: list[np.ndarray] = []  # causal: pieces of [n, nodes of one block], in graph order
    score = None
    nodes = np.sort(factors.feature_nodes) if factors.causal else None

    for block, activation in enumerate(factors.activations):
        state = hidden_block(
            state, activation, draws.hidden_weights[block], draws.noise[block], clamp
        )
        if factors.causal:
            here = nodes[(nodes >= block * h) & (nodes < (block + 1) * h)]
            columns.append(state[:, here - block * h])
            if factors.label_node // h == block:
                score = state[:, factors.label_node % h]

    if factors.causal:
        rank_of_node = np.argsort(np.argsort(factors.feature_nodes))
        return np.concatenate(columns, axis=1)[:, rank_of_node], score
    if factors.source == "causes":
        return draws.causes[:, factors.feature_order], state @ draws.readouts[-1]
    read = state @ draws.readouts.T
    return read[:, :-1][:, factors.feature_order], read[:, -1]


def standardize(values: np.ndarray, clip: float) -> np.ndarray:
    """Zero mean and unit (population) variance along axis 0, clipped to +-`clip`.

    Constant columns become zero; moments are taken in float64.
    """
    mean = values.mean(axis=0, dtype=np.float64)
    spread = values.std(axis=0, dtype=np.float64, mean=mean[np.newaxis])
    constant = spread <= CONSTANT_COLUMN_TOLERANCE * np.abs(values).max(axis=0)
    scale = np.where(constant, 0.0, 1.0 / np.where(constant, 1.0, spread))
    return np.clip((values - mean) * scale, -clip, clip)
