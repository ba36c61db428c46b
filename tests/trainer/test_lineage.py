"""Runs that begin from checkpoints, weights or their means, and weights between a run's ends."""

import json
import shutil
from types import SimpleNamespace
from typing import Annotated

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from typer.testing import CliRunner
from verify_command import verify

from puicl_cli.main import app
from puicl_config import InputError, ModelConfig, load_config
from puicl_config.fields import LATER
from puicl_model import load_model
from trainer import average_checkpoints
from trainer.begin import _begin, _check_start
from trainer.checkpoint import Lineage, checkpoints, load_checkpoint, read_state
from trainer.provenance import export_weights
from trainer.run_folder import write_config
from trainer.start import load_start, reads_otherwise, settings_of_start, start_digest
from trainer.state import TrainState


def test_weights_between_a_runs_start_and_its_end(
    reference_run, tiny_yaml, all_shards, arguments, run_command, tmp_path
):
    start = checkpoints(reference_run / "checkpoints")[-1]
    run, out, half = tmp_path / "run", tmp_path / "end.safetensors", tmp_path / "half.safetensors"
    small = tmp_path / "small.safetensors"
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
    told = CliRunner().invoke(
        app, [*map(str, export[:-1]), str(small), "--start-share", "0.25", "--bfloat16"]
    )
    assert told.exit_code == 0, told.output
    assert small.stat().st_size < 0.6 * half.stat().st_size
    rounded, _ = load_model(small)
    for name, weight in load_model(half)[0].state_dict().items():
        assert torch.equal(rounded.state_dict()[name], weight.bfloat16().float())
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
    # Without a name it goes back to where the run itself began, its last ancestor.
    export_weights(third, all_shards, out, start_share=0.25)
    parent = load_checkpoint(start)[1]
    for name, weight in load_file(out).items():
        expected = 0.25 * parent[f"ema.{name}"].double().numpy() + 0.75 * last[name].astype(float)
        np.testing.assert_array_equal(weight, expected.astype(np.float32))
    for place, share, why in (
        (str(reference_run / "model.safetensors"), 0.5, "none of the run's ancestors"),
        (str(first), 0.0, "needs a start_share above 0"),
    ):
        with pytest.raises(InputError, match=why):
            export_weights(
                third, all_shards, tmp_path / "x.safetensors", start_share=share, back_to=place
            )


def test_a_run_begins_from_weights_and_can_be_checked(
    reference_run, tiny_yaml, all_shards, arguments, run_command, tmp_path, monkeypatch
):
    weights = tmp_path / "model.safetensors"
    shutil.copy(reference_run / weights.name, weights)
    shutil.copy(reference_run / "model.json", tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    run, out, half = tmp_path / "run", tmp_path / "end.safetensors", tmp_path / "half.safetensors"
    command = arguments(tiny_yaml, all_shards, run, "train.init_from=~/model.safetensors")
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


def test_other_weights_than_a_run_began_from_are_found_out_at_the_same_path(
    reference_run, tiny, tmp_path
):
    start = tmp_path / "model.safetensors"
    for path in (start, start.with_suffix(".json")):
        shutil.copy(reference_run / path.name, path)
    train = tiny.train.model_copy(update={"init_from": str(start)})
    write_config(tmp_path, tiny.model_copy(update={"train": train}))
    here, other = (
        Lineage(({"tensors_digest": digest},)) for digest in (start_digest(str(start)), "0" * 64)
    )
    _check_start(tmp_path, here, str(start))
    with pytest.raises(InputError, match="did not begin at"):
        _check_start(tmp_path, other, str(start))
    start.unlink()  # what is gone may stay gone
    _check_start(tmp_path, other, str(start))


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
        "default": "its unlabeled_token is [128], this model's is [16]: the config's section model",
        "defualt": "there is no checkpoint defualt, and the weights that ship are default, paper",
        "defualt/": "there is no checkpoint defualt\n",
        "gone.safetensors": "gone.safetensors is missing",
        nameless: "does not say where the weights come from: it lacks run_digest",
    }
    run = reference_run.parent / "refused"
    begin = [arguments(tiny_yaml, all_shards, run, f"train.init_from={at}") for at in sentences]
    for sentence, said in zip(sentences.values(), refused(*begin), strict=True):
        assert sentence in said


