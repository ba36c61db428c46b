"""Extensions and the promises: off they change nothing; on, tasks stay pure, finite and tagged."""

import hashlib
import random
from itertools import product

import numpy as np
import pytest

from prior_gen import generate_microbatch
from prior_gen.canary import canary_digest
from prior_gen.estimate import estimate
from prior_gen.extensions import choices, clusters, factor_model, graph
from prior_gen.extensions.factorial import REPLACED
from prior_gen.extensions.streams import NUMBERS, Streams
from prior_gen.extensions.task import generate_extended_tasks
from prior_gen.factors import draw_factors
from prior_gen.generator import generate_shards
from prior_gen.info import describe_shards
from prior_gen.seeding import microbatch_generator, stage_generator, task_generator
from puicl_config import (
    EXTENSIONS,
    LABEL_SOURCES,
    RULE_KINDS,
    SMOOTH_RULES,
    Config,
    PriorConfig,
    canonical_json,
    config_yaml,
    load_config,
    plan_digest,
    plan_of,
)
from shard_io import Manifest, PartId, ShardError, open_shards

SMALL = {"n_labeled": (12, 30), "tasks_per_microbatch": 4}
SWITCHED = {
    "shallow": 0.3,
    "independent": 0.5,
    "discrete": 0.5,
    "warped": 0.4,
    "irrelevant": 0.3,
    "duplicated": 0.3,
    "tree_labels": 0.2,
    "rule_labels": 0.3,
    "free_border": 0.5,
    "label_noise": 0.4,
    "sar": 0.4,
    "missing": 0.3,
    "proportional": 0.3,
    "factorial": 0.2,
    "few_labeled": 0.2,
    "soft_border": 0.6,
    "cluster_labels": 0.2,
    "two_sided": 0.4,
    "factor_model": 0.5,
    "censored": 0.4,
    "normal_scores": 0.4,
    "graph": 0.5,
    "principal_axes": 0.4,
    "mirrored": 0.4,
    "grouped": 0.5,
}
WIDE = {"n_features": (1, 12), "n_labeled": (4, 60), "eta": (0.5, 4.0), "pi": (0.03, 0.97)}
EVERYTHING = {"share": 1.0, "mixed_orders": 0.5, **SWITCHED, **WIDE}
ADDRESSES = [(1, 0, 0), (57, 749, 1), (100, 3, 0), (100, 4, 0), (134, 249, 1)]


def extended(**extensions) -> Config:
    return Config(prior={**SMALL, "extensions": extensions})


def test_without_extensions_the_plan_is_the_one_it_always_was():
    default = "32ab74d1a436cb6c4c4df70eff2edb96f3745d127a327ed815ad51987fc4d9e6"
    assert plan_digest(PriorConfig()) == default
    assert plan_digest(PriorConfig(extensions=SWITCHED)) == default
    assert "extensions" not in plan_of(PriorConfig(extensions=SWITCHED))["prior"]
    assert "extensions" not in config_yaml(Config())
    header = Manifest(Config(), "train", "", {}).header()
    assert set(header["plan"]) == {"algorithm", "prior"}
    assert "extensions" not in header["plan"]["prior"]


