"""The preview: numbers that are those of the shards, and a page that needs nothing else."""

import base64
import errno
import json
import os
import re
import shutil
from types import SimpleNamespace

import numpy as np
import pytest

import prior_gen.preview.sample as sampling
from prior_gen.factors import draw_factors
from prior_gen.generator import generate_shards
from prior_gen.preview import write_preview
from prior_gen.preview.curriculum import rows_outside, wilson
from prior_gen.preview.difficulty import score_tasks
from prior_gen.preview.examples import first_components
from prior_gen.preview.sample import Seen, evenly, missing_in_words, ranges_in_words, take_sample
from prior_gen.preview.tags import extension_counts, tag_counts
from prior_gen.preview.write import collect_numbers
from puicl_config import InputError, load_config
from shard_io import PartId, ShardError, open_shards, slice_shards

CODE = "from prior_gen.cli import main; main()"
FIGURES = {"tasks", "pairs-1", "pairs-2", "curriculum", "difficulty", "tags"}


pytestmark = pytest.mark.usefixtures("few_trees")


@pytest.fixture(scope="module")
def page(all_shards, tmp_path_factory):
    out = tmp_path_factory.mktemp("preview") / "page"
    write_preview(all_shards, out, tasks=12)
    return out


def numbers_of(folder, tasks, seed=0):
    """What preview.json would hold, without a picture drawn."""
    sample = take_sample(folder, seed)
    numbers = collect_numbers(sample, score_tasks(sample, tasks, int), extension_counts(sample))
    return json.loads(json.dumps(numbers))


