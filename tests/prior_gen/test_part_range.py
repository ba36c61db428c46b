"""Array jobs: n shares of the parts, made by n commands that know nothing of each other."""

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from folders import folder_bytes
from hypothesis import given
from hypothesis import strategies as st

from prior_gen.generator import generate_shards
from prior_gen.info import describe_shards
from prior_gen.stages import parse_part_range, share_of
from puicl_config import InputError
from shard_io import PartId, open_shards, problems_of, slice_shards

ROOT = Path(__file__).resolve().parents[2]
CODE = "from prior_gen.cli import main; main()"


@given(count=st.integers(0, 60), n=st.integers(1, 70))
def test_the_shares_are_disjoint_near_equal_and_together_all_parts(count, n):
    parts = [PartId(1 + k // 4, k % 4) for k in range(count)]
    shares = [share_of(parts, (i, n)) for i in range(1, n + 1)]
    assert sorted(part for share in shares for part in share) == parts
    sizes = [len(share) for share in shares]
    assert max(sizes) - min(sizes) <= 1


def test_array_jobs_in_any_order_make_the_bytes_of_one_run(tiny, all_shards, tmp_path):
    folder = tmp_path / "shards"
    for i in (3, 1, 4, 2):
        result = generate_shards(tiny, folder, range(1, 6), jobs=1, share=(i, 4))
        assert len(result.written) in (3, 4)
    assert folder_bytes(folder) == folder_bytes(all_shards)


def test_a_share_started_again_does_not_take_what_is_anothers(tiny, tmp_path):
    folder = tmp_path / "shards"
    first = generate_shards(tiny, folder, [1, 2, 3], jobs=1, share=(1, 3))
    again = generate_shards(tiny, folder, [1, 2, 3], jobs=1, share=(1, 3))
    assert (len(first.written), len(again.written), again.skipped) == (3, 0, 3)
    assert len(open_shards(folder).published_parts()) == 3


def test_info_names_the_parts_and_stages_that_other_shares_still_owe(tiny, tmp_path):
    folder = tmp_path / "shards"
    generate_shards(tiny, folder, [1, 2], jobs=1, share=(2, 4))
    facts = describe_shards(folder)
    assert facts["stages"] == [1, 2]
    assert facts["missing_stages"] == [3, 4, 5]
    assert facts["missing_parts"] == [
        "stage-0001-part-000",
        "stage-0001-part-002",
        "stage-0002-part-000",
        "stage-0002-part-001",
    ]
    assert sorted(problems_of(folder)) == [f"{name} is missing" for name in facts["missing_parts"]]


def test_the_commands_that_info_prints_make_what_is_missing(
    tiny, tiny_yaml, all_shards, tmp_path, prior_gen_command
):
    folder = tmp_path / "a folder"

    def run(*words):
        code, told, _ = prior_gen_command(*words)
        assert code == 0
        return told

    generate_shards(tiny, folder, range(1, 4), jobs=1, share=(2, 4))
    told = run("info", str(folder), "--stages", "1-3", "--shares", "4")
    facts = json.loads(run("info", str(folder), "--stages", "1-3", "--shares", "4", "--json"))
    assert f"--array={facts['array']}" in told
    assert f"lack {sum(facts['missing_parts'].values())} parts, of" in told
    assert "stages 1-3 lack 7 parts, of 3 shares: --array=1,3-4" in told
    commands = [line for line in told.splitlines() if line.startswith("prior-gen ")]
    assert len(commands) == 3
    for command in commands[:2]:
        run(*shlex.split(command)[1:], "--jobs", "1")
    commands = describe_shards(folder)["commands"]
    assert [command.split()[1] for command in commands] == ["repair", "--config"]
    for command in commands:
        assert f"makes what is missing: {command}" in run("info", str(folder))
    for command in commands:
        run(*shlex.split(command)[1:], "--jobs", "1")
    assert describe_shards(folder)["commands"] == []
    assert "nothing is missing" in run("info", str(folder), "--stages", "1-5", "--shares", "4")
    none = run("info", str(folder), "--stages", "1-5", "--shares", "4", "--json")
    assert json.loads(none) == {"missing_parts": {}, "array": ""}
    assert folder_bytes(folder) == folder_bytes(all_shards)


def test_no_command_makes_what_a_slice_lacks(tiny, tmp_path):
    generate_shards(tiny, tmp_path / "shards", [1, 2], jobs=1)
    slice_shards(tmp_path / "shards", "d > 0", tmp_path / "slice")
    for folder, commands in (("shards", 1), ("slice", 0)):
        facts = describe_shards(tmp_path / folder)
        assert facts["missing_stages"] == [3, 4, 5]
        assert len(facts["commands"]) == commands


def test_a_share_says_which_command_names_the_shares_that_owe_parts(
    tiny_yaml, tmp_path, monkeypatch, prior_gen_command
):
    monkeypatch.chdir(tmp_path)
    share = ("--stages", "2-3", "--part-range", "1/3")
    _, told, _ = prior_gen_command("--config", tiny_yaml, *share, "--jobs", 1)
    assert "these stages still lack 4 parts" in told
    assert "`prior-gen info shards --stages 2-3 --shares 3` names the shares" in told


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("0/4", "there is no share 0 of 4; shares count from 1/4 to 4/4"),
        ("5/4", "there is no share 5 of 4"),
        ("1/0", "there is no share 1 of 0"),
        ("1", "'1' is not of the form i/n"),
        ("-1/4", "is not of the form i/n"),
        ("1/2/3", "is not of the form i/n"),
    ],
)
def test_a_bad_part_range_is_one_sentence(text, sentence):
    with pytest.raises(InputError, match=sentence):
        parse_part_range(text)


def test_an_empty_range_of_an_unset_variable_is_refused_and_not_taken_for_none(
    tiny_yaml, own_shards, tmp_path, prior_gen_command
):
    made = ("--config", tiny_yaml, "--stages", "1", "--out", tmp_path / "new")
    code, _, told = prior_gen_command(*made, "--part-range", "")
    assert (code, "--part-range '' is not of the form i/n" in told) == (2, True)
    assert not (tmp_path / "new").exists()
    code, _, told = prior_gen_command("info", own_shards, "--stages", "", "--shares", 2)
    assert (code, "'' is neither a stage nor a range" in told) == (2, True)


def test_the_slurm_script_makes_every_part_when_each_task_has_run(tiny_yaml, all_shards, tmp_path):
    command = tmp_path / "bin" / "prior-gen"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -c "{CODE}" "$@"\n')
    command.chmod(0o755)
    for task in (2, 1):
        done = subprocess.run(
            [shutil.which("bash"), ROOT / "docs" / "examples" / "slurm_prior_gen.sh"],
            env={
                **os.environ,
                "PYTHONPATH": str(ROOT),
                "PATH": f"{command.parent}:{os.environ['PATH']}",
                "SLURM_ARRAY_TASK_ID": str(task),
                **{"SHARES": "2", "CONFIG": str(tiny_yaml), "STAGES": "1-5"},
                "OUT": str(tmp_path / "shards"),
            },
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        told = "these stages still lack 8 parts; `prior-gen info"
        assert (told in done.stdout) == (task == 2)
    assert folder_bytes(tmp_path / "shards") == folder_bytes(all_shards)
