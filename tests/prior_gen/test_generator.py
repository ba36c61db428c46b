"""The parallel generator and its command: the same bytes whoever makes them, or a clear no."""

import shutil
from collections import namedtuple
from dataclasses import replace

import pytest
from folders import folder_bytes

import prior_gen.generator
from prior_gen.generator import generate_shards, write_part
from prior_gen.stages import parse_stages
from puicl_config import InputError, PriorConfig, load_config
from shard_io import PartId, ShardError, open_shards, stray_files, verify_part

CODE = "from prior_gen.cli import main; main()"


@pytest.mark.parametrize("workers", [2, pytest.param(7, marks=pytest.mark.slow)])
def test_any_number_of_workers_writes_the_same_bytes_as_one(tiny, all_shards, tmp_path, workers):
    generate_shards(tiny, tmp_path / "many", range(1, 6), jobs=workers)
    assert folder_bytes(tmp_path / "many") == folder_bytes(all_shards)


def test_growing_a_folder_in_any_order_gives_the_same_bytes(tiny, all_shards, tmp_path):
    for stages in ([5], [2, 3], [1, 2], [4]):
        generate_shards(tiny, tmp_path / "grown", stages, jobs=1)
    assert folder_bytes(tmp_path / "grown") == folder_bytes(all_shards)


def test_what_is_published_is_not_made_again(tiny, own_shards):
    result = generate_shards(tiny, own_shards, range(1, 6), jobs=1)
    assert (len(result.written), result.skipped) == (0, 15)


def test_generated_folders_are_whole_and_name_no_person_and_no_time(tiny, all_shards):
    reader = open_shards(all_shards)
    assert all(verify_part(all_shards, part) is None for part in reader.published_parts())
    assert list(stray_files(all_shards)) == []
    text = (all_shards / "manifest.json").read_text()
    assert "time" not in text
    assert "host" not in text


def test_another_plan_is_refused_and_nothing_is_changed(tiny_yaml, own_shards):
    before = folder_bytes(own_shards)
    for override, sentence in (
        ("prior.seed=1", "seed is 0 there, 1 wanted"),
        ("shards.parts_per_stage=2", "shards.parts_per_stage is 3 there, 2 wanted"),
        ("prior.n_features=[2, 5]", r"n_features is \[2, 4\] there, \[2, 5\] wanted"),
    ):
        with pytest.raises(ShardError, match=sentence):
            generate_shards(load_config(tiny_yaml, [override]), own_shards, [1], jobs=1)
    with pytest.raises(ShardError, match="split is train there, heldout wanted"):
        generate_shards(load_config(tiny_yaml), own_shards, [1], split="heldout", jobs=1)
    assert folder_bytes(own_shards) == before


def test_other_shards_in_a_folder_of_their_own_do_not_matter(tiny, own_shards):
    folder = own_shards.parent / "shards_of_many"
    folder.mkdir()
    own_shards.rename(folder / "demo")
    before = folder_bytes(folder / "demo")
    assert len(generate_shards(tiny, folder, [1], jobs=1).written) == 3
    assert [*stray_files(folder)] == []
    assert folder_bytes(folder / "demo") == before
    (folder / "parts" / "manifest.json").write_text("{}")
    (folder / "notes.txt").write_text("x")
    assert [line.split(" belongs")[0] for line in stray_files(folder)] == [
        str(folder / "notes.txt"),
        str(folder / "parts" / "manifest.json"),
    ]


@pytest.mark.parametrize("split", ["train", "heldout"])
def test_parts_without_a_manifest_are_of_no_plan(tiny_yaml, own_shards, split):
    (own_shards / "manifest.json").unlink()
    before = folder_bytes(own_shards)
    with pytest.raises(ShardError, match=r"holds parts \(.*\) and no manifest: rebuild it with"):
        generate_shards(load_config(tiny_yaml), own_shards, [1], split=split, jobs=1)
    assert folder_bytes(own_shards) == before


def test_a_folder_with_other_files_is_refused_but_a_readme_is_welcome(tiny, tmp_path):
    (tmp_path / "thesis.tex").write_text("x")
    with pytest.raises(ShardError, match=r"holds other files \(thesis.tex\) and no manifest"):
        generate_shards(tiny, tmp_path, [1], jobs=1)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
    (tmp_path / "thesis.tex").rename(tmp_path / "README.md")
    assert len(generate_shards(tiny, tmp_path, [1], jobs=1).written) == 3


def test_a_machine_that_makes_other_bits_refuses_to_write_and_says_what_differs(
    tiny, own_shards, monkeypatch
):
    shutil.rmtree(own_shards / "entries")
    monkeypatch.setattr(prior_gen.generator, "canary_digest", lambda prior: "other bits")
    here = {**prior_gen.generator.software(), "numpy": "0.1"}
    monkeypatch.setattr(prior_gen.generator, "software", lambda: here)
    prior_gen.generator._canary_here.cache_clear()
    with pytest.raises(ShardError, match=r"different bits .*numpy is 0.1 here"):
        generate_shards(tiny, own_shards, [1], jobs=1)
    monkeypatch.undo()
    prior_gen.generator._canary_here.cache_clear()
    assert open_shards(own_shards).published_parts() == []