def test_a_plan_without_what_came_later_keeps_its_name():
    """The plan that the shipped weights' third run was trained on (docs/weights.md)."""
    prior = load_config("cpu").prior
    named = "0286e2260503e66bc4c006b3ba421413e657e31fae28cc6fe15f1a3a3e739ed5"
    assert plan_digest(prior) == named
    for name, key, value in (
        ("proportional", "proportional_size", [1.0, 20.0]),
        ("factorial", "factorial_size", [2.0, 8.0]),
        ("few_labeled", "few_labeled_rows", [4, 24]),
        ("few_labeled", "few_labeled_unlabeled_rows", [60, 500]),
        ("soft_border", "softness", [0.1, 2.0]),
        ("cluster_labels", "clusters", [2, 10]),
        ("cluster_labels", "cluster_separation", [1.0, 7.0]),
        ("cluster_labels", "cluster_common", [0.2, 3.0]),
        ("two_sided", "two_sided", 0.1),
        ("factor_model", "factors", [1, 4]),
        ("factor_model", "factor_common", [0.2, 5.0]),
        ("censored", "censored_share", [0.1, 0.9]),
        ("graph", "graph_hidden", [2, 16]),
        ("graph", "graph_noise", [0.03, 1.0]),
        ("principal_axes", "principal_axes", 0.1),
        ("mirrored", "mirrored", 0.1),
        ("grouped", "group_size", [2.0, 30.0]),
        ("grouped", "group_closeness", [0.03, 0.5]),
    ):
        extended = {**prior.extensions.model_dump(), name: 0.1}
        later = PriorConfig(**{**prior.model_dump(), "extensions": extended})
        assert plan_digest(later) != named
        assert plan_of(later)["prior"]["extensions"][key] == value


def test_a_design_share_of_rules_that_read_codes_is_theirs_alone():
    kinds = ("count", "forest")
    labels = {"rule_labels": 0.5, "tree_labels": 0.5, "rule_kinds": kinds, "factorial": 0.3}
    plain, coded = (
        extended(share=1.0, **labels, **more).prior for more in ({}, {"factorial_coded": 0.9})
    )
    assert "factorial_coded" not in plan_of(plain)["prior"]["extensions"]
    assert plan_of(coded)["prior"]["extensions"]["factorial_coded"] == 0.9
    # None at all is another plan than the share of the others.
    none = plain.model_copy(
        update={"extensions": plain.extensions.model_copy(update={"factorial_coded": 0.0})}
    )
    assert len({plan_digest(prior) for prior in (plain, coded, none)}) == 3
    rates = {}
    for step in range(750):
        ours, theirs = (draw_factors(p, 100, step, 0).extensions for p in (plain, coded))
        label = theirs.get("rule_labels", {}).get("kind", "tree")
        if label != "count":
            assert ours == theirs
        rates.setdefault(label, []).append("factorial" in theirs)
        assert "factorial" not in draw_factors(none, 100, step, 0).extensions or label != "count"
    assert {*rates} == {*kinds, "tree"}
    for label, expected in (("count", 0.9), ("forest", 0.3), ("tree", 0.3)):
        assert np.mean(rates[label]) == pytest.approx(expected, abs=0.1)


def test_without_extensions_every_factor_and_tag_is_the_one_it_always_was():
    tags = [
        draw_factors(prior, stage, step, index).tags()
        for stage, step, index in product((1, 50, 100, 134), range(20), (0, 1))
        for prior in [PriorConfig()]
    ]
    digest = hashlib.sha256(canonical_json(tags).encode()).hexdigest()
    assert digest == "9bd461896de1155fedb840048ddd514d09ee9df81dbcec13527d0721311af13a"


def test_a_share_of_zero_gives_the_papers_bytes_and_canary_whatever_else_is_switched():
    plain, off = Config(prior=SMALL), extended(**{**EVERYTHING, "share": 0.0})
    for address, split in product(ADDRESSES, ("train", "heldout")):
        ours, theirs = (generate_microbatch(c, *address, split=split) for c in (plain, off))
        assert ours.digest() == theirs.digest()
        assert "extensions" not in ours.tags
    assert canary_digest(plain.prior) == canary_digest(off.prior)
    assert canary_digest(plain.prior) != canary_digest(extended(**EVERYTHING).prior)


def test_the_microbatches_that_are_not_extended_keep_the_papers_bytes():
    plain, some = Config(prior=SMALL), extended(**{**EVERYTHING, "share": 0.5})
    kept = 0
    for step in range(30):
        ours, theirs = (generate_microbatch(c, 100, step, 0) for c in (plain, some))
        if "extensions" in theirs.tags:
            assert ours.x.tobytes() != theirs.x.tobytes()
        else:
            assert ours.digest() == theirs.digest()
            kept += 1
    assert 5 < kept < 25


