"""What scripts of `benchmarks/` cannot work with is told in one sentence, before they measure."""

import gzip
import json

import pandas as pd
import pytest
from real_tables import measured, read_tables, table_names
from weak_spots import sources

from prior_gen import generate_shards
from puicl_config import InputError


@pytest.fixture
def tables(tmp_path):
    """A folder of two tables, of one of which the file is missing."""
    folder = tmp_path / "tables"
    folder.mkdir()
    facts = {"positive": "yes"}
    (folder / "index.json").write_text(json.dumps({"there": facts, "gone": facts}))
    rows = pd.DataFrame({"a": range(8), "target": ["yes", "no"] * 4})
    rows.to_csv(folder / "there.csv.gz", index=False)
    return folder


def test_a_folder_says_what_it_lacks_and_may_hold_plain_or_compressed_files(tables, tmp_path):
    with pytest.raises(InputError, match=r"no folder of tables: there is no index\.json"):
        table_names(tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"has no table 'other'; it has gone, there"):
        table_names(tables, ["other"])
    with pytest.raises(InputError, match=r"has no gone\.csv or gone\.csv\.gz, which its index"):
        table_names(tables)
    ((name, x, positive),) = read_tables(tables, ["there"])
    assert (name, list(x), positive.sum()) == ("there", ["a"], 4)
    plain = gzip.decompress((tables / "there.csv.gz").read_bytes())
    (tables / "there.csv.gz").unlink()
    (tables / "there.csv").write_bytes(plain)
    ((_, same, _),) = read_tables(tables, ["there"])
    assert same.equals(x)


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"", "cannot be read"), (b"\xff\xfe\xfd", "cannot be read"), (b"a,b\n1,2\n", "has columns")],
)
def test_figures_of_another_file_are_refused(content, said, tmp_path):
    out = tmp_path / "figures.csv"
    out.write_bytes(content)
    with pytest.raises(InputError, match=said):
        measured(out, ["table"], ["AUC"], [("there",)], lambda name: [(0.5,)])
    assert out.read_bytes() == content


def test_networks_are_not_judged_on_tasks_that_they_may_have_seen(tiny, tmp_path):
    for split in ("train", "heldout"):
        generate_shards(tiny, tmp_path / split, [1], split=split, jobs=1)
    assert next(sources(str(tmp_path / "heldout")))[0] == "the paper's prior"
    with pytest.raises(InputError, match="holds the split 'train', which networks are trained on"):
        next(sources(str(tmp_path / "train")))


def test_figures_are_not_measured_where_they_cannot_be_written(tmp_path):
    asked = []
    for out in (tmp_path / "missing" / "figures.csv", tmp_path):
        with pytest.raises(InputError, match=r"there is no folder|is a folder; give a file"):
            measured(out, ["table"], ["AUC"], [("there",)], asked.append)
    assert not asked


@pytest.mark.parametrize(
    ("script", "arguments"),
    [
        ("blend_weights", ("--data",)),
        ("compare_networks", ("--data",)),
        ("ensembling", ("--data",)),
        ("made_wide", ("--data",)),
        ("wide_tables", ("--data",)),
        ("how_hard", ("--shards", ".", "--data")),
        ("prior_extensions", ("--init", "default", "--out", "never", "--data")),
        ("calibrate_class_prior", ("--shards",)),
        ("heldout_networks", ("--shards",)),
        ("weak_spots", ("--shards",)),
        ("wide_tables", ("--shards",)),
        ("learning_curve", ("--data",)),
        ("compare_networks", ("--data", ".", "--models")),
        ("made_wide", ("--data", ".", "--model")),
        ("wide_tables", ("--data", ".", "--model")),
        ("bands_as_text", ("--data",)),
        ("context_shapes", ("--data",)),
        ("few_labeled", ("--data",)),
        ("mixtures_of_passes", ("standard 1", "--passes", "never", "--data")),
        ("precisions", ("--data",)),
        ("two_codings", ("--data",)),
        ("rare_shares", ("--data",)),
        ("context_shapes", ("--data", ".", "--model")),
        ("count_designs", ("--models", "default")),
        ("few_labeled", ("--data", ".", "--models")),
        ("inference_speed", ("--model",)),
        ("large_table", ("--model",)),
        ("many_tables", ("--model",)),
        ("mixtures_of_passes", ("standard 1", "--passes", "never", "--data", ".", "--model")),
        ("noisy_sums", ("--models",)),
        ("other_machine", ("--against",)),
        ("overlapping_classes", ("--model",)),
        ("rare_shares", ("--data", ".", "--model")),
        ("separate_classes", ("--models",)),
        ("table_kinds", ("--models",)),
        ("trainer_speed", ("--config",)),
    ],
)
def test_what_is_missing_is_one_sentence(script, arguments, refused, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = refused(script, *arguments, tmp_path / "nowhere.safetensors")
    assert said.startswith("error: ")
    assert "nowhere" in said
    assert said.count("\n") == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("script", "arguments"),
    [
        *[("context_shapes", ()), ("few_labeled", ()), ("precisions", ()), ("rare_shares", ())],
        ("mixtures_of_passes", ("standard 1", "--passes", "never")),
    ],
)
def test_an_empty_folder_is_one_sentence(script, arguments, refused, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = refused(script, *arguments, "--data", tmp_path)
    assert said.startswith(f"error: {tmp_path} ")
    assert said.count("\n") == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("script", ["ablations", "recipes"])
def test_runs_are_not_trained_where_a_file_lies(script, refused, tmp_path):
    (tmp_path / "file").touch()
    assert f"--out {tmp_path}/file/runs cannot be" in refused(
        script, "--out", tmp_path / "file/runs"
    )


@pytest.mark.parametrize("script", ["guide_pictures", "prior_pictures", "learning_curve"])
def test_pictures_are_not_drawn_where_a_file_lies(script, refused, tmp_path):
    (tmp_path / "file").touch()
    out = tmp_path / "file" / "pictures" / "picture.png"
    assert f"{tmp_path}/file" in refused(script, "--out", out)


@pytest.mark.parametrize("script", ["split_heads", "insert_blocks"])
def test_a_network_is_not_changed_where_it_cannot_be_written(script, refused, tmp_path):
    out = tmp_path / "missing" / "model.safetensors"
    assert "there is no folder" in refused(script, "--shards", tmp_path, "--out", out)
