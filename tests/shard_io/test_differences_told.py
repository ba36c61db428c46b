"""What a writer may bring otherwise than a folder began with, and what it is told of the rest."""

import pytest

from puicl_config import Config, ShardsConfig
from shard_io import Manifest, describe_differences

STORAGE = {
    **{"format": "webdataset", "parts_per_stage": 3, "x_dtype": "float32", "zstd_level": 9},
    **{"shuffle": "bits", "chunk_cells": 2048},
}
PACKING = {"zstd_level", "shuffle"}


def header(split="train", canary="", **config):
    return Manifest(Config(**config), split, canary, {"numpy": canary}).header()


@pytest.mark.parametrize("key", STORAGE)
def test_only_the_packing_may_differ_whichever_came_first(key):
    assert STORAGE.keys() == ShardsConfig.model_fields.keys()
    usual, asked = getattr(ShardsConfig(), key), STORAGE[key]
    one, two = header(), header(shards={key: asked})
    for wanted, present, pair in ((two, one, (usual, asked)), (one, two, (asked, usual))):
        told = [f"shards.{key} is {pair[0]} there, {pair[1]} wanted"]
        assert describe_differences(wanted, present) == ([] if key in PACKING else told)


def test_another_machine_is_no_difference_and_another_split_or_algorithm_is():
    assert describe_differences(header(canary="a"), header(canary="b")) == []
    assert describe_differences(header("heldout"), header()) == [
        "split is train there, heldout wanted"
    ]
    older = header()
    older["plan"]["algorithm"] = 1
    (told,) = describe_differences(header(), older)
    assert told.startswith("algorithm is 1 there, ")


def test_of_plans_of_which_one_is_extended_only_what_it_sets_differs():
    extended, usual = header(prior={"extensions": {"share": 0.5, "shallow": 1.0}}), header()
    told = [f"prior.extensions.{key} is {{}} there, {{}} wanted" for key in ("share", "shallow")]
    values = (0.0, 0.5), (0.0, 1.0)
    assert describe_differences(extended, usual) == [
        sentence.format(*pair) for sentence, pair in zip(told, values, strict=True)
    ]
    assert describe_differences(usual, extended) == [
        sentence.format(*pair[::-1]) for sentence, pair in zip(told, values, strict=True)
    ]
