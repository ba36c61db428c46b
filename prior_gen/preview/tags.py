"""How often each value of a tag occurs, and how often the plan says it should."""

from dataclasses import dataclass

import numpy as np

from prior_gen.curriculum import stage_ranges
from prior_gen.preview.sample import Sample


@dataclass(frozen=True)
class TagCounts:
    """Counts of one tag: `values` (numbers or words), `counts`, and `expected` or None.

    `unit` is what is counted: microbatches, stages or hidden layers.
    """

    name: str
    unit: str
    values: tuple
    counts: tuple[int, ...]
    expected: tuple[float, ...] | None

    @property
    def numeric(self) -> bool:
        """Whether the values are counts to be binned rather than names."""
        return self.name in ("d", "P", "n_u", "L_g", "h")


def tag_counts(sample: Sample) -> list[TagCounts]:
    """All tags worth a look, in a fixed order."""
    prior, seen = sample.prior, sample.seen
    tags = [one.tags for one in seen]
    causal = [tag for tag in tags if tag["causal"]]
    layers = [activation for tag in tags for activation in tag["activations"]]
    by_stage = [[one.tags for one in sample.of_stage(stage)] for stage in sample.stages]
    # A causal microbatch may have raised h to find room for d + 1 nodes: the least is the stage's.
    widths = [min(tag["hidden_width"] for tag in here) for here in by_stage]
    depths = [here[0]["hidden_layers"] for here in by_stage]
    batches = "microbatches"
    return [
        _whole("d", batches, [tag["n_features"] for tag in tags], prior.n_features),
        _whole("P", batches, [one.n_labeled for one in seen], prior.n_labeled),
        _whole("n_u", batches, [one.n_unlabeled for one in seen], None),
        _whole("L_g", "stages", depths, prior.hidden_layers),
        _whole("h", "stages", widths, prior.hidden_width),
        _named("sigma_noise", batches, [tag["sigma_noise"] for tag in tags], prior.sigma_noise),
        _named("activations", "hidden layers", layers, prior.activations),
        _sources(sample),
        _named(
            "label position",
            "causal microbatches",
            [tag["label_position"] for tag in causal],
            prior.label_positions,
        ),
        _named("ordering", batches, [tag["ordering"] for tag in tags], prior.feature_orderings),
        _named(
            "input distribution",
            batches,
            [tag["input_distribution"] for tag in tags],
            prior.input_distributions,
        ),
    ]


def _whole(name: str, unit: str, numbers: list[int], interval) -> TagCounts:
    """Every whole number of the interval (or between the extremes), uniform where one is given."""
    low, high = interval or (min(numbers), max(numbers))
    low, high = min(low, *numbers), max(high, *numbers)
    counts = np.bincount(np.array(numbers) - low, minlength=high - low + 1)
    expected = None
    if interval:
        inside = interval[1] - interval[0] + 1
        expected = tuple(
            len(numbers) / inside if interval[0] <= value <= interval[1] else 0.0
            for value in range(low, high + 1)
        )
    return TagCounts(name, unit, tuple(range(low, high + 1)), tuple(map(int, counts)), expected)


def _named(name: str, unit: str, drawn: list, choices) -> TagCounts:
    counts = tuple(drawn.count(choice) for choice in choices)
    return TagCounts(name, unit, tuple(choices), counts, (len(drawn) / len(choices),) * len(counts))


def _sources(sample: Sample) -> TagCounts:
    prior = sample.prior
    p_causal = [stage_ranges(prior, one.stage).p_causal for one in sample.seen]
    causal = float(np.sum(p_causal))
    choices = [
        (name, total / len(names))
        for names, total in (
            (prior.noncausal_sources, len(p_causal) - causal),
            (prior.causal_sources, causal),
        )
        for name in names
    ]
    drawn = [one.tags["source"] for one in sample.seen]
    return TagCounts(
        "source",
        "microbatches",
        tuple(name for name, _ in choices),
        tuple(drawn.count(name) for name, _ in choices),
        tuple(expected for _, expected in choices),
    )
