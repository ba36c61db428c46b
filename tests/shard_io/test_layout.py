import pytest
from hypothesis import given
from hypothesis import strategies as st

from puicl_config import PriorConfig
from shard_io import Layout, PartId

small = st.integers(1, 7)


@given(stages=small, steps=small, tail=st.integers(0, 15), per_step=small, parts=st.integers(1, 40))
def test_parts_cover_every_microbatch_once_and_locate_finds_it(
    stages, steps, tail, per_step, parts
):
    prior = PriorConfig(
        stages=stages, steps_per_stage=steps, tail_steps=tail, microbatches_per_step=per_step
    )
    layout = Layout(prior, parts)
    seen = 0
    for stage in range(1, prior.total_stages + 1):
        numbers = []
        for part in layout.parts_of_stage(stage):
            span = layout.span(part)
            assert len(span) > 0
            numbers.extend(span)
            for position, number in enumerate(span):
                assert layout.locate(*layout.address(stage, number)) == (part, position)
        assert numbers == list(range(layout.microbatches_in_stage(stage)))
        seen += len(numbers)
    assert seen == prior.total_steps * per_step


@pytest.mark.parametrize(
    "address",
    [
        *[(0, 0, 0), (135, 0, 0), (134, 250, 0), (1, 750, 0), (1, 0, 2)],
        *[(1, -1, 0), (1, 1, -1)],  # the latter would be [1, 0, 1]
    ],
)
def test_an_address_outside_the_plan_is_a_key_error(address):
    with pytest.raises(KeyError, match="the plan has no microbatch"):
        Layout(PriorConfig(), 8).locate(*address)


def test_an_entrys_path_names_its_part_and_no_other_path_does():
    for part in (PartId(1, 0), PartId(134, 7), PartId(12_345, 1000)):
        assert PartId.of_entry(part.entry_path) == part
    for path in (
        *("entries/stage-00001-part-000.json", "entries/stage-0001-part-0000.json"),
        *("entries/stage-0001-part-000.json.old", "entries/stage-0001-part-000_json"),
        *("parts/stage-0001-part-000.json", "other/entries/stage-0001-part-000.json"),
    ):
        assert PartId.of_entry(path) is None, path
