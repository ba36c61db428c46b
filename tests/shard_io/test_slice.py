"""Slices: a subset by tags that still answers every address, and is never taken for the whole."""

import errno
import itertools
import json
import os
import shlex
import shutil

import numpy as np
import pytest
from folders import folder_bytes
from sealed import change_manifest

from prior_gen.convert import convert_shards
from prior_gen.generator import generate_shards, write_parts
from prior_gen.info import describe_shards
from prior_gen.regenerate import regenerate_parts
from puicl_config import InputError
from shard_io import (
    FilteredReader,
    PartId,
    ShardError,
    folder_of,
    open_shards,
    problems_of,
    slice_shards,
)
from trainer.data import DataChain, check_plan, how_to_make, last_trainable_step

WHERE = "d <= 3"


@pytest.fixture
def out(tmp_path):
    return tmp_path / "slice"


@pytest.fixture(scope="module")
def sliced(all_shards, tmp_path_factory):
    folder = tmp_path_factory.mktemp("sliced") / "slice"
    slice_shards(all_shards, WHERE, folder)
    return folder


def addresses(prior, stage):
    return list(
        itertools.product(
            [stage], range(prior.steps_in_stage(stage)), range(prior.microbatches_per_step)
        )
    )


def same(one, two):
    return one.tags == two.tags and np.array_equal(one.x, two.x) and np.array_equal(one.y, two.y)


def test_every_address_answers_with_the_survivors_in_order_again_and_again(
    tiny, all_shards, sliced
):
    whole, subset = open_shards(all_shards), open_shards(sliced)
    for stage in range(1, 6):
        places = addresses(tiny.prior, stage)
        survivors = [whole[place] for place in places if whole[place].tags["n_features"] <= 3]
        assert 0 < len(survivors) < len(places)
        for number, place in enumerate(places):
            assert same(subset[place], survivors[number % len(survivors)])


def test_the_manifest_says_which_plan_is_sliced_how_and_how_often_survivors_are_read(
    tiny, all_shards, sliced
):
    raw = json.loads((sliced / "manifest.json").read_text())
    assert raw["plan_digest"] == open_shards(all_shards).manifest.plan_digest
    assert raw["slice"]["where"] == WHERE
    for stage in range(1, 6):
        facts = raw["slice"]["stages"][str(stage)]
        assert facts["of"] == len(addresses(tiny.prior, stage))
        assert facts["reuse"] == pytest.approx(facts["of"] / facts["count"], abs=1e-6)
    assert open_shards(sliced).manifest.slice.where == WHERE
    assert describe_shards(sliced)["slice"] == raw["slice"]
    assert describe_shards(sliced)["tags"]["n_features"]["max"] <= 3
    with pytest.raises(KeyError, match="the plan has no microbatch"):
        open_shards(sliced)[1, 4, 0]


def test_data_is_linked_whole_with_its_own_digests_and_only_where_it_survives(all_shards, out):
    slice_shards(all_shards, "stage != 2 or index == 0 and step == 0", out)
    whole, subset = open_shards(all_shards), open_shards(out)
    assert [part for part in subset.published_parts() if part.stage == 2] == [PartId(2, 0)]
    assert {path.name for path in (out / "parts").glob("stage-0002*")} == {
        "stage-0002-part-000.zarr"
    }
    for part in subset.published_parts():
        assert subset.entry(part) == whole.entry(part)
        for file in subset.entry(part).files:
            assert (out / file["path"]).samefile(all_shards / file["path"])
    assert list(problems_of(out)) == []
    assert regenerate_parts(out, 2, seed=0, jobs=1)[1] == []


def test_where_links_are_impossible_the_data_is_copied(all_shards, out, monkeypatch):
    real = os.link

    def no_links_across(source, target, **options):
        if str(source).startswith(str(all_shards)):
            raise OSError(errno.EXDEV, "Invalid cross-device link")
        return real(source, target, **options)

    monkeypatch.setattr(os, "link", no_links_across)
    slice_shards(all_shards, WHERE, out)
    file = open_shards(out).entry(open_shards(out).published_parts()[0]).files[0]["path"]
    assert not (out / file).samefile(all_shards / file)
    assert (out / file).read_bytes() == (all_shards / file).read_bytes()
    assert list(problems_of(out)) == []


def test_a_slice_outlives_its_source_and_is_repaired_without_touching_it(own_shards, out):
    slice_shards(own_shards, WHERE, out)
    part = open_shards(out).published_parts()[0]
    file = open_shards(out).entry(part).files[0]["path"]
    (out / file).unlink()
    assert any(file in problem for problem in problems_of(out))
    write_parts(open_shards(out).manifest, out, [part], jobs=1)
    assert list(problems_of(out)) == []
    shutil.rmtree(own_shards)
    assert list(problems_of(out)) == []


