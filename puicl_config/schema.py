"""The typed configuration: one frozen section for each of `prior`, `shards`, `model`, `train`.

Defaults are the paper's values and, where the paper is silent, the choices listed in
`docs/paper_map.md`. Symbols follow the paper: P labelled positives, n_u unlabelled rows,
eta = n_u / P, pi = negative prevalence, d features, k causes, h hidden width, L_g hidden layers.
"""

from typing import Annotated, Literal

from pydantic import Field, model_serializer, model_validator

from puicl_config.extensions import ExtensionsConfig
from puicl_config.fields import (
    AtLeastTwo,
    Distinct,
    FractionInterval,
    Interval,
    IntInterval,
    NotNegative,
    Ordered,
    Positive,
    PositiveFloat,
    Section,
)

ACTIVATIONS = (
    "tanh",
    "relu",
    "gelu",
    "identity",
    "sign",
    "step",
    "rbf",
    "sin",
    "square",
    "abs",
)
Activation = Literal[
    "tanh", "relu", "gelu", "identity", "sign", "step", "rbf", "sin", "square", "abs"
]


class PriorConfig(Section):
    """What data this is: geometry, curriculum, SCM prior and root seed (paper, Sections 2 and 4).

    This section alone is the *plan*; `puicl_config.plan_digest` names it.
    """

    seed: int = Field(default=0, ge=0, lt=2**63)

    # Geometry: stages 1..K are the curriculum, stages above K the tail.
    stages: Positive = 100
    steps_per_stage: Positive = 750
    tail_steps: int = Field(default=25_000, ge=0)
    microbatches_per_step: Positive = 2
    tasks_per_microbatch: Positive = 24

    # Composition of a task, drawn once a microbatch (pi: see `pi_drawn_per`).
    n_features: IntInterval = (5, 20)
    n_labeled: IntInterval = (100, 300)
    eta_first: Interval = (1.0, 1.0)
    eta_final: Interval = (0.5, 2.0)
    pi_first: FractionInterval = (0.5, 0.5)
    pi_final: FractionInterval = (0.1, 0.9)
    pi_drawn_per: Literal["task", "microbatch"] = "task"
    p_causal_final: float = Field(default=0.5, ge=0, le=1)

    # The SCM: L_g and h once a stage, weights once a task, the rest once a microbatch.
    hidden_layers: Annotated[tuple[AtLeastTwo, AtLeastTwo], Ordered] = (4, 12)
    hidden_width: IntInterval = (12, 36)
    n_causes: Literal["n_features"] | Positive = "n_features"
    sigma_init: float = Field(default=0.8, gt=0, le=100)
    sigma_noise: Annotated[tuple[NotNegative, ...], Distinct] = (
        0.005,
        0.01,
        0.02,
    )
    activations: Annotated[tuple[Activation, ...], Distinct] = ACTIVATIONS
    activation_schedule: Literal["per_layer", "shared"] = "per_layer"
    input_distributions: Annotated[tuple[Literal["gaussian", "uniform"], ...], Distinct] = (
        "gaussian",
        "uniform",
    )
    noncausal_sources: Annotated[tuple[Literal["head", "causes"], ...], Distinct] = (
        "head",
        "causes",
    )
    causal_sources: Annotated[tuple[Literal["clique", "subset"], ...], Distinct] = (
        "clique",
        "subset",
    )
    label_positions: Annotated[tuple[Literal["first", "last"], ...], Distinct] = (
        "first",
        "last",
    )
    clique_window: Literal["uniform", "centered"] = "uniform"
    feature_orderings: Annotated[tuple[Literal["graph", "shuffled"], ...], Distinct] = (
        "graph",
        "shuffled",
    )
    # Squares of clamped states times h weights must stay finite in float32.
    state_clamp: float = Field(default=1e6, gt=0, le=1e12)
    value_clip: PositiveFloat = 20.0

    # Beyond the paper, off by default; the last key, and left out of a plan that lacks it.
    extensions: ExtensionsConfig = ExtensionsConfig()

    @model_serializer(mode="wrap")
    def _without_default_extensions(self, dump):
        """Plain data; `extensions` is written only where it is not the default."""
        plain = dump(self)
        if self.extensions == ExtensionsConfig():
            plain.pop("extensions", None)
        return plain

    @model_validator(mode="after")
    def _causes_can_be_features(self):
        widths = {*self.n_features, *(self.extensions.n_features or ())}
        if (
            self.n_causes != "n_features"
            and "causes" in self.noncausal_sources
            and widths != {self.n_causes}
        ):
            raise ValueError(
                "noncausal_sources holds 'causes', which takes the causes as features, so "
                "n_causes must be 'n_features' or equal both ends of n_features"
            )
        return self

    @model_validator(mode="after")
    def _both_classes_fit(self):
        smallest_eta = min(self.eta_first[0], self.eta_final[0])
        extended = self.extensions
        n_labeled = extended.n_labeled or self.n_labeled
        extended_eta = extended.eta[0] if extended.eta else smallest_eta
        smallest = min(self.n_labeled[0] * smallest_eta, n_labeled[0] * extended_eta)
        if smallest < 1 + 1e-6:
            raise ValueError(
                "n_labeled times eta can fall to one unlabelled row; at least two are needed, "
                "one of each class"
            )
        most = n_labeled[1] * (1 + extended_eta)
        if extended.max_rows and extended.max_rows < most - 1e-6:
            raise ValueError(
                f"extensions.max_rows {extended.max_rows} is less than the {most:g} rows that the "
                "largest n_labeled needs at the smallest eta"
            )
        return self

    @property
    def curriculum_steps(self) -> int:
        """Optimizer steps of phase 1, the curriculum."""
        return self.stages * self.steps_per_stage

    @property
    def total_steps(self) -> int:
        """Optimizer steps of both phases."""
        return self.curriculum_steps + self.tail_steps

    @property
    def total_stages(self) -> int:
        """Number of stages, the tail's included; its last stage may be short."""
        return self.stages + -(-self.tail_steps // self.steps_per_stage)

    def steps_in_stage(self, stage: int) -> int:
        """Steps of one stage (1-based); 0 where the plan has no such stage."""
        if not 1 <= stage <= self.total_stages:
            return 0
        return min(self.steps_per_stage, self.total_steps - (stage - 1) * self.steps_per_stage)


class ShardsConfig(Section):
    """How the plan is stored: outside the plan's digest, fixed for one folder."""

    format: Literal["zarr", "webdataset"] = "zarr"
    parts_per_stage: Positive = 8
    x_dtype: Literal["float16", "float32"] = "float16"
    # How zarr packs: a folder keeps what it began with, whatever a later config says.
    zstd_level: int = Field(default=1, ge=1, le=22)
    shuffle: Literal["bytes", "bits"] = "bytes"  # what of `x` is regrouped before zstd
    chunk_cells: int = Field(default=2**17, ge=2**10)


class ModelConfig(Section):
    """The dual-axis transformer (paper, Section 3); the defaults have 1,226,882 parameters."""

    embedding_size: Positive = 128
    layers: Positive = 6
    heads: Positive = 8
    feedforward_size: Positive = 256
    standardize_by: Literal["labeled", "all"] = "labeled"
    feature_clip: PositiveFloat = 100.0

    # Beyond the paper, each off by default and switchable alone.
    norm: Literal["layernorm", "rmsnorm"] = "layernorm"
    feature_heads: Positive | None = None  # heads of the attention within rows; None: `heads`
    row_heads: Positive | None = None  # heads of the attention within columns; None: `heads`
    thinking_rows: int = Field(default=0, ge=0)
    feature_group: Annotated[tuple[Annotated[int, Field(ge=0)], ...], Distinct] = (0,)
    reveals_negatives: bool = False

    @model_validator(mode="after")
    def _heads_divide_embedding(self):
        for name in ("heads", "feature_heads", "row_heads"):
            heads = getattr(self, name)
            if heads and self.embedding_size % heads:
                raise ValueError(
                    f"embedding_size {self.embedding_size} is not a multiple of {name} {heads}"
                )
        return self


class PhaseConfig(Section):
    """One phase's learning rate: warm-up to `peak`, polynomial decay to `floor`."""

    peak: PositiveFloat
    floor: float = Field(ge=0)
    warmup_steps: int = Field(ge=0)

    @model_validator(mode="after")
    def _floor_below_peak(self):
        if self.floor > self.peak:
            raise ValueError(f"floor {self.floor} lies above peak {self.peak}")
        return self


class RevealConfig(Section):
    """A share of the true negatives shown with their label, falling linearly to none.

    `share` at the first step, zero from `until` times all steps on.
    """

    share: float = Field(default=0.0, ge=0, lt=1)
    until: float = Field(default=0.5, gt=0, le=1)


class TrainConfig(Section):
    """The optimizer's two phases, precision, and when to stop, log and save."""

    seed: int = Field(default=0, ge=0, lt=2**63)
    sampler: Literal["curriculum", "shuffled"] = "curriculum"
    phase1: PhaseConfig = PhaseConfig(peak=1.6e-4, floor=1.6e-5, warmup_steps=4000)
    phase2: PhaseConfig = PhaseConfig(peak=4e-5, floor=4e-6, warmup_steps=2000)
    decay_exponent: PositiveFloat = 1.5
    beta1: float = Field(default=0.9, ge=0, lt=1)
    beta2: float = Field(default=0.95, ge=0, lt=1)
    adam_epsilon: PositiveFloat = 1e-8
    weight_decay: float = Field(default=1e-4, ge=0)
    clip_norm: PositiveFloat = 1.0
    ema_decay: float = Field(default=0.95, ge=0, lt=1)
    optimizer: Literal["adamw", "muon"] = "adamw"
    muon_lr_ratio: PositiveFloat = 8.0  # Muon's learning rate over AdamW's
    muon_momentum: float = Field(default=0.95, ge=0, lt=1)
    reveal_negatives: RevealConfig = RevealConfig()
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    device: Literal["auto", "cpu", "cuda"] = "auto"
    threads_per_process: Positive = 1
    tasks_per_forward: Positive | None = None

    # A checkpoint to begin from, of a run under another config: its digest, not its path, is part
    # of the run's digest.
    init_from: str | None = None

    # Outside the run's digest: they say when to stop, log and save, and never change a bit.
    max_steps: int | None = Field(default=None, ge=0)
    max_seconds: PositiveFloat | None = None
    log_every: Positive = 50
    digest_every: Positive = 100
    checkpoint_every: Positive = 500
    keep_checkpoints: Positive = 3
    loader_threads: int = Field(default=1, ge=0)


# Keys of `train` that never change a bit of the weights, hence no part of the run's digest.
RUN_DIGEST_EXCLUDES = frozenset(
    {
        "max_steps",
        "max_seconds",
        "log_every",
        "digest_every",
        "checkpoint_every",
        "keep_checkpoints",
        "loader_threads",
        "init_from",
    }
)


class Config(Section):
    """One experiment. `name` is where its run goes by default (`runs/<name>`)."""

    name: str = Field(default="paper", pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    prior: PriorConfig = PriorConfig()
    shards: ShardsConfig = ShardsConfig()
    model: ModelConfig = ModelConfig()
    train: TrainConfig = TrainConfig()

    @model_validator(mode="after")
    def _revealed_negatives_have_a_token(self):
        if self.train.reveal_negatives.share and not self.model.reveals_negatives:
            raise ValueError("train.reveal_negatives needs model.reveals_negatives: true")
        return self
