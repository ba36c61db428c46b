"""The command that makes what is missing, as it is told to be pasted."""

import shlex

from typer.testing import CliRunner

from prior_gen import generate_shards
from prior_gen.cli import app
from shard_io import as_ranges, command_for, folder_of, open_shards


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


def test_home_is_home(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert folder_of("~/shards") == tmp_path / "shards"


def test_numbers_are_told_as_ranges_in_order_and_gaps_stay_gaps():
    assert as_ranges([7, 2, 1, 3]) == "1-3,7"
    assert as_ranges({1, 3}) == "1,3"
    assert as_ranges([]) == ""
