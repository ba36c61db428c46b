"""What a slice's index says of its survivors, what is no index, and which parts it is read from."""

import json

import pytest

from puicl_config import Config, PriorConfig
from shard_io import Layout, Manifest, PartId, SliceIndex, open_shards
from shard_io.slice_index import slice_from_plain

LAYOUT = Layout(PriorConfig(), 40)  # 1500 microbatches a stage
INDEX = SliceIndex("d > 7", {2: (0, 1, 2, 7, 1499)})


def test_survivors_are_written_as_runs_and_read_as_they_were():
    raw = json.loads(json.dumps(INDEX.to_plain(LAYOUT)))
    facts = {"survivors": "0-2,7,1499", "count": 5, "of": 1500, "reuse": 300.0}
    assert raw == {"where": "d > 7", "stages": {"2": facts}}
    assert slice_from_plain(raw, LAYOUT) == INDEX
    assert slice_from_plain(None, LAYOUT) is None


def test_a_survivor_that_the_stage_does_not_have_is_refused():
    for beyond in ((7, 1500), (1498, 1499, 1500)):
        raw = SliceIndex("d > 7", {2: beyond}).to_plain(LAYOUT)
        with pytest.raises(ValueError, match=r"'(1498-)?1500' of 1500 microbatches"):
            slice_from_plain(raw, LAYOUT)


@pytest.mark.parametrize(
    "changed",
    [{"reuse": 1.0}, {"count": 4}, {"of": 5}, {"survivors": "2-0,7,1499"}, {"survivors": "0,1-2"}],
    ids=str,
)
def test_an_index_that_contradicts_itself_is_refused(changed):
    raw = INDEX.to_plain(LAYOUT)
    raw["stages"]["2"] |= changed
    with pytest.raises(ValueError, match="its slice contradicts itself"):
        slice_from_plain(raw, LAYOUT)


def test_the_parts_of_a_sliced_stage_are_in_order(tmp_path):
    index = SliceIndex("d > 7", {2: tuple(range(0, 1500, 3))})
    manifest = Manifest(Config(shards={"parts_per_stage": 40}), "train", "", {}, index)
    (tmp_path / "manifest.json").write_bytes(manifest.to_bytes({}))
    parts = open_shards(tmp_path).parts_of_stage(2)
    assert parts == [PartId(2, number) for number in range(40)]
