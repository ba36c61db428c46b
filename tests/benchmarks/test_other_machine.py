"""Two machines' answers, compared."""

import json

import other_machine
import pytest

HERE = {"one pass": [0.25, 0.5], "four passes": [0.1, 0.2]}


@pytest.fixture
def answer(monkeypatch, capsys):
    """Run the script where answers are `probabilities` and `shards`; what it prints."""

    def run(option, path, probabilities, shards):
        monkeypatch.setattr(other_machine, "_probabilities", lambda: probabilities)
        monkeypatch.setattr(other_machine, "_shards", lambda: shards)
        monkeypatch.setattr("sys.argv", ["other_machine.py", option, str(path)])
        other_machine.main()
        return capsys.readouterr().out

    return run


def test_the_largest_difference_and_the_equal_files_are_told(answer, tmp_path):
    path = tmp_path / "here.json"
    assert answer("--out", path, HERE, {"a": "1", "b": "2"}) == ""
    there = json.loads(path.read_text()) | {"machine": "another"}
    path.write_text(json.dumps(there))
    moved = {"one pass": [0.25, 0.499], "four passes": [0.1, 0.2]}
    told = answer("--against", path, moved, {"a": "1", "b": "3", "c": "4"}).splitlines()
    assert told[0].endswith(" against another")
    assert told[1:] == [
        "one pass: probabilities differ by 1.0e-03 at most",
        "four passes: probabilities differ by 0.0e+00 at most",
        "portable shards: 1 of 3 files equal",
    ]


@pytest.mark.parametrize("content", ["[1]", "{}", "no JSON"])
def test_what_holds_no_answers_is_one_sentence(refused, tmp_path, content):
    (tmp_path / "other.json").write_text(content)
    said = refused("other_machine", "--against", tmp_path / "other.json")
    assert said.startswith(f"error: {tmp_path}/other.json holds no answers")
    assert said.count("\n") == 1