def test_a_stage_without_survivors_is_an_error_that_names_it_and_writes_nothing(all_shards, out):
    with pytest.raises(ShardError, match="no microbatch of stage 3 is left where stage < 3"):
        slice_shards(all_shards, "stage < 3", out)
    with pytest.raises(InputError, match="did you mean n_features"):
        slice_shards(all_shards, "n_feature < 3", out)
    assert not out.exists()


def test_a_stage_that_lacks_a_part_is_not_sliced(own_shards, out):
    (own_shards / PartId(4, 1).entry_path).unlink()
    with pytest.raises(ShardError, match="lacks stage-0004-part-001; survivors are counted"):
        slice_shards(own_shards, WHERE, out)


def test_a_slice_and_the_whole_plan_or_another_slice_never_share_a_folder(
    tiny, all_shards, own_shards, out
):
    slice_shards(all_shards, WHERE, out)
    before = (out / "manifest.json").read_bytes()
    with pytest.raises(ShardError, match="the slice where 'd <= 3' there, the whole plan wanted"):
        generate_shards(tiny, out, [1], jobs=1)
    with pytest.raises(ShardError, match="'d <= 3' there, the slice where 'd > 2' wanted"):
        slice_shards(all_shards, "d > 2", out)
    with pytest.raises(ShardError, match="the whole plan there, the slice where 'd > 2' wanted"):
        slice_shards(all_shards, "d > 2", own_shards)
    (out.parent / "link").symlink_to(out)
    with pytest.raises(ShardError, match="cannot be sliced into itself"):
        slice_shards(out, WHERE, out.parent / "link")
    with pytest.raises(ShardError, match="cannot be sliced into itself"):
        slice_shards(all_shards, WHERE, all_shards)
    assert (out / "manifest.json").read_bytes() == before


def test_slicing_goes_on_where_it_was_stopped_and_follows_a_growing_folder(
    tiny, all_shards, sliced, out, tmp_path, monkeypatch
):
    import shard_io.slice

    source = tmp_path / "growing"
    generate_shards(tiny, source, [1, 2, 3], jobs=1)
    real, calls = shard_io.slice.publish_entry, []

    def stopped(*arguments):
        if len(calls) == 2:
            raise KeyboardInterrupt
        calls.append(arguments)
        real(*arguments)

    monkeypatch.setattr(shard_io.slice, "publish_entry", stopped)
    with pytest.raises(KeyboardInterrupt):
        slice_shards(source, WHERE, out)
    assert len(open_shards(out).published_parts()) == 2
    monkeypatch.setattr(shard_io.slice, "publish_entry", real)
    slice_shards(source, WHERE, out)
    with pytest.raises(ShardError, match="is a slice without stage 4"):
        open_shards(out)[4, 0, 0]
    generate_shards(tiny, source, [4, 5], jobs=1)
    slice_shards(source, WHERE, out)
    assert (out / "manifest.json").read_bytes() == (sliced / "manifest.json").read_bytes()
    assert list(problems_of(out)) == []


@pytest.mark.parametrize("differs", ["canary", "sample"])
def test_parts_of_a_machine_of_other_bits_are_not_added_to_a_slice(own_shards, out, differs):
    slice_shards(own_shards, WHERE, out)
    next((out / "entries").iterdir()).unlink()
    other = {"canary": lambda m: m, "sample": lambda m: m["software"]}[differs]
    change_manifest(own_shards, lambda m: other(m).update({differs: "0" * 64}))
    before = folder_bytes(out)
    with pytest.raises(ShardError, match=r"begun on a machine that produces different bits from"):
        slice_shards(own_shards, WHERE, out)
    assert folder_bytes(out) == before


def test_a_slice_of_a_slice_is_the_slice_by_both(all_shards, sliced, tmp_path):
    slice_shards(sliced, "index != 1", tmp_path / "twice")
    slice_shards(all_shards, "(d <= 3) and (index != 1)", tmp_path / "once")
    twice, once = tmp_path / "twice" / "manifest.json", tmp_path / "once" / "manifest.json"
    assert twice.read_bytes() == once.read_bytes()


def test_a_converted_slice_answers_the_same(tiny, sliced, tmp_path):
    convert_shards(sliced, tmp_path / "tar", "webdataset", jobs=1)
    ours, theirs = open_shards(tmp_path / "tar"), open_shards(sliced)
    for place in addresses(tiny.prior, 4):
        assert same(ours[place], theirs[place])
    assert list(problems_of(tmp_path / "tar")) == []


def test_an_altered_index_is_refused(sliced, out):
    shutil.copytree(sliced, out)
    path = out / "manifest.json"
    path.write_text(path.read_text().replace('"reuse": ', '"reuse": 1', 1))
    with pytest.raises(ShardError, match="header's digest does not match"):
        open_shards(out)


def chain(config, folder, steps):
    running = DataChain(config, open_shards(folder))
    return [running.value, *(running.consume(step) for step in range(steps))]


