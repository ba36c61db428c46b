"""The section `prior`: which data is generated.

Defaults are the paper's values and, where the paper is silent, the choices listed in
`docs/paper_map.md`. Symbols follow the paper: P labelled positives, n_u unlabelled rows,
eta = n_u / P, pi = negative prevalence, d features, k causes, h hidden width, L_g hidden layers.
"""

from typing import Annotated, Literal, get_args

from pydantic import Field, model_validator

from puicl_config.extensions import ExtensionsConfig
from puicl_config.fields import (
    LATER,
    CountInterval,
    Distinct,
    FractionInterval,
    Interval,
    IntInterval,
    Positive,
    PositiveFloat,
    Section,
)

Split = Literal["train", "heldout"]
Activation = Literal[
    "tanh", "relu", "gelu", "identity", "sign", "step", "rbf", "sin", "square", "abs"
]
ACTIVATIONS: tuple[Activation, ...] = get_args(Activation)


class PriorConfig(Section):
    """Geometry, curriculum, SCM prior and root seed of the data (paper, Sections 2 and 4).

    This section alone is the *plan*; `puicl_config.plan_digest` names it.
    """

    seed: int = Field(default=0, ge=0, lt=2**63)

    # Geometry: stages 1..K are the curriculum, stages above K the tail.
    stages: Positive = 100
    steps_per_stage: Positive = 750
    tail_steps: int = Field(default=25_000, ge=0)
    microbatches_per_step: Positive = 2
    tasks_per_microbatch: Positive = 24

    # Composition of a task, drawn once per microbatch (pi: see `pi_drawn_per`).
    n_features: IntInterval = (5, 20)
    n_labeled: IntInterval = (100, 300)
    eta_first: Interval = (1.0, 1.0)
    eta_final: Interval = (0.5, 2.0)
    pi_first: FractionInterval = (0.5, 0.5)
    pi_final: FractionInterval = (0.1, 0.9)
    pi_drawn_per: Literal["task", "microbatch"] = "task"
    p_causal_final: float = Field(default=0.5, ge=0, le=1)

    # The SCM: L_g and h are drawn once per stage, weights per task, the rest per microbatch.
    hidden_layers: CountInterval = (4, 12)
    hidden_width: IntInterval = (12, 36)
    n_causes: Literal["n_features"] | Positive = "n_features"
    sigma_init: float = Field(default=0.8, gt=0, le=100)
    sigma_noise: Annotated[tuple[Annotated[float, Field(ge=0, le=1e6)], ...], Distinct] = (
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

    # "portable": the same bytes on every x86-64 processor. "libraries": functions of numpy and
    # BLAS, whose last bit differs between instruction sets.
    arithmetic: Annotated[Literal["libraries", "portable"], LATER] = "libraries"

    # Beyond the paper, off by default. Keep this key last.
    extensions: Annotated[ExtensionsConfig, LATER] = ExtensionsConfig()

    @property
    def portable(self) -> bool:
        """Whether tasks are computed with `prior_gen.elementary` and a fixed order of summation."""
        return self.arithmetic == "portable"

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
        """Number of stages including the tail's, the last of which may be short."""
        return self.stages + -(-self.tail_steps // self.steps_per_stage)

    def steps_in_stage(self, stage: int) -> int:
        """Steps of one stage (1-based); 0 if the plan has no such stage."""
        if not 1 <= stage <= self.total_stages:
            return 0
        return min(self.steps_per_stage, self.total_steps - (stage - 1) * self.steps_per_stage)
