"""Samplers and `train.where`: which microbatches a step reads, without any process."""

import itertools
import shutil
from collections import Counter

import numpy as np
import pytest

from puicl_config import SAMPLERS, InputError, PriorConfig, TrainConfig, load_config
from shard_io import FilteredReader, as_ranges, open_shards, slice_shards
from trainer.data import DataChain, describe_reuse, last_trainable_step, open_for
from trainer.reveal import revealed_rows
from trainer.sampler import addresses_of_step

# What a short plan's sampler and the revealed rows of one address draw, of seed 3.
ORDER = [(1, 1), (2, 3), (1, 0), (2, 2), (3, 1), (2, 1), (1, 2), (1, 3), (3, 0), (2, 0)]
ROWS = "001000111000111101111000"

PRIOR = PriorConfig(stages=5, steps_per_stage=7, tail_steps=10, microbatches_per_step=2)


def steps_of(sampler, prior=PRIOR, **train):
    """[stage, step in stage] that each optimizer step reads."""
    settings = TrainConfig(sampler=sampler, **train)
    read = []
    for step in range(prior.total_steps):
        addresses = addresses_of_step(prior, settings, step)
        assert [address[2] for address in addresses] == list(range(prior.microbatches_per_step))
        assert len({address[:2] for address in addresses}) == 1
        read.append(addresses[0][:2])
    return read


CURRICULUM = steps_of("curriculum")


@pytest.mark.parametrize("sampler", sorted({*SAMPLERS} - {"fixed_stage", "tail_only"}))
def test_a_sampler_of_the_whole_plan_reads_every_step_once(sampler):
    assert sorted(steps_of(sampler)) == CURRICULUM


def test_reverse_walks_back_from_the_tail_to_stage_one():
    assert steps_of("reverse") == CURRICULUM[::-1]


def test_fixed_stage_reads_one_stage_over_and_over():
    assert steps_of("fixed_stage", fixed_stage=3) == [(3, t % 7) for t in range(45)]
    # The last stage of the tail is short: three steps.
    assert steps_of("fixed_stage", fixed_stage=7) == [(7, t % 3) for t in range(45)]


def test_tail_only_reads_the_tail_over_and_over():
    tail = [(6, t) for t in range(7)] + [(7, t) for t in range(3)]
    assert steps_of("tail_only") == [tail[t % 10] for t in range(45)]


def test_interleaved_spreads_the_tail_evenly_among_the_curriculum_and_keeps_both_orders():
    read = steps_of("interleaved")
    tail = [place for place, step in enumerate(read) if step[0] > 5]
    assert [step for step in read if step[0] <= 5] == CURRICULUM[:35]
    assert [read[place] for place in tail] == CURRICULUM[35:]
    gaps = [b - a for a, b in itertools.pairwise(tail)]
    assert set(gaps) == {4, 5}
    assert tail[0] == 4


def test_a_step_is_a_function_of_its_number_alone():
    for sampler in SAMPLERS:
        settings = TrainConfig(sampler=sampler, fixed_stage=2 if sampler == "fixed_stage" else None)
        forward = [addresses_of_step(PRIOR, settings, t) for t in range(45)]
        assert forward == [addresses_of_step(PRIOR, settings, t) for t in reversed(range(45))][::-1]


def test_what_seed_and_address_draw_stays_as_it_was():
    """Runs go on under later versions: other draws would be other bits, and no digest tells."""
    prior = PriorConfig(stages=2, steps_per_stage=4, tail_steps=2)
    assert steps_of("shuffled", prior, seed=3) == ORDER
    train = TrainConfig(seed=3)
    for each in (train, train.model_copy(update={"reveal": "both"})):
        rows = revealed_rows(each, (7, 5, 1), np.zeros((1, 24), int), 0.5)
        assert "".join(map(str, rows[0].astype(int))) == ROWS


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        (["train.sampler=fixed_stage"], "belong together"),
        (["train.fixed_stage=3"], "belong together"),
        (["train.sampler=fixed_stage", "train.fixed_stage=135"], "plan ends with stage 134"),
        (["train.sampler=tail_only", "prior.tail_steps=0"], "tail_only needs a tail"),
        (["train.sampler=interleaved", "prior.tail_steps=0"], "interleaved needs a tail"),
        (["train.sampler=curiculum"], "train.sampler: input should be 'curriculum'"),
    ],
)
def test_a_sampler_without_its_stages_is_refused(overrides, sentence):
    with pytest.raises(InputError) as caught:
        load_config("paper", overrides)
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    ("overrides", "gone", "named"),
    [
        (["train.sampler=shuffled"], (4, 5), "--stages 4-5 "),
        (["train.sampler=reverse"], (2, 4), "--stages 2,4 "),
        (["train.sampler=tail_only"], (5,), "/manifest.json --stages 5 --out "),
        (["train.sampler=interleaved"], (5,), "--stages 5 "),
        (["train.sampler=fixed_stage", "train.fixed_stage=2"], (2,), "of the stages 2 that"),
        (["train.sampler=fixed_stage", "train.fixed_stage=2"], (1, 3, 4, 5), None),
        (["train.sampler=tail_only"], (1, 2, 3), None),
        (["train.sampler=curriculum"], (1,), "--stages 1 "),
        (["train.sampler=curriculum"], (1, 5), "--stages 1,5 "),
        (["train.sampler=reverse"], (2,), "part-000 and 2 more parts of the stages 1-5 that"),
        (["train.follow=true"], (2, 4), None),
    ],
)
def test_stages_that_the_sampler_needs_and_lacks_are_named(
    tiny_yaml, own_shards, overrides, gone, named
):
    for stage in gone:
        for path in (own_shards / "entries").glob(f"stage-{stage:04d}*"):
            path.unlink()
    config, reader = load_config(tiny_yaml, overrides), open_shards(own_shards)
    if named is None:
        assert last_trainable_step(config, reader, 0, 18) == 18
        return
    with pytest.raises(InputError) as caught:
        last_trainable_step(config, reader, 0, 18)
    assert named in str(caught.value)


