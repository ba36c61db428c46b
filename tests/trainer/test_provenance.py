"""`puicl weights`: exported weights say where they come from, and lies are found."""

import json
import shutil

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file
from typer.testing import CliRunner

from prior_gen import generate_shards
from puicl_cli.main import app
from puicl_config import InputError, load_config, parse_config, plan_digest, run_digest
from puicl_model import PUICLClassifier, find_weights, load_model, shipped_weights
from shard_io import slice_shards
from trainer import average_checkpoints
from trainer.checkpoint import checkpoints, load_checkpoint, read_state
from trainer.provenance import export_weights
from trainer.start import load_start
from trainer.state import TrainState


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


def verify(*arguments):
    """Exit status, and what was printed or raised."""
    result = CliRunner().invoke(app, ["weights", "verify", *map(str, arguments)])
    told = str(result.exception) if isinstance(result.exception, InputError) else result.output
    return result.exit_code, told


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


def test_how_long_a_run_was_to_take_and_whether_it_followed_do_not_bind_its_replay(copied):
    change(copied, ("config", "train", "max_seconds"), 1e-3)
    change(copied, ("config", "train", "follow"), True)
    code, told = verify(copied, "--replay")
    assert code == 0, told
    assert "3 steps, the same bits" in told


def test_a_changed_weight_is_found(copied):
    tensors = load_file(copied)
    name = sorted(tensors)[0]
    tensors[name].flat[0] += 1e-6
    save_file(tensors, copied)
    code, told = verify(copied)
    assert code != 0
    assert "do not match the digest" in told


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


def test_a_step_that_went_otherwise_is_named(copied):
    change(copied, ("recorded", "ledger", 1, "loss"), (0.5).hex())
    code, told = verify(copied, "--replay")
    assert code == 1
    assert "step 1: loss is" in told
    assert "software, processor and commit are the recorded ones" in told
    change(copied, ("environments", 0, "torch"), "0.1")
    assert "torch was 0.1, here it is 2" in verify(copied, "--replay")[1]


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


def test_a_card_without_a_config_records_nothing(copied):
    path = copied.with_suffix(".json")
    card = json.loads(path.read_text())
    del card["config"]
    path.write_text(json.dumps(card))
    assert "the weights' card records no steps" in verify(copied)[1]


def test_only_the_shards_of_the_run_are_recorded(reference_run, tiny, own_shards, tmp_path):
    out = tmp_path / "w.safetensors"
    generate_shards(tiny, tmp_path / "heldout", [1], split="heldout", jobs=1)
    with pytest.raises(InputError, match=r"not the shards the run was .* split is heldout"):
        export_weights(reference_run, tmp_path / "heldout", out)
    slice_shards(own_shards, "d >= 2", tmp_path / "slice")
    with pytest.raises(InputError, match="or what was sliced out of them, differ"):
        export_weights(reference_run, tmp_path / "slice", out)
    assert not out.exists()


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
    assert "records no steps" in told
    run = tmp_path / "run"
    shutil.copytree(reference_run, run)
    card = json.loads((run / "model.json").read_text()) | {"steps": 7}
    (run / "model.json").write_text(json.dumps(card))
    with pytest.raises(InputError, match="step 7 of 18"):
        export_weights(run, all_shards, tmp_path / "out.safetensors")
    assert not (tmp_path / "out.safetensors").exists()


@pytest.mark.parametrize(
    ("lost", "emptied"),
    [
        ("config.yaml", False),
        ("environment.json", False),
        ("environment.json", True),
        ("metrics.jsonl", False),
        ("metrics.jsonl", True),
    ],
)
def test_a_run_that_lacks_a_file_is_refused_by_its_name(
    reference_run, all_shards, tmp_path, lost, emptied
):
    run = tmp_path / "run"
    shutil.copytree(reference_run, run)
    if emptied:
        (run / lost).write_text("")
    else:
        (run / lost).unlink()
    with pytest.raises(InputError, match=lost):
        export_weights(run, all_shards, tmp_path / "out.safetensors")
    assert not (tmp_path / "out.safetensors").exists()


