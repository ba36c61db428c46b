"""The section `prior.extensions`: extensions of the paper's prior, all off by default."""

from typing import Annotated, Literal, get_args

from pydantic import Field, model_validator

from puicl_config.fields import (
    LATER,
    AtLeastTwo,
    CountInterval,
    FactorInterval,
    Fraction,
    FractionInterval,
    Interval,
    IntInterval,
    Later,
    NotEmpty,
    NotNegative,
    Ordered,
    Probability,
    ScaleInterval,
    Section,
)

_FirstRules = Literal[
    "equality", "parity", "count", "conjunction", "disjunction", "dnf", "points", "product"
]
# Newer rules are drawn only if `rule_kinds` names them.
_LaterRules = Literal[
    "tally", "terms", "switch", "blocks", "multiplexer", "logistic", "forest", "hierarchy"
]
RuleKind = Literal[_FirstRules, _LaterRules]
RULE_KINDS: tuple[RuleKind, ...] = get_args(_FirstRules)
# Rules that read numbers, not only codes, and are smooth in them.
SMOOTH_RULES = frozenset({"product", "logistic", "forest"})
_Newer = Annotated[Probability, LATER]  # of an extension that the first plans did not have


class ExtensionsConfig(Section):
    """Extensions of the prior: a `share` of the microbatches is extended.

    Each extension is applied to an extended microbatch with its own probability. By default,
    nothing is extended. docs/prior_extensions.md describes each extension.
    """

    share: Probability = 0.0

    # Ranges of every extended microbatch; null keeps the plan's range.
    n_features: IntInterval | None = None
    n_labeled: IntInterval | None = None
    eta: Interval | None = None
    pi: FractionInterval | None = None
    max_rows: AtLeastTwo | None = None  # eta is lowered until P + n_u fits

    # Probability of each extension within an extended microbatch.
    shallow: Probability = 0.0
    independent: Probability = 0.0
    discrete: Probability = 0.0
    warped: Probability = 0.0
    irrelevant: Probability = 0.0
    duplicated: Probability = 0.0
    tree_labels: Probability = 0.0
    rule_labels: Probability = 0.0
    free_border: Probability = 0.0  # only if labels are cut from a score
    label_noise: Probability = 0.0
    sar: Probability = 0.0
    missing: Probability = 0.0
    proportional: _Newer = 0.0
    factorial: _Newer = 0.0  # only if labels come from a tree or a rule
    few_labeled: _Newer = 0.0
    soft_border: _Newer = 0.0  # only if labels are cut from a score
    cluster_labels: _Newer = 0.0
    two_sided: _Newer = 0.0  # only if labels are cut from a score
    factor_model: _Newer = 0.0
    censored: _Newer = 0.0
    normal_scores: _Newer = 0.0
    graph: _Newer = 0.0
    principal_axes: _Newer = 0.0
    mirrored: _Newer = 0.0
    grouped: _Newer = 0.0  # not with designs, clusters, or rules that read only codes
    mixed_orders: _Newer = 0.0  # only with discrete columns in layout "own"
    # Replaces `factorial` if a rule reads only codes: all kinds except SMOOTH_RULES.
    factorial_coded: Annotated[Probability | None, LATER] = None

    # Parameters of the extensions, drawn uniformly from these ranges unless noted otherwise.
    shallow_layers: CountInterval = (2, 3)
    levels: CountInterval = (2, 6)
    irrelevant_share: FractionInterval = (0.1, 0.6)
    duplicated_share: FractionInterval = (0.05, 0.3)
    tree_depth: IntInterval = (1, 5)
    # A kind listed twice is drawn twice as often.
    rule_kinds: Annotated[tuple[RuleKind, ...], NotEmpty] = RULE_KINDS
    rule_arity: CountInterval = (2, 4)
    border: FractionInterval = (0.2, 0.8)
    noise_share: Annotated[tuple[NotNegative, Annotated[float, Field(ge=0, le=0.5)]], Ordered] = (
        0.0,
        0.2,
    )
    sar_strength: Annotated[tuple[NotNegative, Annotated[float, Field(ge=0, le=20)]], Ordered] = (
        0.0,
        2.0,
    )
    missing_share: Annotated[tuple[NotNegative, Fraction], Ordered] = (0.02, 0.3)
    proportional_size: Annotated[ScaleInterval, Later("proportional")] = (1.0, 20.0)  # log-uniform
    # Combinations of a design per row of the task, at least 1; log-uniform.
    factorial_size: Annotated[FactorInterval, Later("factorial")] = (2.0, 8.0)
    # Drawn log-uniformly, in place of n_labeled and eta.
    few_labeled_rows: Annotated[IntInterval, Later("few_labeled")] = (4, 24)
    few_labeled_unlabeled_rows: Annotated[CountInterval, Later("few_labeled")] = (60, 500)
    clusters: Annotated[CountInterval, Later("cluster_labels")] = (2, 10)
    # The next three are log-uniform.
    cluster_separation: Annotated[ScaleInterval, Later("cluster_labels")] = (1.0, 7.0)
    cluster_common: Annotated[ScaleInterval, Later("cluster_labels")] = (0.2, 3.0)
    softness: Annotated[ScaleInterval, Later("soft_border")] = (0.1, 2.0)
    factors: Annotated[IntInterval, Later("factor_model")] = (1, 4)
    factor_common: Annotated[ScaleInterval, Later("factor_model")] = (0.2, 5.0)  # log-uniform
    censored_share: Annotated[FractionInterval, Later("censored")] = (0.1, 0.9)
    graph_hidden: Annotated[IntInterval, Later("graph")] = (2, 16)
    # The last three are log-uniform.
    graph_noise: Annotated[ScaleInterval, Later("graph")] = (0.03, 1.0)
    group_size: Annotated[FactorInterval, Later("grouped")] = (2.0, 30.0)
    group_closeness: Annotated[FractionInterval, Later("grouped")] = (0.03, 0.5)

    def _is_used(self, key: str, mark: Later) -> bool:
        # Designs for rules that read codes have this size, too.
        if key == "factorial_size" and self.factorial_coded and not self._is_default(key):
            return True
        return super()._is_used(key, mark)

    @model_validator(mode="after")
    def _one_source_of_labels(self):
        shares = {name: getattr(self, name) for name in LABEL_SOURCES}
        if sum(shares.values()) > 1 + 1e-9:
            given = " and ".join(f"{name} {share}" for name, share in shares.items() if share)
            raise ValueError(f"{given} exclude each other, so they must not sum to more than 1")
        return self

    @model_validator(mode="after")
    def _a_share_extends_something(self):
        if self.share and not any(getattr(self, name) for name in (*RANGES, *EXTENSIONS)):
            raise ValueError(
                f"share is {self.share}, but no extension has a probability above 0 and no range "
                "is given"
            )
        return self

    @model_validator(mode="after")
    def _few_labeled_rows_leave_room(self):
        most = self.few_labeled_rows[1] + self.few_labeled_unlabeled_rows[0]
        if self.few_labeled and self.max_rows and self.max_rows < most:
            raise ValueError(
                f"max_rows {self.max_rows} is less than the {most} rows that the most "
                "few_labeled_rows and the fewest few_labeled_unlabeled_rows make"
            )
        return self

    @model_validator(mode="after")
    def _independent_columns_need_labels_from_columns(self):
        for name in ("independent", "factorial"):
            if getattr(self, name) and not self.tree_labels + self.rule_labels:
                raise ValueError(
                    f"{name} needs tree_labels or rule_labels above 0: the SCM's label says "
                    "nothing about independent columns"
                )
        if self.factorial_coded and not self.rule_labels:
            raise ValueError(
                "factorial_coded needs rule_labels above 0: it applies only to labels from rules"
            )
        return self

    @model_validator(mode="after")
    def _mixed_orders_need_discrete_columns(self):
        if self.mixed_orders and not self.discrete:
            raise ValueError("mixed_orders needs discrete above 0: it applies to discrete columns")
        return self


# Extensions that replace the SCM's labels.
LABEL_SOURCES = ("tree_labels", "rule_labels", "cluster_labels")
RANGES = ("n_features", "n_labeled", "eta", "pi", "max_rows")
# Append only: each draws a number in this order, and another order would change every plan.
EXTENSIONS = (
    "shallow",
    "independent",
    "discrete",
    "warped",
    "irrelevant",
    "duplicated",
    "tree_labels",
    "rule_labels",
    "free_border",
    "label_noise",
    "sar",
    "missing",
    "proportional",
    "factorial",
    "few_labeled",
    "soft_border",
    "cluster_labels",
    "two_sided",
    "factor_model",
    "censored",
    "normal_scores",
    "graph",
    "principal_axes",
    "mirrored",
    "grouped",
)