def test_a_share_of_one_extends_every_microbatch():
    prior = extended(**EVERYTHING).prior
    for stage, step, index in product((1, 60, 134), range(30), (0, 1)):
        assert "extensions" in draw_factors(prior, stage, step, index).tags()


def test_each_extension_happens_with_its_own_probability():
    # With labels from columns half of the time: only there can columns be independent.
    prior = extended(**{**EVERYTHING, "n_features": (4, 6), "share": 0.8}).prior
    names = [
        {*factors.extensions}
        for step in range(750)
        for factors in [draw_factors(prior, 100, step, 0)]
        if factors.extensions is not None
    ]
    assert len(names) == pytest.approx(600, abs=50)
    by_columns = SWITCHED["tree_labels"] + SWITCHED["rule_labels"]
    clustered = SWITCHED["cluster_labels"]
    designed = SWITCHED["factorial"] * by_columns
    independent = SWITCHED["independent"] * (by_columns - designed)
    modelled = SWITCHED["factor_model"] * (1 - clustered - designed - independent)
    graphed = SWITCHED["graph"] * (1 - clustered - designed - independent - modelled)
    expected = {
        **{
            name: probability * (1 - designed if name in REPLACED else 1)
            for name, probability in SWITCHED.items()
        },
        "factorial": designed,
        "independent": independent,
        "factor_model": modelled,
        "graph": graphed,
        "shallow": SWITCHED["shallow"] * (1 - clustered - modelled - graphed),
        **{
            name: SWITCHED[name] * (1 - by_columns - clustered)
            for name in ("free_border", "soft_border", "two_sided")
        },
        # The other kinds of rules read codes alone, and the smooth one is no design more often.
        "grouped": SWITCHED["grouped"]
        * (
            1
            - clustered
            - (1 - SWITCHED["factorial"])
            * SWITCHED["rule_labels"]
            * (1 - len(SMOOTH_RULES & {*RULE_KINDS}) / len(RULE_KINDS))
            - designed
        ),
    }
    for name, probability in expected.items():
        # They may find only discrete columns, and are then left out.
        low = 0.5 if name in ("warped", "proportional", "censored", "principal_axes") else 1
        rate = np.mean([name in chosen for chosen in names])
        assert low * probability - 0.08 < rate < probability + 0.08, name
    assert all(len(chosen & {*LABEL_SOURCES}) <= 1 for chosen in names)
    replacing = (("cluster_labels", clusters), ("factor_model", factor_model), ("graph", graph))
    for name, module in replacing:
        assert not any(name in chosen and chosen & module.REPLACED for chosen in names)


@pytest.mark.parametrize("name", EXTENSIONS)
def test_an_extension_can_be_switched_alone_and_is_the_only_one_tagged(name):
    with_labels = {"rule_labels": 1.0} if name in ("independent", "factorial") else {}
    config = extended(share=1.0, **{name: 1.0}, **with_labels)
    for step in range(3):
        tags = generate_microbatch(config, 100, step, 0).tags["extensions"]
        assert {*tags} == {name, *with_labels}


def test_every_extension_is_listed_wherever_it_must_be():
    assert {*SWITCHED} == {*EXTENSIONS}, "the tests here switch each of them"
    assert {*NUMBERS} == {"choice", "split", *EXTENSIONS}
    assert sorted(NUMBERS.values()) == [*range(len(NUMBERS))]
    drawn_before_the_rest = {"shallow", "few_labeled"}
    assert {*choices._DRAWS} | drawn_before_the_rest == {*EXTENSIONS}


