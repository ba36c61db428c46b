"""The extensions of a microbatch and their parameters, which are drawn first and kept as a tag."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from prior_gen.curriculum import StageRanges
from prior_gen.extensions import (
    border,
    censored,
    clusters,
    discrete,
    duplicated,
    factor_model,
    factorial,
    few_labeled,
    graph,
    grouped,
    independent,
    irrelevant,
    labeling,
    mirrored,
    missing,
    noise,
    normal_scores,
    principal_axes,
    proportional,
    rules,
    soft_border,
    trees,
    two_sided,
    warped,
)
from prior_gen.extensions.drawn import Parameters, labeled_by_columns, labeled_by_score
from prior_gen.extensions.streams import Streams
from puicl_config import (
    EXTENSIONS,
    LABEL_SOURCES,
    RANGES,
    SMOOTH_RULES,
    ExtensionsConfig,
    PriorConfig,
    Split,
)

# In the order of drawing: an extension may depend on earlier ones (on irrelevant columns, say).
_DRAWS: dict[str, Callable[..., Parameters | None]] = {
    "factorial": factorial.draw,
    "independent": independent.draw,
    "factor_model": factor_model.draw,
    "graph": graph.draw,
    "discrete": discrete.draw,
    "warped": warped.draw,
    "irrelevant": irrelevant.draw,
    "duplicated": duplicated.draw,
    "proportional": proportional.draw,
    "censored": censored.draw,
    "tree_labels": trees.draw,
    "rule_labels": rules.draw,
    "cluster_labels": clusters.draw,
    "two_sided": two_sided.draw,
    "free_border": border.draw,
    "soft_border": soft_border.draw,
    "label_noise": noise.draw,
    "sar": labeling.draw,
    "missing": missing.draw,
    "normal_scores": normal_scores.draw,
    "principal_axes": principal_axes.draw,
    "mirrored": mirrored.draw,
    "grouped": grouped.draw,
}


@dataclass(frozen=True)
class Choices:
    """The extensions of one microbatch, before their parameters are drawn."""

    config: ExtensionsConfig
    names: frozenset[str]
    streams: Streams

    def widen(
        self, prior: PriorConfig, ranges: StageRanges, layers: int
    ) -> tuple[PriorConfig, StageRanges, int]:
        """Sizes, ranges and number of layers that the microbatch's factors are drawn with."""
        config = self.config
        prior = prior.model_copy(
            update={
                "n_features": config.n_features or prior.n_features,
                "n_labeled": config.n_labeled or prior.n_labeled,
            }
        )
        ranges = replace(
            ranges,
            eta=config.eta or ranges.eta,
            pi=config.pi or ranges.pi,
            max_rows=config.max_rows or ranges.max_rows,
        )
        if "shallow" in self.names:
            layers = self._shallow_layers()
        return prior, ranges, layers

    def rows(self, n_labeled: int, eta: float) -> tuple[int, float]:
        """P and eta of the microbatch: the given ones, unless `few_labeled` replaces them."""
        if "few_labeled" not in self.names:
            return n_labeled, eta
        few = self._few_labeled()
        return few["n_labeled"], few["n_unlabeled"] / few["n_labeled"]

    def parameters(self, n_features: int) -> dict[str, Parameters]:
        """Parameters of each extension as JSON values: the microbatch's tag `extensions`.

        An extension without anything to act on is left out: a single column cannot be duplicated.
        """
        drawn: dict[str, Parameters] = {}
        if changed := [name for name in RANGES if getattr(self.config, name)]:
            drawn["ranges"] = {"of": changed}
        if "shallow" in self.names:
            drawn["shallow"] = {"hidden_layers": self._shallow_layers()}
        if "few_labeled" in self.names:
            drawn["few_labeled"] = self._few_labeled()
        for name, draw in _DRAWS.items():
            if name in self.names:
                parameters = draw(self.streams.of(name), self.config, n_features, drawn)
                if parameters is not None:
                    drawn[name] = parameters
        return drawn

    def _shallow_layers(self) -> int:
        return int(self.streams.of("shallow").integers(*self.config.shallow_layers, endpoint=True))

    def _few_labeled(self) -> Parameters:
        return few_labeled.draw(self.streams.of("few_labeled"), self.config)


def choose_extensions(
    prior: PriorConfig, stage: int, step: int, index: int, split: Split
) -> Choices | None:
    """The extensions of microbatch [stage, step, index]; None if it is of the paper's prior."""
    config = prior.extensions
    if not config.share:
        return None
    streams = Streams(prior.seed, split, (stage, step, index))
    rng = streams.of("choice")
    if rng.random() >= config.share:
        return None
    # One number per extension in a fixed order, even for those that are off.
    luck = dict(zip(EXTENSIONS, rng.random(len(EXTENSIONS)), strict=True))
    names = {name for name in EXTENSIONS if luck[name] < getattr(config, name)}
    # Labels come from a tree, a rule, clusters or a score; one number decides among these four.
    names -= set(LABEL_SOURCES)
    reached = 0.0
    for source in LABEL_SOURCES:
        reached += getattr(config, source)
        if luck["tree_labels"] < reached:
            names.add(source)
            break
    if luck["factorial"] < _design_probability(config, names, streams):
        names.add("factorial")
    else:
        names.discard("factorial")
    # Extensions that change a score need one, and a score needs the columns it was made with.
    if not labeled_by_score(names):
        names -= {"free_border", "soft_border", "two_sided"}
    if not labeled_by_columns(names):
        names -= {"independent", "factorial"}
    if "cluster_labels" in names:
        names -= clusters.REPLACED
    if "factorial" in names:
        names -= factorial.REPLACED
    if "independent" in names:
        names -= {"factor_model", "graph"}
    if "factor_model" in names:
        names -= factor_model.REPLACED
    if "graph" in names:
        names -= graph.REPLACED
    if names & {"cluster_labels", "factorial"} or _reads_codes(config, names, streams):
        names.discard("grouped")
    return Choices(config, frozenset(names), streams)


def _design_probability(config: ExtensionsConfig, names: set[str], streams: Streams) -> float:
    """Probability that the rows are a factorial design, given the source of the labels."""
    if config.factorial_coded is None or not _reads_codes(config, names, streams):
        return config.factorial
    return config.factorial_coded


def _reads_codes(config: ExtensionsConfig, names: set[str], streams: Streams) -> bool:
    """Whether the labels come from a rule that reads only codes."""
    if "rule_labels" not in names:
        return False
    return rules.draw_kind(streams.of("rule_labels"), config) not in SMOOTH_RULES
