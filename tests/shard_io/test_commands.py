"""The command that makes what is missing, as it is told to be pasted."""

import re
import shlex

import pytest
from typer.testing import CliRunner

from prior_gen import generate_shards
from prior_gen.cli import app
from shard_io import PartId, ShardError, as_ranges, command_for, folder_of, open_shards


def test_the_command_is_quoted_and_makes_what_is_missing(tiny, tmp_path):
    folder = tmp_path / "h a"
    storage = tiny.shards.model_copy(update={"parts_per_stage": 1})
    generate_shards(tiny.model_copy(update={"shards": storage}), folder, [1], jobs=1)
    words = shlex.split(command_for(folder, [3, 2]))
    assert words[0] == "prior-gen"
    assert words[3:5] == ["--stages", "2-3"]
    result = CliRunner().invoke(app, [*words[1:], "--jobs", "1"])
    assert result.exit_code == 0, result.output
    assert open_shards(folder).missing_parts([1, 2, 3]) == []


def told_commands(said: str) -> list[list[str]]:
    """What a sentence says to type, as a shell hands it on."""
    return [shlex.split(words) for words in re.findall(r"`(prior-gen [^`]*)`", said)]


def test_what_mends_a_folder_with_spaces_in_its_path_can_be_pasted(own_shards, command):
    folder = own_shards.rename(own_shards.parent / "h a")
    part = PartId(2, 0)
    file = folder / part.data_path("zarr") / "x" / "zarr.json"
    said = []
    for damage in (lambda: file.write_bytes(file.read_bytes()[1:]), file.unlink):
        damage()
        with pytest.raises(ShardError) as refusal:
            open_shards(folder).check_sizes([part])
        said.append(str(refusal.value))
    status, out = command("verify", str(folder))
    assert status == 1
    (folder / part.entry_path).write_text("{")
    with pytest.raises(ShardError) as refusal:
        open_shards(folder)[2, 0, 0]
    for sentence in [*said, out.splitlines()[-1], str(refusal.value)]:
        assert told_commands(sentence) == [["prior-gen", "repair", str(folder)]]
    (folder / "manifest.json").write_text("{")
    with pytest.raises(ShardError) as refusal:
        open_shards(folder)
    lost = [["prior-gen", "repair", str(folder), "--config", "CONFIG"]]
    assert told_commands(str(refusal.value)) == lost


@pytest.mark.parametrize("name", ["verify", "repair"])
def test_reading_all_parts_says_how_far_it_is(name, own_shards, prior_gen_command):
    n_parts = len(open_shards(own_shards).published_parts())
    _, results, said = prior_gen_command(name, str(own_shards))
    assert f"prior-gen {name}: {n_parts}/{n_parts} parts (100%), " in said
    assert "%" not in results


def test_a_share_names_what_others_owe_by_a_command_to_be_pasted(tiny_yaml, tmp_path, command):
    words = ["--config", str(tiny_yaml), "--stages", "1", "--out", str(tmp_path / "h a")]
    status, out = command(*words, "--part-range", "1/2", "--jobs", "1")
    assert status == 0
    asked = ["prior-gen", "info", str(tmp_path / "h a"), "--stages", "1", "--shares", "2"]
    assert told_commands(out) == [asked]


def test_home_is_home(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert folder_of("~/shards") == tmp_path / "shards"


def test_numbers_are_told_as_ranges_in_order_and_gaps_stay_gaps():
    assert as_ranges([7, 2, 1, 3]) == "1-3,7"
    assert as_ranges({1, 3}) == "1,3"
    assert as_ranges([]) == ""
