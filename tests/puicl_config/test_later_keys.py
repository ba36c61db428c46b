"""Keys that are newer than digests are written only where they are used."""

from typing import Annotated

import pytest

from puicl_config import Config
from puicl_config.fields import LATER, Later, Section


class Inner(Section):
    width: int = 3


class Outer(Section):
    old: int = 1
    new: Annotated[float, LATER] = 0.0
    size: Annotated[tuple[int, int], Later("new")] = (1, 2)
    inner: Annotated[Inner, LATER] = Inner()


@pytest.mark.parametrize(
    ("given", "written"),
    [
        ({}, {"old": 1}),
        ({"new": 0.0, "size": (1, 2), "inner": {"width": 3}}, {"old": 1}),
        ({"new": 0.5}, {"old": 1, "new": 0.5, "size": (1, 2)}),
        ({"size": (2, 2)}, {"old": 1}),
        ({"inner": {"width": 4}}, {"old": 1, "inner": {"width": 4}}),
    ],
)
def test_a_later_key_is_written_where_it_or_what_uses_it_is_not_at_its_default(given, written):
    assert Outer(**given).model_dump() == written


def test_what_is_left_out_is_read_as_the_default():
    one = Outer(size=(2, 2), inner=Inner(width=4))
    assert Outer(**one.model_dump()) == Outer(inner=Inner(width=4))


def test_a_later_key_can_be_left_out_of_plain_data_as_others():
    assert Outer(new=0.5).model_dump(exclude={"new"}) == {"old": 1, "size": (1, 2)}


def test_a_weight_of_zero_uses_no_self_distillation():
    off = Config(train={"self_distillation": {"weight": 0.0, "passes": 8}})
    assert "self_distillation" not in off.model_dump()["train"]
    on = Config(train={"self_distillation": {"weight": 0.5, "passes": 8}})
    assert on.model_dump()["train"]["self_distillation"]["passes"] == 8
