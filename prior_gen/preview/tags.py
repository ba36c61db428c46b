"""How often each value of a tag occurs, and how often the plan expects it."""

import math
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from prior_gen.curriculum import stage_ranges
from prior_gen.factors import draw_factors
from prior_gen.preview.sample import Sample, Seen, evenly
from puicl_config import EXTENSIONS, PriorConfig, Split

Interval = tuple[int, int]
_DRAWN = 1000


@dataclass(frozen=True)
class TagCounts:
    """Counts of one tag: `values` (numbers or words), `counts`, and `expected` or None.

    `unit` is what is counted, such as microbatches, stages or hidden layers.
    """

    name: str
    unit: str
    values: tuple
    counts: tuple[int, ...]
    expected: tuple[float, ...] | None

    @property
    def numeric(self) -> bool:
        """Whether the values are whole numbers, to be binned, and not names."""
        return self.name in ("d", "P", "n_u", "L_g", "h")


def tag_counts(sample: Sample) -> list[TagCounts]:
    """Counts of the tags that the preview shows, in a fixed order.

    Tags of an SCM are counted only for microbatches that have one. Expected counts of extended
    microbatches follow `prior.extensions`.
    """
    prior, seen = sample.prior, sample.seen
    tags = [one.tags for one in seen if one.has_scm]
    causal = [tag for tag in tags if tag["causal"]]
    layers = [activation for tag in tags for activation in tag["activations"]]
    # A `shallow` microbatch has its own L_g, which says nothing about its stage's.
    plain = [one for one in seen if one.has_scm and "shallow" not in _extensions(one)]
    by_stage = [[one.tags for one in plain if one.stage == stage] for stage in sample.stages]
    by_stage = [here for here in by_stage if here]
    # A causal microbatch may raise h to make room for d + 1 nodes; the stage's h is the smallest.
    widths = [min(tag["hidden_width"] for tag in here) for here in by_stage]
    depths = [here[0]["hidden_layers"] for here in by_stage]
    batches = "microbatches"
    models = batches if len(tags) == len(seen) else "microbatches with an SCM"
    return [
        _whole("d", batches, [one.tags["n_features"] for one in seen], _sizes(seen, prior, "d")),
        _whole("P", batches, [one.n_labeled for one in seen], _sizes(seen, prior, "P")),
        _whole("n_u", batches, [one.n_unlabeled for one in seen], None),
        _whole("L_g", "stages", depths, [prior.hidden_layers] * len(depths)),
        _whole("h", "stages", widths, [prior.hidden_width] * len(widths)),
        _named("sigma_noise", models, [tag["sigma_noise"] for tag in tags], prior.sigma_noise),
        _named("activations", "hidden layers", layers, prior.activations),
        _sources(sample, models),
        _named(
            "label position",
            "causal microbatches",
            [tag["label_position"] for tag in causal],
            prior.label_positions,
        ),
        _named("ordering", models, [tag["ordering"] for tag in tags], prior.feature_orderings),
        _named(
            "input distribution",
            models,
            [tag["input_distribution"] for tag in tags],
            prior.input_distributions,
        ),
    ]


def extension_counts(sample: Sample) -> TagCounts | None:
    """Counts of the extensions in extended microbatches; None if the plan has none.

    Whether a microbatch has an extension depends on its others, so expected counts are measured:
    factors of a thousand extended microbatches are drawn, without tasks, in the split that
    the sample is not of.
    """
    extensions = sample.prior.extensions
    if not extensions.share:
        return None
    seen = Counter(name for one in sample.seen for name in _extensions(one))
    extended = sum("extensions" in one.tags for one in sample.seen)
    split: Split = "train" if sample.reader.manifest.split == "heldout" else "heldout"
    always = extensions.model_copy(update={"share": 1.0})
    prior = sample.prior.model_copy(update={"extensions": always})
    drawn = [draw_factors(prior, *at, split).chosen for at in _addresses(prior)]
    expected = Counter(name for chosen in drawn for name in chosen)
    names = tuple(name for name in EXTENSIONS if seen[name] or expected[name])
    if not names:  # only ranges
        return None
    return TagCounts(
        "extensions",
        "extended microbatches",
        names,
        tuple(seen[name] for name in names),
        tuple(extended / len(drawn) * expected[name] for name in names),
    )


def _addresses(prior: PriorConfig) -> list[tuple[int, int, int]]:
    """A thousand addresses, evenly spaced in the plan; short plans are given longer steps."""
    steps = [
        (s, t) for s in range(1, prior.total_stages + 1) for t in range(prior.steps_in_stage(s))
    ]
    each = max(prior.microbatches_per_step, math.ceil(_DRAWN / len(steps)))
    places = evenly(range(len(steps) * each), _DRAWN)
    return [(*steps[place // each], place % each) for place in places]


def _extensions(one: Seen) -> Collection[str]:
    return one.tags.get("extensions") or ()


def _sizes(seen: Sequence[Seen], prior: PriorConfig, size: str) -> list[Interval | None]:
    """The interval that d or P of each microbatch was drawn from; None for P of `few_labeled`."""
    key = {"d": "n_features", "P": "n_labeled"}[size]
    own = getattr(prior.extensions, key) or getattr(prior, key)
    few = [size == "P" and "few_labeled" in _extensions(one) for one in seen]
    return [
        None if is_few else own if "extensions" in one.tags else getattr(prior, key)
        for one, is_few in zip(seen, few, strict=True)
    ]


def _whole(
    name: str, unit: str, numbers: list[int], intervals: Sequence[Interval | None] | None
) -> TagCounts:
    """Counts of every whole number between the least and the greatest that occurs or may occur.

    Expected counts are uniform within each microbatch's interval; None if an interval is missing.
    """
    ends = [end for interval in intervals or () if interval for end in interval]
    if not numbers:
        return TagCounts(name, unit, (), (), None)
    low, high = min([*numbers, *ends]), max([*numbers, *ends])
    counts = np.bincount(np.array(numbers) - low, minlength=high - low + 1)
    expected = None
    if intervals and None not in intervals:
        total = np.zeros(high - low + 1)
        for interval, times in Counter(tuple(one) for one in intervals if one).items():
            inside = slice(interval[0] - low, interval[1] - low + 1)
            total[inside] += times / (interval[1] - interval[0] + 1)
        expected = tuple(map(float, total))
    return TagCounts(name, unit, tuple(range(low, high + 1)), tuple(map(int, counts)), expected)


def _named(name: str, unit: str, drawn: list, choices) -> TagCounts:
    counts = tuple(drawn.count(choice) for choice in choices)
    return TagCounts(name, unit, tuple(choices), counts, (len(drawn) / len(choices),) * len(counts))


def _sources(sample: Sample, unit: str) -> TagCounts:
    prior = sample.prior
    models = [one for one in sample.seen if one.has_scm]
    p_causal = [stage_ranges(prior, one.stage).p_causal for one in models]
    causal = float(np.sum(p_causal))
    choices = [
        (name, total / len(names))
        for names, total in (
            (prior.noncausal_sources, len(p_causal) - causal),
            (prior.causal_sources, causal),
        )
        for name in names
    ]
    drawn = [one.source for one in models]
    return TagCounts(
        "source",
        unit,
        tuple(name for name, _ in choices),
        tuple(drawn.count(name) for name, _ in choices),
        tuple(expected for _, expected in choices),
    )