def test_a_tail_that_goes_missing_after_its_first_step_is_a_hole(tiny_yaml, own_shards):
    config = load_config(tiny_yaml)
    for path in (own_shards / "entries").glob("stage-0005*"):
        path.unlink()
    reader = open_shards(own_shards)
    assert last_trainable_step(config, reader, config.prior.curriculum_steps, 18) == 12
    with pytest.raises(InputError, match="--stages 5 "):
        last_trainable_step(config, reader, 13, 18)


def test_a_file_is_told_to_be_cut_short_as_long_as_a_step_ahead_reads_it(tiny, own_shards):
    part = own_shards / "parts" / "stage-0001-part-000.zarr" / "x" / "c" / "0"  # of steps 0 and 1
    part.write_bytes(part.read_bytes()[:-1])
    with pytest.raises(InputError, match="bytes instead of"):
        last_trainable_step(tiny, open_shards(own_shards), 1, 18)
    assert last_trainable_step(tiny, open_shards(own_shards), 2, 18) == 18


def test_whoever_follows_needs_neither_what_it_has_read_nor_what_is_late(tiny_yaml, own_shards):
    shutil.rmtree(own_shards / "parts" / "stage-0001-part-000.zarr")
    (own_shards / "entries" / "stage-0002-part-001.json").unlink()
    config = load_config(tiny_yaml, ["train.follow=true"])
    assert last_trainable_step(config, open_shards(own_shards), 2, 18) == 18


def test_how_often_microbatches_are_read_is_told_with_the_stage_of_the_most_frequent(
    tiny_yaml, all_shards
):
    config, reader = load_config(tiny_yaml, ["train.sampler=tail_only"]), open_shards(all_shards)
    assert describe_reuse(config, reader, 6) is None
    assert describe_reuse(config, reader, 11) == (
        "44 microbatches are read from 24: each 1.83 times on average, at most 2 times (stage 4)"
    )


def test_a_filtered_folder_reads_as_its_slice(tiny, tiny_yaml, all_shards, tmp_path):
    slice_shards(all_shards, "d <= 3", tmp_path / "slice")
    sliced = open_shards(tmp_path / "slice")
    config = load_config(tiny_yaml, ["train.where=d <= 3"])
    filtered = open_for(config, all_shards)
    chains = [DataChain(config, reader) for reader in (sliced, filtered)]
    seen = Counter()
    for step in range(tiny.prior.total_steps):
        assert len({chain.consume(step) for chain in chains}) == 1
        for address in addresses_of_step(tiny.prior, config.train, step):
            assert filtered[address].digest() == sliced[address].digest()
            assert filtered[address].tags["n_features"] <= 3
            seen[filtered[address].address] += 1
    reuse = sum(seen.values()) / len(seen)
    assert [chain.reuse for chain in chains] == [reuse, reuse]
    assert f"each {reuse:.3g} times on average" in describe_reuse(config, filtered, 18)
    assert describe_reuse(config, open_shards(all_shards), 18) is None
    # A slice may be narrowed further, and is then named by both expressions.
    narrower = FilteredReader(tmp_path / "slice", "d == 3")
    assert narrower.manifest.slice.where == "(d <= 3) and (d == 3)"
    assert narrower[1, 0, 0].tags["n_features"] == 3


def test_another_microbatch_of_the_same_part_is_other_data_of_a_slice(
    tiny_yaml, all_shards, monkeypatch
):
    config = load_config(tiny_yaml, ["train.where=d <= 3"])
    readers = [open_for(config, all_shards) for _ in range(2)]
    part, position = readers[1].part_of((1, 0, 0))
    monkeypatch.setattr(readers[1], "part_of", lambda _: (part, 1 - position))
    monkeypatch.setattr(readers[0], "part_of", lambda _: (part, position))
    ours, theirs = (DataChain(config, reader).consume(0) for reader in readers)
    assert ours != theirs


@pytest.mark.parametrize(
    ("where", "sentence"),
    [
        ("casual", "there is no tag 'casual'; did you mean causal?"),
        ("d > 99", "no microbatch of stage 1 is left where d > 99"),
    ],
)
def test_a_where_that_leaves_nothing_is_refused_before_the_first_step(
    tiny_yaml, all_shards, where, sentence
):
    config = load_config(tiny_yaml, [f"train.where={where}"])
    with pytest.raises(InputError) as caught:
        last_trainable_step(config, open_for(config, all_shards), 0, 18)
    assert sentence in str(caught.value)


def test_ranges_are_written_as_prior_gen_takes_them():
    assert as_ranges([1, 2, 3, 7, 9, 10]) == "1-3,7,9-10"