def test_weights_between_a_runs_start_and_its_end(
    reference_run, tiny_yaml, all_shards, arguments, run_command, tmp_path
):
    start = checkpoints(reference_run / "checkpoints")[-1]
    run, out, half = tmp_path / "run", tmp_path / "end.safetensors", tmp_path / "half.safetensors"
    run_command(*arguments(tiny_yaml, all_shards, run, f"train.init_from={start}"))
    export_weights(run, all_shards, out)
    export = ("weights", "export", run, "--shards", all_shards, "--out", half)
    told = CliRunner().invoke(app, [*map(str, export), "--start-share", "0.25"])
    assert told.exit_code == 0, told.output
    first, last, between = (
        load_file(path) for path in (reference_run / "model.safetensors", out, half)
    )
    for name, weight in between.items():
        expected = 0.25 * first[name].astype(float) + 0.75 * last[name].astype(float)
        np.testing.assert_array_equal(weight, expected.astype(np.float32))
    assert any((first[name] != last[name]).any() for name in first)
    _, card = load_model(half)
    assert card["start_share"] == 0.25
    assert "start_share" not in load_model(out)[1]
    code, told = verify(half, "--replay")
    assert code == 0, told
    # Another checkpoint in its place is found out; a run from a seed has no start to go back to.
    with pytest.raises(InputError, match="began from its seed"):
        export_weights(reference_run, all_shards, tmp_path / "x.safetensors", start_share=0.5)
    config = run / "config.yaml"
    another = str(checkpoints(reference_run / "checkpoints")[0])
    config.write_text(config.read_text().replace(str(start), another))
    with pytest.raises(InputError, match="is not what the run began from"):
        export_weights(run, all_shards, tmp_path / "x.safetensors", start_share=0.5)


def test_weights_between_a_runs_end_and_an_earlier_ancestor(
    reference_run, tiny_yaml, all_shards, arguments, run_command, tmp_path
):
    first = checkpoints(reference_run / "checkpoints")[0]
    second, third = tmp_path / "second", tmp_path / "third"
    run_command(*arguments(tiny_yaml, all_shards, second, f"train.init_from={first}"))
    start = checkpoints(second / "checkpoints")[-1]
    run_command(*arguments(tiny_yaml, all_shards, third, f"train.init_from={start}"))
    out = tmp_path / "between.safetensors"
    export = ("weights", "export", third, "--shards", all_shards, "--out", out, "--back-to", first)
    told = CliRunner().invoke(app, [*map(str, export), "--start-share", "0.25"])
    assert told.exit_code == 0, told.output
    ancestor = load_checkpoint(first)[1]
    last = load_file(third / "model.safetensors")
    for name, weight in load_file(out).items():
        expected = 0.25 * ancestor[f"ema.{name}"].double().numpy() + 0.75 * last[name].astype(float)
        np.testing.assert_array_equal(weight, expected.astype(np.float32))
    _, card = load_model(out)
    assert (card["start_share"], card["back_to"]) == (0.25, card["lineage"][0]["tensors_digest"])
    code, told = verify(out, "--replay")
    assert code == 0, told
    for place, share, why in (
        (str(reference_run / "model.safetensors"), 0.5, "none of the run's ancestors"),
        (str(first), 0.0, "how far back"),
    ):
        with pytest.raises(InputError, match=why):
            export_weights(
                third, all_shards, tmp_path / "x.safetensors", start_share=share, back_to=place
            )