def contents(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def published_microbatches(folder):
    reader = open_shards(folder)
    for part in reader.published_parts():
        opened = reader.part(part)
        yield from (opened[position] for position in range(len(opened)))


def test_the_realised_curriculum_is_what_the_shards_say_counted_by_hand(all_shards, page):
    numbers = json.loads((page / "preview.json").read_text())
    assert [stage["stage"] for stage in numbers["curriculum"]] == [1, 2, 3, 4, 5]
    batches = list(published_microbatches(all_shards))
    assert numbers["microbatches_sampled"] == len(batches)
    for stage in numbers["curriculum"]:
        here = [batch for batch in batches if batch.tags["stage"] == stage["stage"]]
        eta = [batch.y.shape[1] / (batch.x.shape[1] - batch.y.shape[1]) for batch in here]
        pi = [1 - y.mean() for batch in here for y in batch.y]
        assert stage["tasks"] == len(pi)
        assert stage["causal_share"] == np.mean([batch.tags["causal"] for batch in here])
        for name, values in (("eta", eta), ("pi", pi)):
            found = stage[name]
            assert found["mean"] == pytest.approx(np.mean(values), abs=1e-12)
            assert (found["low"], found["high"]) == pytest.approx((min(values), max(values)))
            quartiles = np.percentile(values, [25, 50, 75])
            names = ("lower_quartile", "median", "upper_quartile")
            assert [found[key] for key in names] == pytest.approx(list(quartiles))
    assert 0 <= numbers["rows_outside_the_plan"]["eta"] < 1
    assert 0 <= numbers["rows_outside_the_plan"]["pi"] <= 1


@pytest.mark.parametrize(
    ("n_unlabeled", "negatives", "outside"),
    [
        (100, (50, 50), (0, 0)),
        *((96, (48,), (4, 0)), (104, (52,), (4, 0))),
        *((100, (50, 45), (0, 5)), (100, (57, 50), (0, 7))),
    ],
)
def test_rows_outside_the_plan_are_told_on_either_side(tiny, n_unlabeled, negatives, outside):
    """In the first stage eta is 1 and pi a half."""
    seen = Seen((1, 0, 0), {}, 100, n_unlabeled, negatives)
    assert rows_outside(SimpleNamespace(prior=tiny.prior, seen=(seen,))) == outside


def test_pi_is_taken_from_the_labels_and_not_from_the_tag(all_shards, monkeypatch):
    class Lying(sampling.Microbatch):
        def __init__(self, x, y, tags):
            super().__init__(x, np.zeros_like(y), tags)

    monkeypatch.setattr("shard_io.zarr_format.Microbatch", Lying)
    sample = take_sample(all_shards, seed=0)
    assert all(set(seen.negatives) == {seen.n_unlabeled} for seen in sample.seen)


def test_counts_of_tags_are_those_of_the_shards(all_shards, page):
    tags = json.loads((page / "preview.json").read_text())["tags"]
    batches = list(published_microbatches(all_shards))
    for name, key in (("d", "n_features"), ("P", "n_labeled"), ("source", "source")):
        drawn = [batch.tags[key] for batch in batches]
        assert tags[name]["counts"] == [drawn.count(value) for value in tags[name]["values"]]
        assert sum(tags[name]["counts"]) == sum(tags[name]["expected"]) == len(batches)
    assert sum(tags["L_g"]["counts"]) == sum(tags["h"]["counts"]) == 5


def test_a_stages_width_is_that_of_the_microbatches_that_did_not_raise_it(tiny_yaml):
    small = ("hidden_layers=[2, 2]", "hidden_width=[4, 4]", "n_features=[8, 8]")
    prior = load_config(tiny_yaml, [f"prior.{override}" for override in small]).prior
    drawn = [draw_factors(prior, 3, step, index).tags() for step in range(4) for index in range(4)]
    drawn.sort(key=lambda tags: -tags["hidden_width"])
    assert (drawn[0]["hidden_width"], drawn[-1]["hidden_width"]) == (9, 4)
    seen = tuple(Seen((3, 0, 0), tags, 10, 10, (5,)) for tags in drawn)
    widths = next(
        tag
        for tag in tag_counts(SimpleNamespace(prior=prior, seen=seen, stages=(3,)))
        if tag.name == "h"
    )
    assert (widths.values, widths.counts) == ((4,), (1,))


def test_a_folder_and_a_seed_give_the_same_bytes_of_every_file(all_shards, page, tmp_path):
    np.random.seed(7)  # noqa: NPY002 (global state must not matter, nor be moved)
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    write_preview(all_shards, tmp_path / "again", tasks=12)
    assert contents(tmp_path / "again") == contents(page)
    assert np.array_equal(before, np.random.get_state()[1])  # noqa: NPY002


def test_another_seed_looks_at_other_tasks(all_shards, page):
    other = numbers_of(all_shards, tasks=12, seed=1)
    ours = json.loads((page / "preview.json").read_text())
    assert other["difficulty"] != ours["difficulty"]
    assert other["curriculum"] == ours["curriculum"]  # all of a small folder is read


def test_the_page_holds_every_figure_and_asks_for_nothing_else(page):
    html = (page / "index.html").read_text(encoding="utf-8")
    inlined = {base64.b64decode(data) for data in re.findall(r'base64,([^"]+)"', html)}
    files = {path.stem: path.read_bytes() for path in page.glob("*.png")}
    assert set(files) == FIGURES
    assert inlined == set(files.values())
    assert all(png.startswith(b"\x89PNG") for png in inlined)
    assert html.count("<figcaption>") == len(FIGURES)
    without_data = re.sub(r"base64,[^\"]+", "", html)
    assert not re.search(r"https?:|file:|url\(|<link|<script|@import|srcset", without_data)
    assert set(re.findall(r'src="([^"]*)"', without_data)) == {"data:image/png;"}
    assert "href" not in without_data


def test_the_page_names_plan_stages_sample_and_seed(all_shards, page):
    html = (page / "index.html").read_text(encoding="utf-8")
    assert "Slice" not in html
    assert open_shards(all_shards).manifest.plan_digest in html
    assert "<dt>Stages in the folder</dt><dd>1-5</dd>" in html
    assert "72 microbatches, 216 tasks; 12 of them scored" in html
    assert "<dt>Seed of the sampling</dt><dd>0</dd>" in html
    assert "are missing" not in html


@pytest.mark.usefixtures("unrendered")
def test_missing_parts_are_named_and_the_rest_is_drawn(own_shards, tmp_path):
    for name in ("stage-0002-part-001", "stage-0004-part-000", "stage-0004-part-002"):
        (own_shards / "entries" / f"{name}.json").unlink()
    for number in range(3):
        (own_shards / "entries" / f"stage-0003-part-{number:03d}.json").unlink()
    numbers = write_preview(own_shards, tmp_path / "page", tasks=4)
    assert numbers["missing_parts"] == [
        "stage-0002-part-001",
        "stage-0004-part-000",
        "stage-0004-part-002",
    ]
    assert numbers["stages"] == [1, 2, 4, 5]
    html = (tmp_path / "page" / "index.html").read_text()
    assert "stage 2: part 1; stage 4: parts 0, 2" in html


@pytest.mark.usefixtures("unrendered")
def test_one_part_of_one_stage_is_enough(own_shards, tmp_path):
    for entry in (own_shards / "entries").iterdir():
        if entry.name != "stage-0001-part-001.json":
            entry.unlink()
    numbers = write_preview(own_shards, tmp_path / "page", tasks=3)
    assert (numbers["stages_sampled"], numbers["tasks_scored"]) == ([1], 3)
    assert (tmp_path / "page" / "index.html").exists()


def test_webdataset_shards_give_the_same_numbers(tiny_yaml, page, tmp_path):
    config = load_config(tiny_yaml, ["shards.format=webdataset"])
    generate_shards(config, tmp_path / "shards", range(1, 6), jobs=1)
    numbers = numbers_of(tmp_path / "shards", tasks=12)
    assert numbers == json.loads((page / "preview.json").read_text())


def test_a_large_folder_is_sampled_within_bounds_and_evenly(all_shards, monkeypatch):
    monkeypatch.setattr(sampling, "MAX_MICROBATCHES", 10)
    some = take_sample(all_shards, seed=0)
    assert len(some.seen) == 10
    assert some.stages == (1, 2, 3, 4, 5)
    assert take_sample(all_shards, seed=0).seen == some.seen
    monkeypatch.setattr(sampling, "MAX_BYTES", 1)
    assert take_sample(all_shards, seed=0).parts_opened == 1
    entry = open_shards(all_shards).entry(PartId(1, 0))
    monkeypatch.setattr(sampling, "MAX_BYTES", 3 * entry.n_bytes)
    assert take_sample(all_shards, seed=0).stages in {(1, 5), (1, 3, 5), (1, 2, 4, 5)}


def test_what_is_missing_of_stages_that_are_not_sampled_is_named_too(own_shards, monkeypatch):
    (own_shards / PartId(2, 1).entry_path).unlink()
    monkeypatch.setattr(sampling, "MAX_BYTES", 1)
    sample = take_sample(own_shards, 0)
    assert (sample.stages, sample.missing) == ((5,), (PartId(2, 1),))


def test_a_tasks_auc_does_not_depend_on_how_many_others_are_scored(all_shards, page):
    many = numbers_of(all_shards, tasks=30)["difficulty"]["tasks"]
    auc = {(*task["address"], task["task"]): task["auc"] for task in many}
    few = json.loads((page / "preview.json").read_text())["difficulty"]["tasks"]
    shared = [task for task in few if (*task["address"], task["task"]) in auc]
    assert shared
    assert all(auc[*task["address"], task["task"]] == task["auc"] for task in shared)


def test_principal_components_are_ordered_and_their_signs_are_fixed():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 3)) * [1.0, 5.0, 2.0]
    scores = first_components(x)
    assert np.corrcoef(scores[:, 0], x[:, 1])[0, 1] > 0.99
    assert np.corrcoef(scores[:, 1], x[:, 2])[0, 1] > 0.95
    assert first_components(x[:, :1]).shape == (200, 2)


