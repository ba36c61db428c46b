"""`puicl weights`: exported weights say where they come from, and lies are found."""

import json
import re
import shutil

import pytest
from safetensors.numpy import load_file, save_file
from typer.testing import CliRunner
from verify_command import verify

from prior_gen import generate_shards
from puicl_cli.main import app, main
from puicl_config import InputError, parse_config, plan_digest, run_digest
from puicl_model import PUICLClassifier, find_weights, load_model, shipped_weights
from shard_io import slice_shards
from trainer import average_checkpoints
from trainer.checkpoint import checkpoints
from trainer.provenance import export_weights
from trainer.recorded import differing_parts


@pytest.fixture(scope="module")
def exported(reference_run, all_shards, tmp_path_factory):
    out = tmp_path_factory.mktemp("weights") / "tiny.safetensors"
    export_weights(reference_run, all_shards, out)
    return out


@pytest.fixture
def copied(exported, tmp_path):
    """A copy to spoil."""
    for path in (exported, exported.with_suffix(".json")):
        shutil.copy(path, tmp_path)
    return tmp_path / exported.name


def change(weights, place, value):
    """Set one entry of the card, at a path of keys."""
    card = json.loads(weights.with_suffix(".json").read_text())
    *path, last = place
    entry = card
    for key in path:
        entry = entry[key]
    entry[last] = value
    weights.with_suffix(".json").write_text(json.dumps(card))


def test_the_card_tells_config_data_and_environment(exported, reference_run):
    _, card = load_model(exported)
    assert card["steps"] == card["of_steps"] == 18
    assert card["config"]["prior"]["stages"] >= 1
    assert card["environments"][0]["torch"]
    assert card["training_seconds"] >= 0
    assert len(card["recorded"]["ledger"]) == 3
    ledger = (reference_run / "ledger.jsonl").read_text().splitlines()
    assert card["recorded"]["ledger"][2]["loss"] == json.loads(ledger[2])["loss"]
    assert card["recorded"]["parts"]
    assert card["recorded"]["init_from"] is None


def test_verify_makes_the_first_shards_and_steps_again(exported):
    code, told = verify(exported, "--replay")
    assert code == 0, told
    assert "3 steps, the same bits" in told


def test_how_long_a_run_was_to_take_and_what_else_it_looked_at_do_not_bind_its_replay(
    copied, monkeypatch
):
    monkeypatch.setattr("trainer.loader._processes", None)  # a script would have to guard its main
    change(copied, ("config", "train", "loader_processes"), 2)
    change(copied, ("config", "train", "max_seconds"), 1e-3)
    change(copied, ("config", "train", "heldout"), "gone")
    change(copied, ("config", "train", "follow"), True)
    threads = []
    monkeypatch.setattr("torch.set_num_threads", threads.append)
    code, told = verify(copied, "--replay")
    assert code == 0, told
    assert 1 in threads  # as the run had them
    assert "3 steps, the same bits" in told


def test_a_changed_weight_is_found(copied):
    tensors = load_file(copied)
    name = sorted(tensors)[0]
    tensors[name].flat[0] += 1e-6
    save_file(tensors, copied)
    code, told = verify(copied)
    assert code != 0
    assert "do not match the digest" in told


def test_the_command_exits_with_one_for_what_differs_and_with_two_for_what_is_wrong(copied, called):
    def exits_with(*words):
        return called(main, "puicl", "weights", "verify", *words)

    before = copied.with_suffix(".json").read_text()
    change(copied, ("recorded", "parts", "stage-0001-part-000"), "0" * 64)
    code, out, err = exits_with(copied)
    assert code == 1
    assert "error: " not in err
    assert "shards: stage-0001-part-000 comes out different here" in out
    for place in (("weights_digest",), ("plan_digest",)):
        copied.with_suffix(".json").write_text(before)
        change(copied, place, "0" * 64)
        code, _, err = exits_with(copied)
        assert code == 2
        assert err.startswith("error: the weights")
    assert exits_with(copied.with_name("nowhere.safetensors"))[0] == 2
    assert "Exits with 1 and names the difference" in " ".join(exits_with("--help")[1].split())


def test_another_part_than_recorded_is_named(copied):
    _, card = load_model(copied)
    part = sorted(card["recorded"]["parts"])[-1]
    change(copied, ("recorded", "parts", part), "0" * 64)
    code, told = verify(copied)
    assert code == 1
    assert part in told
    assert "made by other software, or damaged, or by other kernels: numpy multiplies" in told
    change(copied, ("environments", 0, "cpu_capability"), "AVX1024")
    assert "the run's processor has AVX1024, this one" in verify(copied)[1]
    change(copied, ("config", "prior", "arithmetic"), "portable")
    _, card = load_model(copied)
    config = parse_config(card["config"], where="here")
    change(copied, ("plan_digest",), plan_digest(config.prior))
    change(copied, ("run_digest",), run_digest(config))
    assert verify(copied)[1].endswith("made by other software, or damaged\n")