def test_a_machine_that_sums_small_products_in_another_order_refuses_to_write(
    tiny, own_shards, monkeypatch
):
    """The canary's two tasks are large ones."""
    product = prior_gen.scm.multiply_rows

    def otherwise(x, weight, portable):
        if x.size * len(weight) < 2**14:
            return x[:, ::-1] @ weight[:, ::-1].T
        return product(x, weight, portable)

    shutil.rmtree(own_shards / "entries")
    assert generate_shards(tiny, own_shards, [1], jobs=1).skipped == 0
    here = prior_gen.generator._tasks_here
    there = here(tiny.prior)
    here.cache_clear()
    monkeypatch.setattr(prior_gen.scm, "multiply_rows", otherwise)
    assert here(tiny.prior) != there
    with pytest.raises(ShardError, match=r"different bits .*the recorded software is the same"):
        generate_shards(tiny, own_shards, [2], jobs=1)
    manifest = open_shards(own_shards).manifest
    software = {name: what for name, what in manifest.software.items() if name != "sample"}
    # The manifest of an older version says nothing of it.
    prior_gen.generator.check_canary(replace(manifest, software=software))
    here.cache_clear()


def test_a_worker_on_a_machine_that_makes_other_bits_writes_no_part(own_shards, tmp_path):
    manifest = replace(open_shards(own_shards).manifest, canary="0" * 64)
    with pytest.raises(ShardError, match="this machine produces different bits"):
        write_part(manifest, tmp_path / "new", PartId(1, 0))
    assert not (tmp_path / "new").exists()


def test_too_little_room_is_told_before_anything_is_generated(tiny, tmp_path, monkeypatch):
    usage = namedtuple("usage", "total used free")(100, 99, 1)
    monkeypatch.setattr(prior_gen.generator.shutil, "disk_usage", lambda path: usage)
    with pytest.raises(ShardError, match=r"need about .* and the disk of .* has .* free"):
        generate_shards(tiny, tmp_path / "shards", [1], jobs=1)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "stages"),
    [("7", [7]), ("1-3", [1, 2, 3]), ("3,1-2,2", [1, 2, 3]), ("100-102", [100, 101, 102])],
)
def test_stage_ranges_are_read(text, stages):
    assert parse_stages(text, PriorConfig()) == stages


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("5-3", "stage 5 lies above 3; did you mean 3-5"),
        ("0-3", "the plan has stages 1-134"),
        ("1-135", "the plan has stages 1-134"),
        ("one", "'one' is neither a stage nor a range"),
        ("", "'' is neither a stage nor a range"),
        ("1-", "neither a stage nor a range"),
    ],
)
def test_a_bad_stage_range_is_refused(text, sentence):
    with pytest.raises(InputError, match=sentence):
        parse_stages(text, PriorConfig())


def test_bad_input_to_the_command_is_one_sentence_and_writes_nothing(tiny_yaml, refusals, tmp_path):
    (tmp_path / "a-file").write_text("")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "manifest.json").write_text("{}")
    shards, tiny = ("--out", "shards"), ("--config", tiny_yaml)
    sentences = {
        ("--stages", "5-3", *shards, *tiny): "stage 5 lies above 3",
        ("--stages", "1", "--set", "prior.sigma_int=1", *shards, *tiny): (
            "did you mean prior.sigma_init?"
        ),
        ("--stages", "1", *shards, *tiny, "prior.seed=7"): (
            "prior.seed=7 is not a command; to override the config, give --set prior.seed=7"
        ),
        ("--stages", "1", "--config", "nowhere.yaml", *shards): "no config 'nowhere.yaml'",
        # Without any argument the command shows its help.
        ("--jobs", "1", *shards, *tiny): "give --stages 1-3",
        ("--tail", "--set", "prior.tail_steps=0", *shards, *tiny): "this plan has no tail",
        ("--stages", "1", "--out", "a-file", *tiny): (
            "is a file, or a link to nothing; give a folder"
        ),
        ("--stages", "", *shards, *tiny): "'' is neither a stage nor a range",
        ("--stages", "", "--tail", *shards, *tiny): "'' is neither a stage nor a range",
        ("--stages", "1", "--config", "other", *shards): (
            "a folder of shards: give other/manifest.json"
        ),
    }
    told = refusals("prior_gen.cli", *sentences, cwd=tmp_path)
    for sentence, said in zip(sentences.values(), told, strict=True):
        assert sentence in said
    assert not (tmp_path / "shards").exists()


def test_info_and_dry_run_tell_what_is_there_and_what_would_be(
    tiny_yaml, all_shards, run_command, tmp_path
):
    import json

    done = run_command("-c", CODE, "info", all_shards, "--json")
    facts = json.loads(done.stdout)
    assert facts["stages"] == [1, 2, 3, 4, 5]
    assert (facts["parts"], facts["microbatches"], facts["tasks"]) == (15, 72, 216)
    assert facts["missing_parts"] == []
    assert sum(facts["tags"]["causal"].values()) == 72
    done = run_command(
        "-c", CODE, "--config", tiny_yaml, "--stages", "1-5", "--dry-run", cwd=tmp_path
    )
    assert "15 parts, 72 microbatches, 216 tasks" in done.stdout
    assert not (tmp_path / "shards").exists()


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["dask", "ray"])
def test_a_cluster_of_worker_processes_writes_the_same_bytes(tiny, all_shards, tmp_path, backend):
    pytest.importorskip({"dask": "distributed"}.get(backend, backend))
    generate_shards(tiny, tmp_path / "far", range(1, 6), jobs=2, backend=backend)
    assert folder_bytes(tmp_path / "far") == folder_bytes(all_shards)


@pytest.mark.parametrize("other", ["format=webdataset", "parts_per_stage=2", "x_dtype=float32"])
def test_a_folder_that_is_stored_otherwise_is_refused(tiny_yaml, own_shards, other):
    before = folder_bytes(own_shards)
    config = load_config(tiny_yaml, [f"shards.{other}"])
    key, value = other.split("=")
    with pytest.raises(ShardError, match=rf"shards\.{key} is \w+ there, {value} wanted"):
        generate_shards(config, own_shards, [1], jobs=1)
    assert folder_bytes(own_shards) == before
