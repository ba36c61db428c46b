"""One SCM: a random MLP, its exogenous draws, and what is read from it (paper, Sections 2.1-2.2).

Dimensions: n rows, k causes, h hidden units, L = L_g layers (one input layer, L - 1 hidden
blocks), d features. Arithmetic follows the dtype of the draws: float32 in production.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from prior_gen.activations import activate
from prior_gen.factors import Factors
from prior_gen.jitted import jit
from prior_gen.products import multiply_rows
from prior_gen.sampler import normals, uniforms
from puicl_config import PriorConfig

# Streams of a task's bulk draws; a block's noise has stream _NOISE + block.
_INPUT, _HIDDEN, _READOUT, _CAUSES, _NOISE = range(5)


@dataclass(frozen=True)
class ScmDraws:
    """Everything random in one SCM: weights (biases are zero), causes and noise."""

    input_weight: np.ndarray  # [h, k], W_0
    hidden_weights: np.ndarray  # [L-1, h, h], W_1 .. W_{L-1}
    readouts: np.ndarray | None  # [d+1, h]: R_x, then r_y; None when causal
    causes: np.ndarray  # [n, k], u
    noise: Sequence[np.ndarray]  # L-1 times [n, h], epsilon


@dataclass(frozen=True)
class NoiseBlocks(Sequence[np.ndarray]):
    """The noise of each hidden block, [n, h] float32, drawn on access.

    All blocks at once would not fit into the processor's cache. Each block has its own stream.
    """

    key: np.ndarray
    blocks: int
    shape: tuple[int, int]
    scale: float

    def __len__(self) -> int:
        return self.blocks

    def __getitem__(self, block: int) -> np.ndarray:  # type: ignore[override]  # no slices
        if not 0 <= block < self.blocks:
            raise IndexError(block)
        return normals(self.key, _NOISE + block, self.shape, self.scale)


def draw_scm(
    rng: np.random.Generator,
    prior: PriorConfig,
    factors: Factors,
    n: int,
    blocks: int | None = None,
) -> ScmDraws:
    """Draw one SCM's weights ~ N(0, sigma_init^2), causes and noise, in float32.

    `blocks` hidden blocks are drawn (default: all L - 1). Each array has its own stream, so that
    drawing fewer blocks does not change the rest.
    """
    h, k = factors.hidden_width, factors.n_causes
    blocks = factors.hidden_layers - 1 if blocks is None else blocks
    key = rng.integers(2**32, size=2, dtype=np.uint32)
    readout_shape = (factors.n_features + 1, h)
    uniform = factors.input_distribution == "uniform"
    return ScmDraws(
        input_weight=normals(key, _INPUT, (h, k), prior.sigma_init),
        hidden_weights=normals(key, _HIDDEN, (blocks, h, h), prior.sigma_init),
        readouts=None
        if factors.causal
        else normals(key, _READOUT, readout_shape, prior.sigma_init),
        causes=uniforms(key, _CAUSES, (n, k)) if uniform else normals(key, _CAUSES, (n, k), 1.0),
        noise=NoiseBlocks(key, blocks, (n, h), factors.sigma_noise),
    )


def hidden_block(
    state: np.ndarray,
    activation: str,
    weight: np.ndarray,
    noise: np.ndarray,
    clamp: float,
    portable: bool,
) -> np.ndarray:
    """h^(l) = W_l phi_l(h^(l-1)) + eps^(l), with state and noise [n, h], weight [h, h].

    The state is clamped to +-`clamp` before the activation, so that repeated squares stay finite
    in float32.
    """
    block = multiply_rows(activate(activation, state, clamp, portable), weight, portable)
    block += noise
    return block


def run_scm(
    draws: ScmDraws, factors: Factors, clamp: float, portable: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Raw features [n, d] and label score [n] of one SCM, before standardisation.

    Runs the hidden blocks that were drawn; `Factors.blocks_read` is how many are needed.
    portable: see `PriorConfig.arithmetic`.
    """
    state = multiply_rows(draws.causes, draws.input_weight, portable)
    h = factors.hidden_width
    x = np.empty((len(state), factors.n_features), state.dtype)
    nodes, label = factors.causal_nodes if factors.causal else (None, -1)

    for block, activation in enumerate(factors.activations[: len(draws.noise)]):
        state = hidden_block(
            state, activation, draws.hidden_weights[block], draws.noise[block], clamp, portable
        )
        if factors.causal:
            _take_columns(state, nodes, block * h, x)
            if label // h == block:
                score = state[:, label % h]

    if factors.causal:
        return x, score
    assert draws.readouts is not None, "drawn where the task is not causal"
    if factors.source == "causes":
        _take_columns(draws.causes, factors.feature_order, 0, x)
        if portable:
            return x, multiply_rows(state, draws.readouts[-1:], portable)[:, 0]
        return x, state @ draws.readouts[-1]
    read = multiply_rows(state, draws.readouts, portable) if portable else state @ draws.readouts.T
    _take_columns(read, factors.feature_order, 0, x)
    return x, read[:, -1]


@jit
def _take_columns(values, columns, start, out):
    """out[:, f] = values[:, columns[f] - start] for each f for which that column exists."""
    for f in range(len(columns)):
        column = columns[f] - start
        if 0 <= column < values.shape[1]:
            for i in range(len(values)):
                out[i, f] = values[i, column]