def test_a_recorded_part_that_is_not_there_differs(exported, own_shards):
    _, card = load_model(exported)
    assert differing_parts(card, own_shards) == []
    (own_shards / "entries" / "stage-0001-part-001.json").unlink()
    assert differing_parts(card, own_shards) == ["stage-0001-part-001"]


def test_a_step_that_went_otherwise_is_named(copied):
    change(copied, ("recorded", "ledger", 1, "loss"), (0.5).hex())
    code, told = verify(copied, "--replay")
    assert code == 1
    assert re.search(
        r"step 1: loss is 0x1\.\w+p-1, and was 0x1\.0+p-1: \d\.\de-01 of 0\.5000 more", told
    )
    assert "software, processor and commit are the recorded ones" in told
    change(copied, ("environments", 0, "torch"), "0.1")
    assert "torch was 0.1, here it is 2" in verify(copied, "--replay")[1]


def test_of_a_run_that_gave_its_bits_up_losses_agree_but_for_rounding(copied):
    change(copied, ("config", "train", "deterministic"), False)
    change(copied, ("config", "train", "device"), "cuda")
    _, card = load_model(copied)
    change(copied, ("run_digest",), run_digest(parse_config(card["config"], where="here")))
    place = ("recorded", "ledger", 1)
    loss = float.fromhex(card["recorded"]["ledger"][1]["loss"])
    change(copied, (*place, "loss"), (loss * 1.001).hex())
    change(copied, (*place, "weights"), "0" * 64)
    code, told = verify(copied, "--replay")
    assert code == 0, told
    assert "the same losses up to rounding: the run gave up exact bits" in told
    change(copied, (*place, "loss"), (loss * 1.004).hex())
    code, told = verify(copied, "--replay")
    assert (code, "step 1: loss is" in told) == (1, True), told
    change(copied, (*place, "loss"), loss.hex())
    change(copied, (*place, "data"), "0" * 16)
    code, told = verify(copied, "--replay")
    assert (code, "step 1: data is" in told) == (1, True), told


def test_a_run_on_a_cpu_has_no_bits_to_give_up(copied):
    change(copied, ("config", "train", "deterministic"), False)
    _, card = load_model(copied)
    change(copied, ("run_digest",), run_digest(parse_config(card["config"], where="here")))
    loss = float.fromhex(card["recorded"]["ledger"][1]["loss"])
    change(copied, ("recorded", "ledger", 1, "loss"), (loss * (1 + 1e-6)).hex())
    code, told = verify(copied, "--replay")
    assert (code, "step 1: loss is" in told) == (1, True), told
    assert f": 1.0e-06 of {loss:.4f} less (" in told


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("steps",), 17),
        (("of_steps",), 99_999),
        (("config", "train", "seed"), 5),
        (("config", "prior", "seed"), 5),
        (("run_digest",), "0" * 64),
    ],
)
def test_a_card_that_contradicts_itself_is_found_without_training(copied, place, value):
    change(copied, place, value)
    code, told = verify(copied)
    assert code == 1
    assert "the weights' card contradicts itself" in told
    assert f"written by commit {load_model(copied)[1]['git_commit']}" in told


def test_a_card_of_a_version_with_other_keys_names_its_commit(copied):
    card = load_model(copied)[1]
    change(copied, ("config", "prior", "extensions"), {"share": 1.0, "rounded": 0.5})
    code, told = verify(copied)
    assert code == 1
    assert f"the weights' card, of commit {card['git_commit']}: unknown key" in told


def test_a_card_that_lost_entries_names_them(copied):
    path = copied.with_suffix(".json")
    card = json.loads(path.read_text())
    del card["lineage"], card["recorded"]["ledger"]
    path.write_text(json.dumps(card))
    code, told = verify(copied)
    assert code == 1
    assert "the weights' card is damaged: it lacks ledger, lineage" in told


def test_a_card_without_a_config_records_nothing(copied):
    path = copied.with_suffix(".json")
    card = json.loads(path.read_text())
    del card["config"]
    path.write_text(json.dumps(card))
    assert "the weights' card records no steps" in verify(copied)[1]


