"""What the tasks of a microbatch share: sizes, SCM shape, activations and which nodes are read.

These factors are drawn in a fixed order from the microbatch's own random stream; only L_g and h
come from the stream of its stage.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from prior_gen.curriculum import stage_ranges
from prior_gen.extensions.choices import choose_extensions
from prior_gen.seeding import microbatch_generator, stage_generator
from prior_gen.sizes import ceil_count
from puicl_config import PriorConfig, Split


@dataclass(frozen=True)
class Factors:
    """Batch factors of one microbatch.

    `source` is "head" or "causes" if non-causal, "clique" or "subset" if causal. Nodes are indices
    into the causal pool of (L_g - 1) * h hidden units, in block-major order. `feature_order` [d]
    permutes the features of a non-causal task. `pi` is (low, high); each task draws uniformly
    between them. `extensions` maps the name of each extension to its parameters; it is None for a
    microbatch of the paper's prior.
    """

    n_features: int
    n_labeled: int
    n_unlabeled: int
    eta: float
    pi: tuple[float, float]
    hidden_layers: int
    hidden_width: int
    n_causes: int
    sigma_noise: float
    input_distribution: str
    activations: tuple[str, ...]
    causal: bool
    source: str
    ordering: str
    feature_order: np.ndarray
    label_position: str | None = None
    label_node: int | None = None
    feature_nodes: np.ndarray | None = None
    extensions: dict[str, dict[str, Any]] | None = None

    @property
    def chosen(self) -> dict[str, dict[str, Any]]:
        """`extensions`, or an empty dict for a microbatch of the paper's prior."""
        return self.extensions or {}

    @property
    def causal_nodes(self) -> tuple[np.ndarray, int]:
        """The nodes that the features [d] and the label are read from; causal microbatches only."""
        assert self.feature_nodes is not None, "drawn of causal microbatches alone"
        assert self.label_node is not None, "drawn of causal microbatches alone"
        return self.feature_nodes, self.label_node

    @property
    def blocks_read(self) -> int:
        """Number of hidden blocks up to the last one that a feature or the label is read from."""
        if not self.causal:
            return self.hidden_layers - 1
        features, label = self.causal_nodes
        return max(label, int(features.max())) // self.hidden_width + 1

    def tags(self) -> dict[str, Any]:
        """The factors as the JSON tags that are stored in a shard."""
        extended = {} if self.extensions is None else {"extensions": self.extensions}
        return {
            "n_features": self.n_features,
            "n_labeled": self.n_labeled,
            "n_unlabeled": self.n_unlabeled,
            "eta": self.eta,
            "hidden_layers": self.hidden_layers,
            "hidden_width": self.hidden_width,
            "n_causes": self.n_causes,
            "sigma_noise": self.sigma_noise,
            "input_distribution": self.input_distribution,
            "activations": list(self.activations),
            "causal": self.causal,
            "source": self.source,
            "label_position": self.label_position,
            "ordering": self.ordering,
            **extended,
        }


def draw_factors(
    prior: PriorConfig, stage: int, step: int, index: int, split: Split = "train"
) -> Factors:
    """Draw the batch factors of microbatch [stage, step, index] (paper, Sections 2 and 4.1)."""
    layers, width = draw_architecture(prior, stage, split)
    rng = microbatch_generator(prior.seed, split, stage, step, index)
    ranges = stage_ranges(prior, stage)
    chosen = choose_extensions(prior, stage, step, index, split)
    if chosen:
        prior, ranges, layers = chosen.widen(prior, ranges, layers)

    d = _integer(rng, prior.n_features)
    n_labeled = _integer(rng, prior.n_labeled)
    eta = _uniform(rng, ranges.eta)
    if chosen:
        n_labeled, eta = chosen.rows(n_labeled, eta)
    eta = min(eta, ranges.max_rows / n_labeled - 1)
    pi = ranges.pi
    if prior.pi_drawn_per == "microbatch":
        pi = (_uniform(rng, ranges.pi),) * 2
    causal = bool(rng.random() < ranges.p_causal)
    sigma_noise = _choice(rng, prior.sigma_noise)
    input_distribution = _choice(rng, prior.input_distributions)
    n_activations = layers - 1 if prior.activation_schedule == "per_layer" else 1
    activations = tuple(_choice(rng, prior.activations) for _ in range(n_activations))
    if prior.activation_schedule == "shared":
        activations *= layers - 1
    ordering = _choice(rng, prior.feature_orderings)
    feature_order = rng.permutation(d) if ordering == "shuffled" else np.arange(d)

    label_position = label_node = feature_nodes = None
    if causal:
        source = _choice(rng, prior.causal_sources)
        label_position = _choice(rng, prior.label_positions)
        width = max(width, ceil_count((d + 1) / (layers - 1)))
        block = 0 if label_position == "first" else layers - 2
        label_node = block * width + int(rng.integers(width))
        feature_nodes = _feature_nodes(rng, prior, source, label_node, d, (layers - 1) * width)
        feature_nodes = feature_nodes[feature_order]
    else:
        source = _choice(rng, prior.noncausal_sources)

    return Factors(
        n_features=d,
        n_labeled=n_labeled,
        n_unlabeled=ceil_count(n_labeled * eta),
        eta=eta,
        pi=pi,
        hidden_layers=layers,
        hidden_width=width,
        n_causes=d if prior.n_causes == "n_features" else prior.n_causes,
        sigma_noise=sigma_noise,
        input_distribution=input_distribution,
        activations=activations,
        causal=causal,
        source=source,
        ordering=ordering,
        feature_order=feature_order,
        label_position=label_position,
        label_node=label_node,
        feature_nodes=feature_nodes,
        extensions=chosen.parameters(d) if chosen else None,
    )


def draw_architecture(prior: PriorConfig, stage: int, split: Split = "train") -> tuple[int, int]:
    """Draw (L_g, h) of a stage's SCMs, which are fixed within the stage (paper, Section 4.1)."""
    rng = stage_generator(prior.seed, split, stage)
    return _integer(rng, prior.hidden_layers), _integer(rng, prior.hidden_width)


def _feature_nodes(
    rng: np.random.Generator,
    prior: PriorConfig,
    source: str,
    label_node: int,
    d: int,
    pool_size: int,
) -> np.ndarray:
    """Draw d pool nodes without the label's, in graph order (paper, Section 2.2, causal mode)."""
    if source == "clique":
        lowest, highest = max(0, label_node - d), min(label_node, pool_size - d - 1)
        if prior.clique_window == "centered":
            start = min(max(label_node - d // 2, lowest), highest)
        else:
            start = int(rng.integers(lowest, highest + 1))
        window = np.arange(start, start + d + 1)
        return window[window != label_node]
    others = np.delete(np.arange(pool_size), label_node)
    return np.sort(rng.choice(others, size=d, replace=False))


def _integer(rng: np.random.Generator, interval: tuple[int, int]) -> int:
    return int(rng.integers(interval[0], interval[1], endpoint=True))


def _uniform(rng: np.random.Generator, interval: tuple[float, float]) -> float:
    return float(rng.uniform(*interval))


def _choice(rng: np.random.Generator, values: Sequence):
    return values[int(rng.integers(len(values)))]