def test_weights_are_no_start_where_their_card_lacks_any_of_their_origin(untrained_weights):
    card = {"steps": 3, "run_digest": "run", "plan_digest": "plan", "data": "data", "lineage": []}
    assert load_start(str(untrained_weights(card)))[0].step == 3
    for key in card:
        rest = {other: value for other, value in card.items() if other != key}
        with pytest.raises(InputError, match=f"where the weights come from: it lacks {key}$"):
            load_start(str(untrained_weights(rest)))


def test_a_card_stands_for_its_weights(untrained_weights):
    weights = untrained_weights()
    assert start_digest(str(weights.with_suffix(".json"))) == start_digest(str(weights))


def test_how_a_checkpoint_read_its_weights_is_not_known_without_its_runs_config(
    reference_run, tiny, tmp_path
):
    run = tmp_path / "run"
    start = shutil.copytree(checkpoints(reference_run / "checkpoints")[-1], run / "a" / "step")
    other = tiny.model.model_copy(update={"row_heads": 2 * tiny.model.heads})
    assert reads_otherwise(str(start), other) == ""
    (run / "config.yaml").write_text("of_another: version\n")
    assert reads_otherwise(str(start), other) == ""
    shutil.copy(reference_run / "config.yaml", run)
    assert reads_otherwise(str(start), other) != ""


def test_a_run_says_where_its_network_reads_the_weights_in_another_way(
    reference_run, tiny, tiny_yaml
):
    start = str(checkpoints(reference_run / "checkpoints")[-1])
    weights = str(reference_run / "model.safetensors")
    heads = 2 * tiny.model.heads
    for begin in (start, weights):
        assert reads_otherwise(begin, tiny.model) == ""
        same = tiny.model.model_copy(update={"row_heads": tiny.model.heads})
        assert reads_otherwise(begin, same) == ""
        other = tiny.model.model_copy(update={"row_heads": heads})
        told = reads_otherwise(begin, other)
        assert told == f"model.row_heads {heads} (there {tiny.model.heads})"
        said: list[str] = []
        begun = TrainState(tiny.model_copy(update={"model": other}), torch.device("cpu"))
        _begin(begun, begin, said.append)
        assert said == [f"note: this network reads the weights at {begin} differently: {told}"]


def test_a_switch_that_is_newer_than_digests_differs_as_others_do(monkeypatch, untrained_weights):
    class Newer(ModelConfig):
        my_switch: Annotated[bool, LATER] = False

    off, on = Newer(), Newer(my_switch=True)
    weights = untrained_weights()
    for there, here, told, given in (
        (off, on, "model.my_switch True (there False)", "model.my_switch=false"),
        (on, off, "model.my_switch False (there True)", "model.my_switch=true"),
    ):
        network = SimpleNamespace(config=there)
        monkeypatch.setattr("trainer.start.load_model", lambda _, network=network: (network, {}))
        assert reads_otherwise(str(weights), here) == told
        assert settings_of_start(str(weights), here) == given


@pytest.mark.parametrize(
    ("override", "sentence"),
    [
        ("model.layers=3", r"its blocks\.2\..* has no place in this model of fewer blocks: the"),
        ("train.reveal=both", "its negative_token has no place in this model: the config's sect"),
    ],
    ids=["more blocks", "another token"],
)
def test_no_run_begins_from_a_network_that_has_more(override, sentence, tiny, tiny_yaml):
    more, cpu = load_config(tiny_yaml, [override]), torch.device("cpu")
    tensors = TrainState(more, cpu).tensors()
    with pytest.raises(InputError, match=sentence):
        TrainState(tiny, cpu).begin_from(tensors, 3)
    TrainState(more, cpu).begin_from(tensors, 3)