@pytest.mark.parametrize("made_by", ["factorial", "independent", "cluster_labels", None])
def test_an_extension_in_the_tag_has_changed_the_tasks(made_by):
    """What tables of some making never get must be left out of their tag."""

    def tasks_and_tags(**switched):
        config = extended(share=1.0, n_features=(3, 8), **switched)
        made = [generate_microbatch(config, 100, step, 0) for step in (1, 2)]
        tasks = [(batch.x.shape, batch.x.tobytes(), batch.y.tobytes()) for batch in made]
        return tasks, [batch.tags["extensions"] for batch in made]

    base = {made_by: 1.0} if made_by else {}
    if made_by in ("factorial", "independent"):
        base["tree_labels"] = 1.0
    without, _ = tasks_and_tags(**base)
    # `shallow` stays in the tag where designs and independent columns need no SCM.
    others = {*EXTENSIONS} - {*base, *LABEL_SOURCES, "factorial", "independent", "shallow"}
    for name in sorted(others):
        tasks, tags = tasks_and_tags(**base, **{name: 1.0})
        assert tasks != without or any(name not in tag for tag in tags), name


def test_extended_tasks_are_finite_tagged_in_json_and_hold_both_classes():
    config = extended(**EVERYTHING)
    combinations = set()
    for step in range(150):
        batch = generate_microbatch(config, 100, step, 0)
        tags = batch.tags
        assert batch.x.dtype == np.float16
        assert batch.x.shape == (4, tags["n_labeled"] + tags["n_unlabeled"], tags["n_features"])
        assert batch.y.shape == (4, tags["n_unlabeled"])
        assert np.isfinite(batch.x).all()
        assert np.abs(batch.x.astype(float)).max() <= 21
        assert ((batch.y.sum(axis=1) > 0) & (batch.y.sum(axis=1) < batch.y.shape[1])).all()
        canonical_json(tags)
        for name, parameters in tags["extensions"].items():
            assert parameters, name
        combinations.add(frozenset(tags["extensions"]))
    assert len(combinations) > 100


@pytest.mark.parametrize("plan", [{"state_clamp": 1e12}, {"sigma_noise": (0.0,), "n_causes": 1}])
def test_dead_and_exploding_scms_stay_finite_under_every_extension(plan):
    plan = {**SMALL, **plan, "noncausal_sources": ("head",), "activations": ("square", "step")}
    config = Config(prior={**plan, "extensions": EVERYTHING})
    for step in range(30):
        batch = generate_microbatch(config, 100, step, 0)
        assert np.isfinite(batch.x).all()
        assert (batch.y.min(axis=1) == 0).all()
        assert (batch.y.max(axis=1) == 1).all()


def test_an_extended_task_is_a_pure_function_of_its_address():
    config = extended(**EVERYTHING)
    first = [generate_microbatch(config, *address).digest() for address in ADDRESSES]
    random.seed(5)
    np.random.seed(5)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    again = [generate_microbatch(config, *address).digest() for address in reversed(ADDRESSES)]
    assert again[::-1] == first
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002
    heldout = [generate_microbatch(config, *a, split="heldout").digest() for a in ADDRESSES]
    assert len({*first, *heldout}) == 2 * len(ADDRESSES)


def test_making_tasks_leaves_what_was_drawn_for_them_as_it_was():
    prior = extended(share=1.0, sar=1.0, missing=1.0).prior
    factors = draw_factors(prior, 100, 3, 0)
    before = canonical_json(factors.extensions)
    _, tag = generate_extended_tasks(prior, factors, (100, 3, 0), "train")
    assert len(tag["sar"]["column"]) == prior.tasks_per_microbatch
    assert canonical_json(factors.extensions) == before


def test_an_extended_task_does_not_depend_on_how_many_there_are():
    for step in range(6):
        one, four = (
            generate_microbatch(
                Config(prior={**SMALL, "tasks_per_microbatch": n, "extensions": EVERYTHING}),
                100,
                step,
                0,
            )
            for n in (1, 4)
        )
        np.testing.assert_array_equal(one.x[0], four.x[0])
        np.testing.assert_array_equal(one.y[0], four.y[0])