def test_a_run_begins_from_weights_and_can_be_checked(
    reference_run, tiny_yaml, all_shards, arguments, run_command, tmp_path
):
    weights = reference_run / "model.safetensors"
    run, out, half = tmp_path / "run", tmp_path / "end.safetensors", tmp_path / "half.safetensors"
    command = arguments(tiny_yaml, all_shards, run, f"train.init_from={weights}")
    run_command(*command, "train.max_steps=5")
    run_command(*command)  # resumes, and finds that it began there
    export_weights(run, all_shards, out)
    _, card = load_model(out)
    parent = load_model(weights)[1]
    assert card["lineage"][-1]["tensors_digest"] == parent["weights_digest"]
    assert card["lineage"][-1]["run_digest"] == parent["run_digest"]
    code, told = verify(out, "--replay")
    assert code == 0, told
    # From weights alone, so without the moments that the same run's checkpoint has.
    other = tmp_path / "other"
    start = checkpoints(reference_run / "checkpoints")[-1]
    run_command(*arguments(tiny_yaml, all_shards, other, f"train.init_from={start}"))
    ledgers = [(r / "ledger.jsonl").read_text().splitlines() for r in (run, other)]
    losses = [json.loads(ledger[0])["loss"] for ledger in ledgers]
    digests = [load_model(r / "model.safetensors")[1]["weights_digest"] for r in (run, other)]
    assert digests[0] != digests[1]
    assert losses[0] != losses[1]  # the checkpoint's weights, not their moving average
    export_weights(run, all_shards, half, start_share=0.5)
    first, last, between = (load_file(path) for path in (weights, out, half))
    for name, weight in between.items():
        expected = (0.5 * first[name].astype(float) + 0.5 * last[name].astype(float)).astype("f4")
        np.testing.assert_array_equal(weight, expected)


def test_a_run_begins_from_a_mean_of_checkpoints_and_records_each(
    reference_run, tiny_yaml, all_shards, arguments, run_command, refused, tmp_path
):
    mean, run = tmp_path / "mean.safetensors", tmp_path / "run"
    averaged = checkpoints(reference_run / "checkpoints")[-2:]
    steps = average_checkpoints(averaged, mean, "ema")
    begin = arguments(tiny_yaml, all_shards, run, f"train.init_from={mean}")
    run_command(*begin, "train.max_steps=2")
    run_command(*begin)  # resumes: it is where the run began
    model, mean_card = load_model(mean)
    about = read_state(checkpoints(run / "checkpoints")[-1])
    *theirs, parent = about.lineage.ancestors
    assert theirs == [read_state(path).as_ancestor() for path in averaged]
    assert parent["tensors_digest"] == mean_card["weights_digest"]
    assert [parent["step"], parent["data"]] == [steps[-1], theirs[-1]["data"]]
    card = json.loads((run / "model.json").read_text())
    assert card["lineage"] == [*theirs, parent]
    begun = TrainState(load_config(tiny_yaml), torch.device("cpu"))
    begun.begin_from(load_start(str(mean))[1], steps[-1])
    assert all(p.equal(model.state_dict()[name]) for name, p in begun.parameters.items())
    # A card from before the lineage was written says what to do, as does the mean in a run's place.
    for name in ("steps", "data", "lineage"):
        del mean_card[name]
    mean.with_suffix(".json").write_text(json.dumps(mean_card))
    (said,) = refused(arguments(tiny_yaml, all_shards, tmp_path / "x", f"train.init_from={mean}"))
    assert "lacks steps, data, lineage, which `puicl average` did not write before" in said
    average_checkpoints(averaged, run / "model.safetensors")
    with pytest.raises(InputError, match="is a mean of checkpoints"):
        export_weights(run, all_shards, tmp_path / "x.safetensors")


def test_where_no_run_can_begin(reference_run, tiny_yaml, all_shards, arguments, refused):
    nameless = reference_run.parent / "nameless.safetensors"
    shutil.copy(reference_run / "model.safetensors", nameless)
    card = json.loads((reference_run / "model.json").read_text())
    del card["run_digest"]
    nameless.with_suffix(".json").write_text(json.dumps(card))
    sentences = {
        "default": "train.init_from: its unlabeled_token is [128], this model's is [16]",
        "defualt": "there is no checkpoint defualt",
        "gone.safetensors": "gone.safetensors is missing",
        nameless: "does not say where the weights come from: it lacks run_digest",
    }
    run = reference_run.parent / "refused"
    begin = [arguments(tiny_yaml, all_shards, run, f"train.init_from={at}") for at in sentences]
    for sentence, said in zip(sentences.values(), refused(*begin), strict=True):
        assert sentence in said


def test_names_are_of_shipped_weights_and_nothing_else(tmp_path, monkeypatch):
    with pytest.raises(InputError, match="no weights named 'papre'"):
        PUICLClassifier("papre").fit([[0.0], [1.0]], [1, 0])
    assert find_weights("./papre").name == "papre"
    monkeypatch.chdir(tmp_path)
    assert [name for name in shipped_weights() if not find_weights(name).is_file()] == []
