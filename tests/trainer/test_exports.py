"""`puicl weights export`: which runs can be exported, and what is recorded of them."""

import json
import shutil

import pytest
from verify_command import verify

from prior_gen import generate_shards
from puicl_config import InputError
from puicl_model import load_model
from shard_io import slice_shards
from trainer.provenance import export_weights


def test_only_the_shards_of_the_run_are_recorded(reference_run, tiny, own_shards, tmp_path):
    out = tmp_path / "w.safetensors"
    generate_shards(tiny, tmp_path / "heldout", [1], split="heldout", jobs=1)
    with pytest.raises(InputError, match=r"not the shards the run was .* split is heldout"):
        export_weights(reference_run, tmp_path / "heldout", out)
    slice_shards(own_shards, "d >= 2", tmp_path / "slice")
    with pytest.raises(InputError, match="or what was sliced out of them, differ"):
        export_weights(reference_run, tmp_path / "slice", out)
    assert not out.exists()


def test_a_run_of_fewer_steps_than_are_recorded_is_exported_with_all_of_them(
    run_command, arguments, tiny_yaml, all_shards, tmp_path
):
    run, out = tmp_path / "run", tmp_path / "out.safetensors"
    run_command(*arguments(tiny_yaml, all_shards, run, "train.max_steps=2"))
    with (run / "metrics.jsonl").open("a") as file:
        file.write('{"step": 2, "seconds": 4.6}\n')
    export_weights(run, all_shards, out, unfinished=True)
    assert load_model(out)[1]["training_seconds"] == 5
    assert [line["step"] for line in load_model(out)[1]["recorded"]["ledger"]] == [0, 1]
    code, told = verify(out, "--replay")
    assert (code, "replay: 2 steps" in told) == (0, True), told


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


def test_a_run_whose_config_was_given_another_beginning_is_refused(
    reference_run, all_shards, tmp_path
):
    run, out = tmp_path / "run", tmp_path / "out.safetensors"
    shutil.copytree(reference_run, run)
    config = (run / "config.yaml").read_text()
    assert "init_from: null" in config
    (run / "config.yaml").write_text(config.replace("init_from: null", "init_from: default"))
    with pytest.raises(InputError, match="init_from=default, which its weights' lineage of 0 con"):
        export_weights(run, all_shards, out)
    (run / "config.yaml").write_text(config)
    card = json.loads((run / "model.json").read_text())
    (run / "model.json").write_text(json.dumps(card | {"lineage": [{"step": 18}]}))
    with pytest.raises(InputError, match="init_from=None, which its weights' lineage of 1 contra"):
        export_weights(run, all_shards, out)
    assert not out.exists()