def test_ranges_and_intervals_in_words_and_numbers():
    assert ranges_in_words([1, 2, 3, 7]) == "1-3, 7"
    assert ranges_in_words([1, 4, 7, 10, 11, 12, 20]) == "1-10 by 3, 11-12, 20"
    assert ranges_in_words([]) == ""
    assert evenly([1, 2, 3, 4, 5], 3) == [1, 3, 5]
    parts = [PartId(stage, number) for stage in (1, 2, 9) for number in (0, 1)]
    assert missing_in_words([*parts, PartId(4, 3)]) == "stages 1-2, 9: parts 0-1; stage 4: part 3"
    assert wilson(0, 25)[0] == 0
    assert wilson(5, 10) == pytest.approx((0.2366, 0.7634), abs=1e-4)


def test_a_damaged_part_is_refused_by_name_and_nothing_is_written(own_shards, tmp_path):
    victim = next((own_shards / "parts").rglob("c/0"))
    victim.write_bytes(victim.read_bytes()[:-1] + b"\0")
    with pytest.raises(ShardError, match="stage-"):
        write_preview(own_shards, tmp_path / "page", tasks=2)
    assert not (tmp_path / "page").exists()


def test_pictures_are_never_put_among_the_shards(own_shards):
    for out in (own_shards, own_shards / "pictures"):
        with pytest.raises(InputError, match="lies in the folder of shards"):
            write_preview(own_shards, out)
    assert not (own_shards / "pictures").exists()


