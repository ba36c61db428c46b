"""`puicl compare` and `puicl weights`: what they refuse, pass on and exit with."""

from types import SimpleNamespace

import pytest

from puicl_cli.main import main
from puicl_cli.weights import _verify_origin, _why_shards_differ
from puicl_config import Config, InputError
from shard_io import NoShards, ShardError


@pytest.fixture
def puicl(called):
    return lambda *words: called(main, "puicl", *words)


@pytest.fixture
def runs(tmp_path):
    for name in "ab":
        (tmp_path / name).mkdir()
        (tmp_path / name / "ledger.jsonl").write_text("")
    return tmp_path / "a", tmp_path / "b"


@pytest.mark.parametrize("equal", [True, False])
def test_compare_exits_with_one_where_runs_part(puicl, runs, monkeypatch, equal):
    drawn, compared = [], []
    told = SimpleNamespace(sentence="what differs", equal=equal)
    monkeypatch.setattr("trainer.draw_curves", lambda *given, **more: drawn.append((given, more)))
    monkeypatch.setattr("trainer.compare_runs", lambda *given: compared.append(given) or told)
    assert puicl("compare", *runs) == (0 if equal else 1, "what differs\n", "")
    assert drawn == []
    picture = runs[0].parent / "both.png"
    puicl("compare", *runs, "--plot", picture)
    assert drawn == [(([*runs], picture), {"smooth": 50})]
    assert compared == [runs, runs]


def test_what_runs_say_of_themselves_gives_no_orders_to_the_terminal(puicl, runs, monkeypatch):
    told = SimpleNamespace(sentence="cpu is \x1b[2J and \x1b]0;x\x07", equal=False)
    monkeypatch.setattr("trainer.compare_runs", lambda *given: told)
    assert puicl("compare", *runs)[1] == "cpu is \\x1b[2J and \\x1b]0;x\\x07\n"


def test_what_is_no_run_is_named_whichever_it_is(puicl, runs):
    (runs[1] / "ledger.jsonl").unlink()
    for given in (runs, runs[::-1]):
        code, _, said = puicl("compare", *given)
        assert code == 2
        assert said == f"error: {runs[1]} holds no run: there is no ledger.jsonl\n"


def test_export_passes_on_what_it_is_told(puicl, tmp_path, monkeypatch):
    told = []
    monkeypatch.setattr("trainer.export_weights", lambda *given, **more: told.append((given, more)))
    out = tmp_path / "w.safetensors"
    words = ("weights", "export", tmp_path / "run", "--out", out, "--shards", "s3://b/x")
    usual = {"start_share": 0.0, "back_to": None, "bfloat16": False, "unfinished": False}
    changes = {
        ("--start-share", 0.25): {"start_share": 0.25},
        ("--back-to", "older"): {"back_to": "older"},
        ("--bfloat16",): {"bfloat16": True},
        ("--unfinished",): {"unfinished": True},
    }
    for options, change in changes.items():
        code, said, _ = puicl(*words, *options)
        assert (code, said) == (0, f"{out} and {tmp_path / 'w.json'} are written\n")
        assert told.pop() == ((tmp_path / "run", "s3://b/x", out), {**usual, **change})
    code, _, said = puicl(*words[:3], "--out", tmp_path / "w.pt")
    assert (code, told) == (2, [])
    assert "w.pt: give a file that ends in .safetensors" in said


def test_an_export_without_the_runs_shards_says_how_to_name_them(puicl, tmp_path, monkeypatch):
    def absent(*_, **__):
        raise NoShards("shards holds no shards: there is no manifest.json")

    monkeypatch.setattr("trainer.export_weights", absent)
    _, _, said = puicl("weights", "export", tmp_path / "run", "--out", tmp_path / "w.safetensors")
    assert said.endswith("no manifest.json; name those of the run with --shards\n")


def test_a_start_that_is_not_here_is_told_before_shards_are_made(tmp_path, monkeypatch):
    def absent(card, start):
        raise InputError(f"{start} is not here")

    made = []
    monkeypatch.setattr("trainer.recorded_stages", lambda card: (None, [1]))
    monkeypatch.setattr("trainer.check_start", absent)
    monkeypatch.setattr("prior_gen.generate_shards", lambda *given: made.append(given))
    card = {"recorded": {"init_from": "older"}}
    with pytest.raises(InputError, match=r"^older is not here"):
        _verify_origin(card, tmp_path, True, None)
    with pytest.raises(InputError, match="elsewhere is not here"):
        _verify_origin(card, tmp_path, True, tmp_path / "elsewhere")
    assert made == []


def test_shards_that_cannot_be_made_again_are_told(tmp_path, monkeypatch):
    def full(*_):
        raise ShardError("no room")

    monkeypatch.setattr("trainer.recorded_stages", lambda card: (None, [1]))
    monkeypatch.setattr("prior_gen.generate_shards", full)
    with pytest.raises(InputError, match=r"^the shards cannot be made again: no room$"):
        _verify_origin({"recorded": {"init_from": None}}, tmp_path, False, None)


def test_a_card_that_does_not_tell_the_processor_blames_none():
    told = _why_shards_differ(Config(), {"environments": [{}]})
    assert told.startswith("made by other software, or damaged, or by other kernels: ")