def test_the_trainers_data_hash_follows_what_is_really_read(tiny, all_shards, sliced, tmp_path):
    whole, subset = chain(tiny, all_shards, 18), chain(tiny, sliced, 18)
    assert all(a != b for a, b in zip(whole, subset, strict=True))
    slice_shards(all_shards, "d <= 3 and index < 4", tmp_path / "other")  # the same survivors
    assert chain(tiny, tmp_path / "other", 18)[0] != subset[0]
    convert_shards(sliced, tmp_path / "tar", "webdataset", jobs=1)
    assert chain(tiny, tmp_path / "tar", 18) == subset
    reader = open_shards(sliced)
    part, position = reader.part_of((1, 3, 3))
    assert reader.part(part)[position].tags == reader[1, 3, 3].tags


def test_the_trainer_needs_only_the_parts_that_hold_survivors(tiny, all_shards, out):
    slice_shards(all_shards, "stage != 2 or index == 0 and step == 0", out)
    reader = open_shards(out)
    check_plan(tiny, reader)
    assert last_trainable_step(tiny, reader, 0, 18) == 18


def test_a_filtered_reader_has_the_parts_and_positions_of_the_slice(all_shards, out):
    where, first = "stage != 2 or index == 0 and step == 0", PartId(2, 0)
    slice_shards(all_shards, where, out)
    filtered = FilteredReader(all_shards, where)
    filtered.survivors(2)
    for reader in (open_shards(out), filtered):
        assert reader.parts_of_stage(2) == [first]
        assert reader.positions(first) == [0]


def test_the_trainer_says_that_a_slice_lacks_a_stage(tiny, own_shards, out):
    for path in [*own_shards.glob("entries/stage-0002*"), *own_shards.glob("entries/stage-0004*")]:
        path.unlink()
    slice_shards(own_shards, WHERE, out)
    with pytest.raises(
        ShardError, match=r"lacks stage-0002-part-000 .* make them in the folder of the whole"
    ):
        last_trainable_step(tiny, open_shards(out), 0, 18)


def test_who_lacks_stages_of_a_slice_is_told_to_slice_again(tiny, own_shards, out):
    for path in own_shards.glob("entries/stage-000[45]*"):
        path.unlink()
    tail = [4, 5]
    assert how_to_make(open_shards(own_shards), tail).startswith("make them with `prior-gen --conf")
    filtered = FilteredReader(own_shards, WHERE)  # `train.where`: the folder is no slice
    assert how_to_make(filtered, tail) == how_to_make(open_shards(own_shards), tail)
    slice_shards(own_shards, WHERE, out)
    again = f"`prior-gen slice WHOLE --where 'd <= 3' --out {out}`"
    assert how_to_make(open_shards(out), tail).endswith(again)
    assert how_to_make(FilteredReader(out, "causal"), tail).endswith(again)


def test_a_slice_of_a_slice_grows_by_what_its_trainer_is_told_and_by_nothing_else(
    tiny, own_shards, out, tmp_path
):
    later = [*own_shards.glob("entries/stage-000[45]*")]
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    for path in later:
        path.rename(hidden / path.name)
    first = tmp_path / "first"
    slice_shards(own_shards, "d >= 2", first)
    where = slice_shards(first, "index == 0", out).slice.where
    for path in later:
        (hidden / path.name).rename(path)
    slice_shards(own_shards, "d >= 2", first)
    # From the slice that it was cut from, the whole expression would be joined once more.
    with pytest.raises(ShardError, match="holds other shards: the slice where"):
        slice_shards(first, where, out)
    assert shlex.quote(where) in how_to_make(open_shards(out), [4, 5])
    assert slice_shards(own_shards, where, out).slice.where == where
    assert last_trainable_step(tiny, open_shards(out), 0, 18) == 18


def test_a_slice_elsewhere_is_made_here_and_copied(all_shards, out, serve):
    slice_shards(all_shards, WHERE, out)
    url, _ = serve(out)
    told = how_to_make(open_shards(folder_of(url)), [4])
    assert told.endswith(f"--where 'd <= 3' --out OUT`, to be copied to {url}")


def test_a_disk_that_is_full_is_told(all_shards, own_shards, out, tmp_path, monkeypatch):
    for path in own_shards.glob("entries/stage-0005*"):
        path.unlink()

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    slice_shards(own_shards, WHERE, tmp_path / "grows")
    monkeypatch.setattr(shutil, "copyfile", full)
    monkeypatch.setattr(os, "link", full)
    with pytest.raises(ShardError, match="cannot be used: no space left on device"):
        slice_shards(all_shards, WHERE, out)
    monkeypatch.setattr("shard_io.slice.replace_whole", full)
    with pytest.raises(ShardError, match="cannot be used: no space left on device"):
        slice_shards(all_shards, WHERE, tmp_path / "grows")


def test_the_command_prints_the_reuse_of_each_stage(all_shards, out, command):
    code, told = command("slice", all_shards, "--where", "index == 0", "--out", out)
    assert code == 0
    assert "stage 1: 4 of 16 microbatches, each read 4 times" in told
    assert told.count("each read") == 5
    assert "where index == 0" in told