def test_tasks_of_one_microbatch_differ_in_everything_they_draw():
    config = extended(share=1.0, independent=1.0, rule_labels=1.0, missing=1.0)
    for step in range(5):
        batch = generate_microbatch(config, 100, step, 0)
        assert len({task.tobytes() for task in batch.x}) == 4
        holes = {(task == 0).tobytes() for task in batch.x}
        assert len(holes) == 4


def test_switching_one_extension_changes_no_draw_of_another():
    alone = extended(share=1.0, discrete=1.0, sar=1.0)
    both = extended(share=1.0, discrete=1.0, sar=1.0, missing=1.0, label_noise=1.0, shallow=1.0)
    for step in range(10):
        ours = draw_factors(alone.prior, 100, step, 0).extensions
        theirs = draw_factors(both.prior, 100, step, 0).extensions
        assert ours["discrete"] == theirs["discrete"]
        assert ours["sar"] == theirs["sar"]


def test_every_stream_of_the_extensions_is_its_own():
    firsts = []
    for split, a, b, c in product(("train", "heldout"), (1, 2), (0, 1), (0, 1)):
        generators = [microbatch_generator(0, split, a, b, c)]
        generators += [Streams(0, split, (a, b, c)).of(name) for name in NUMBERS]
        for task in (0, 1):
            generators.append(task_generator(0, split, a, b, c, task))
            generators += [Streams(0, split, (a, b, c), task).of(name) for name in NUMBERS]
        firsts += [rng.integers(2**63) for rng in generators]
    firsts += [stage_generator(0, split, a).integers(2**63) for split in ("train",) for a in (1, 2)]
    assert len(set(firsts)) == len(firsts)


def test_extended_shards_count_their_extensions_and_refuse_another_plan(tiny, tmp_path):
    settings = {"share": 0.7, "discrete": 0.5, "rule_labels": 0.5, "missing": 0.5}
    prior = {**tiny.prior.model_dump(), "extensions": settings}
    config = Config(prior=prior, shards=tiny.shards)
    generate_shards(config, tmp_path / "s", [1, 2], jobs=1)
    reader = open_shards(tmp_path / "s")
    assert reader.manifest.config.prior == config.prior
    expected = generate_microbatch(config, 2, 1, 3)
    assert reader[2, 1, 3].digest() == expected.digest()
    counts = describe_shards(tmp_path / "s")["tags"]["extensions"]
    assert counts["extended"] + counts["none"] == 32
    assert counts["extended"] > counts["none"]
    assert 0 < counts["discrete"] < counts["extended"]
    assert estimate(config, [PartId(1, 0)], "train").tasks > 0
    plain = Config(prior=tiny.prior, shards=tiny.shards)
    with pytest.raises(ShardError, match=r"prior.extensions.share is 0.7 there, 0.0 wanted"):
        generate_shards(plain, tmp_path / "s", [1], jobs=1)
    generate_shards(plain, tmp_path / "plain", [1], jobs=1)
    with pytest.raises(ShardError, match=r"share is 0.0 there, 0.7 wanted; .*discrete") as told:
        generate_shards(config, tmp_path / "plain", [1], jobs=1)
    assert str(told.value).count(" wanted") == 1 + len(settings) - 1  # and no defaults
    assert "extensions" not in describe_shards(tmp_path / "plain")["tags"]


def test_an_extended_plan_survives_its_yaml_and_has_a_digest_of_its_own(tmp_path):
    config = extended(**EVERYTHING)
    (tmp_path / "e.yaml").write_text(config_yaml(config), encoding="utf-8")
    assert load_config(tmp_path / "e.yaml") == config
    digests = {
        plan_digest(extended(share=1.0, **{name: 0.5}, rule_labels=0.25).prior)
        for name in EXTENSIONS
        if name != "rule_labels"
    }
    assert len({plan_digest(Config(prior=SMALL).prior), *digests}) == len(EXTENSIONS)