@pytest.mark.usefixtures("unrendered")
def test_a_place_that_refuses_pictures_is_told(all_shards, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("prior_gen.preview.write.write_atomically", full)
    with pytest.raises(InputError, match="cannot be used: no space left on device"):
        write_preview(all_shards, tmp_path / "page", tasks=1)
    monkeypatch.setattr(os, "access", lambda *_: False)
    monkeypatch.setattr("prior_gen.preview.write.take_sample", None)  # nothing is drawn for it
    with pytest.raises(InputError, match=f"--out {tmp_path}/a/b: {tmp_path} cannot be written to"):
        write_preview(all_shards, tmp_path / "a" / "b")


def test_bad_input_is_one_sentence_and_leaves_nothing_behind(own_shards, refusals, tmp_path):
    (tmp_path / "a-file").write_text("")
    (tmp_path / "a-link").symlink_to(tmp_path / "gone")
    (tmp_path / "empty").mkdir()
    shutil.copytree(own_shards, tmp_path / "begun")
    shutil.rmtree(tmp_path / "begun" / "entries")
    before = sorted(tmp_path.rglob("*"))
    sentences = {
        ("nowhere",): "nowhere is not a folder of shards",
        ("a-file",): "a-file is not a folder of shards",
        ("empty",): "empty holds no shards: there is no manifest.json",
        ("begun",): "begun holds a plan but no finished part",
        ("shards", "--out", "a-file/below"): "a-file is a file",
        ("shards", "--out", "a-link"): "--out a-link is a file, or a link to nothing; give",
        ("shards", "--out", "a-file"): "--out a-file is a file, or a link to nothing",
    }
    told = refusals("prior_gen.cli", *(("preview", *case) for case in sentences), cwd=tmp_path)
    for sentence, said in zip(sentences.values(), told, strict=True):
        assert sentence in said
    assert sorted(tmp_path.rglob("*")) == before


def test_the_command_draws_the_page_and_says_where(all_shards, run_command, tmp_path):
    done = run_command(
        "-c", CODE, "preview", all_shards, "--out", "page", "--tasks", "2", cwd=tmp_path
    )
    assert done.stdout.startswith("page/index.html: 5 stages of plan ")
    assert (tmp_path / "page" / "index.html").exists()


@pytest.mark.usefixtures("unrendered")
def test_of_a_slice_the_survivors_alone_are_looked_at(all_shards, tmp_path):
    folder = tmp_path / "slice"
    slice_shards(all_shards, "d <= 3", folder)
    batches = list(published_microbatches(all_shards))
    kept = [batch for batch in batches if batch.tags["n_features"] <= 3]
    assert len(kept) < len(batches)
    sample = take_sample(folder, 0)
    assert [seen.address for seen in sample.seen] == [batch.address for batch in kept]
    for seen, batch in zip(sample.seen, kept, strict=True):
        assert sample.read(seen).address == seen.address
        np.testing.assert_array_equal(sample.read(seen).x, batch.x)
    assert write_preview(folder, tmp_path / "page", tasks=4)["slice"] == "d <= 3"
    page = (tmp_path / "page/index.html").read_text(encoding="utf-8")
    assert "<dt>Slice</dt><dd>d &lt;= 3; what is expected is of the whole plan</dd>" in page