def test_storage_is_the_folders_and_a_slice_is_cut_out_again(
    tiny_yaml, tiny, run_command, arguments, tmp_path
):
    storage = tiny.shards.model_copy(update={"parts_per_stage": 2, "x_dtype": "float32"})
    stored = tiny.model_copy(update={"shards": storage})
    stages = list(range(1, tiny.prior.total_stages + 1))
    generate_shards(stored, tmp_path / "whole", stages, jobs=1)
    slice_shards(tmp_path / "whole", "d >= 2", tmp_path / "slice")
    for name in ("whole", "slice"):
        run, out = tmp_path / f"run-{name}", tmp_path / f"{name}.safetensors"
        run_command(*arguments(tiny_yaml, tmp_path / name, run))
        export_weights(run, tmp_path / name, out)
        assert load_model(out)[1].get("where") == ("d >= 2" if name == "slice" else None)
        code, told = verify(out, "--replay")
        assert code == 0, told
    cards = [load_model(tmp_path / f"{name}.safetensors")[1] for name in ("whole", "slice")]
    assert cards[0]["run_digest"] == cards[1]["run_digest"]
    newest = [
        checkpoints(tmp_path / f"run-{name}" / "checkpoints")[-1] for name in ("whole", "slice")
    ]
    with pytest.raises(InputError, match="of different runs"):
        average_checkpoints(newest, tmp_path / "mean.safetensors")


def test_a_run_that_began_elsewhere_asks_for_its_checkpoint(copied, reference_run):
    change(copied, ("recorded", "init_from"), str(copied.parent / "gone"))
    code, told = verify(copied, "--replay")
    assert code != 0
    assert "gone, at which the run began, is not here: do this in a checkout that holds it" in told
    assert "of the first steps, made again" not in told  # which take minutes to make
    start = checkpoints(reference_run / "checkpoints")[-1]
    code, told = verify(copied, "--replay", "--checkpoint", start)
    assert code != 0
    assert "is not what the run began from" in told


def test_weights_without_a_record_and_unfinished_runs_are_refused(
    copied, reference_run, all_shards, tmp_path
):
    card = json.loads(copied.with_suffix(".json").read_text())
    del card["recorded"]
    copied.with_suffix(".json").write_text(json.dumps(card))
    code, told = verify(copied)
    assert code != 0
    assert "records no steps: `puicl weights export` writes them" in told
    run = tmp_path / "run"
    shutil.copytree(reference_run, run)
    card = json.loads((run / "model.json").read_text()) | {"steps": 7}
    (run / "model.json").write_text(json.dumps(card))
    with pytest.raises(InputError, match="step 7 of 18"):
        export_weights(run, all_shards, tmp_path / "out.safetensors")
    assert not (tmp_path / "out.safetensors").exists()


def test_who_verifies_a_mean_is_told_how_to_check_one(reference_run, tmp_path):
    mean = tmp_path / "mean.safetensors"
    steps = average_checkpoints([reference_run], mean, "ema")
    code, told = verify(mean)
    assert code != 0
    assert f"the mean of the checkpoints of steps {', '.join(map(str, steps))}, which" in told
    assert "`puicl average CHECKPOINTS --of ema --out FILE`" in told
    assert "weights export" not in told


def test_a_run_that_was_stopped_for_good_can_be_exported_and_checked(
    run_command, arguments, tiny_yaml, all_shards, tmp_path
):
    run, out = tmp_path / "run", tmp_path / "out.safetensors"
    run_command(*arguments(tiny_yaml, all_shards, run, "train.max_steps=7"))
    with pytest.raises(InputError, match="step 7 of 18"):
        export_weights(run, all_shards, out)
    asked = ["weights", "export", str(run), "--shards", str(all_shards), "--out", str(out)]
    assert CliRunner().invoke(app, [*asked, "--unfinished"]).exit_code == 0
    card = load_model(out)[1]
    assert (card["steps"], card["of_steps"]) == (7, 18)
    code, told = verify(out, "--replay")
    assert code == 0, told
    assert "that it was stopped after 7 of 18 steps" in told
    for steps in (2, 18, "7"):  # fewer than are recorded, all of them, no number
        change(out, ("steps",), steps)
        code, told = verify(out)
        assert (code, "its config says 3 to 17, unfinished" in told) == (1, True), told


def test_names_are_of_shipped_weights_and_nothing_else(tmp_path, monkeypatch):
    with pytest.raises(InputError, match="no weights named 'papre'"):
        PUICLClassifier("papre").fit([[0.0], [1.0]], [1, 0])
    assert find_weights("./papre").name == "papre"
    monkeypatch.chdir(tmp_path)
    assert [name for name in shipped_weights() if not find_weights(name).is_file()] == []
