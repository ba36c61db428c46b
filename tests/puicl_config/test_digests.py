"""What names a plan and a run: which keys are part of their digests, and which are not."""

import math

import pytest
from pydantic import model_serializer
from pydantic_core import PydanticSerializationError

from puicl_config import (
    ExtensionsConfig,
    load_config,
    plan_digest,
    run_digest,
    sha256_of,
)
from puicl_config.fields import Section
from puicl_config.workers.stopping import Terminated

HALF = "prior.extensions.share=0.5"


def test_the_plan_digest_names_the_data_and_nothing_else():
    base = load_config("paper")
    for override in ("shards.format=webdataset", "shards.parts_per_stage=3", "train.seed=1"):
        assert plan_digest(load_config("paper", [override]).prior) == plan_digest(base.prior)
    for override in ("prior.seed=1", "prior.sigma_init=0.9", "prior.tail_steps=0"):
        assert plan_digest(load_config("paper", [override]).prior) != plan_digest(base.prior)


def test_extensions_are_off_in_every_shipped_config_and_part_of_the_plan_once_on():
    base = load_config("paper")
    assert base.prior.extensions == ExtensionsConfig()
    assert base.prior.extensions.share == 0
    switched = ["prior.extensions.discrete=0.5", "prior.extensions.levels=[2, 3]"]
    assert plan_digest(load_config("paper", switched).prior) == plan_digest(base.prior)
    digests = set()
    for share in (0.5, 0.6):
        config = load_config("paper", [*switched, f"prior.extensions.share={share}"])
        digests |= {plan_digest(config.prior), run_digest(config)}
    assert len({plan_digest(base.prior), run_digest(base), *digests}) == 6


def test_the_run_digest_ignores_stopping_logging_and_loading():
    base = run_digest(load_config("paper"))
    # The name that this run always had: keys that came later stand in it only where they are used.
    assert base == "e2ebfa8183733742300a02f12771246bade86712e307d6e8e7631d07bed61839"
    for override in (
        "train.max_steps=5",
        "train.max_seconds=5",
        "train.log_every=1",
        "train.digest_every=1",
        "train.checkpoint_every=7",
        "train.keep_checkpoints=1",
        "train.loader_threads=4",
        "train.recompute=true",
        "train.follow=true",
        "train.follow_timeout=9",
        "train.heldout=somewhere",
        "train.heldout_every=9",
        "train.heldout_microbatches=9",
        "shards.format=webdataset",
        "name=other",
    ):
        assert run_digest(load_config("paper", [override])) == base, override
    for overrides in (
        ["train.seed=1"],
        ["train.round_rows=8"],
        ["model.layers=4"],
        ["prior.seed=1"],
        ["train.sampler=shuffled"],
        ["train.sampler=fixed_stage", "train.fixed_stage=3"],
        ["train.where=causal"],
        ["train.reveal=both"],
        ["train.precision=bfloat16"],
        ["train.deterministic=false"],
        ["train.compile=true"],
        ["train.tasks_per_forward=1"],
    ):
        assert run_digest(load_config("paper", overrides)) != base, overrides


@pytest.mark.parametrize(
    "override", ["train.loader_processes=2", "train.init_from=default", "train.loader_threads=0"]
)
def test_where_data_and_weights_lie_is_no_part_of_a_runs_name(override):
    assert run_digest(load_config("paper", [override])) == run_digest(load_config("paper"))


def test_what_is_no_number_has_no_digest():
    for value in (math.nan, math.inf):
        with pytest.raises(ValueError, match="not JSON compliant"):
            sha256_of({"a": [value]})
    assert sha256_of({"a": 1, "b": 2}) == sha256_of({"b": 2, "a": 1}) != sha256_of({"a": 2, "b": 1})


def test_what_a_run_began_from_is_part_of_its_name():
    config = load_config("paper")
    names = {run_digest(config, lineage) for lineage in (None, "a" * 64, "b" * 64)}
    assert len(names) == 3


def test_parameters_of_what_is_off_are_no_part_of_the_plans_name():
    base = plan_digest(load_config("paper", [HALF, "prior.extensions.sar=0.5"]).prior)
    for key, value in (("graph_noise", "[0.1, 0.2]"), ("graph_hidden", "[3, 4]")):
        override = f"prior.extensions.{key}={value}"
        off = load_config("paper", [HALF, "prior.extensions.sar=0.5", override])
        assert plan_digest(off.prior) == base
        on = [HALF, "prior.extensions.graph=0.5"]
        graph = load_config("paper", on)
        assert plan_digest(load_config("paper", [*on, override]).prior) != plan_digest(graph.prior)
    # Designs of rules that read codes have the size of the others; of none there are none.
    size, rules = "prior.extensions.factorial_size=[3, 4]", "prior.extensions.rule_labels=0.5"
    for share, counts in ((0.0, False), (0.5, True)):
        coded = [HALF, rules, f"prior.extensions.factorial_coded={share}"]
        names = {
            plan_digest(load_config("paper", given).prior) for given in (coded, [*coded, size])
        }
        assert (len(names) == 2) == counts


@pytest.mark.parametrize("raised", [KeyboardInterrupt, Terminated, OSError])
def test_a_signal_amid_writing_a_config_out_stays_a_signal(raised):
    """A run that is stopped while it compares plans says so, instead of ending in a traceback."""

    class Inner(Section):
        @model_serializer(mode="wrap")
        def _stopped(self, dump):
            raise raised

    class Outer(Section):
        inner: Inner = Inner()

        @model_serializer(mode="wrap")
        def _whole(self, dump):
            return dump(self)

    expected = PydanticSerializationError if raised is OSError else raised
    for section in (Inner(), Outer()):
        with pytest.raises(expected) as met:
            section.model_dump(mode="json")
        assert met.type is expected
