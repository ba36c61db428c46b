"""The preview of plans with extensions, and of microbatches without an SCM."""

import numpy as np
import pytest

from prior_gen.factors import draw_architecture
from prior_gen.generator import generate_shards
from prior_gen.info import describe_shards
from prior_gen.preview import write_preview
from prior_gen.preview.curriculum import realised, rows_outside
from prior_gen.preview.sample import take_sample
from prior_gen.preview.tags import extension_counts, tag_counts
from puicl_config import load_config

pytestmark = pytest.mark.usefixtures("few_trees")


def test_extended_microbatches_lie_in_ranges_of_their_own(tiny_yaml, tmp_path):
    extended = ["share=0.5", "shallow=0.5", "eta=[3.0, 4.0]"]
    config = load_config(tiny_yaml, [f"prior.extensions.{setting}" for setting in extended])
    generate_shards(config, tmp_path / "shards", [1, 2], jobs=1)
    sample = take_sample(tmp_path / "shards", 0)
    assert {"extensions" in seen.tags for seen in sample.seen} == {True, False}
    eta, pi = rows_outside(sample)
    assert 0 <= eta < 1
    assert 0 <= pi <= 1


def test_extensions_are_counted_and_expected_with_what_they_exclude(
    tiny_yaml, tmp_path, unrendered
):
    """A design never gets `discrete`, and half of the extended microbatches are designs."""
    extended = ["share=0.6", "rule_labels=1.0", "factorial=0.5", "discrete=1.0"]
    config = load_config(tiny_yaml, [f"prior.extensions.{setting}" for setting in extended])
    folder = tmp_path / "shards"
    generate_shards(config, folder, [1, 2, 3], jobs=1)
    sample = take_sample(folder, 0)
    own = [one.tags["extensions"] for one in sample.seen if "extensions" in one.tags]
    counts = extension_counts(sample)
    assert counts.values == ("discrete", "rule_labels", "factorial")
    assert counts.counts == tuple(sum(name in one for one in own) for name in counts.values)
    seen, expected = (
        dict(zip(counts.values, n, strict=True)) for n in (counts.counts, counts.expected)
    )
    assert seen["rule_labels"] == expected["rule_labels"] == len(own)
    assert expected["discrete"] + expected["factorial"] == pytest.approx(len(own))
    assert 0.45 * len(own) < expected["factorial"] < 0.55 * len(own)
    numbers = write_preview(folder, tmp_path / "page", tasks=2)
    assert numbers["extensions"]["counts"] == counts.counts
    assert (tmp_path / "page/extensions.png").is_file()


def test_a_plan_without_extensions_has_no_picture_of_them(
    all_shards, tiny_yaml, tmp_path, unrendered
):
    assert extension_counts(take_sample(all_shards, 0)) is None
    assert write_preview(all_shards, tmp_path / "page", tasks=2)["extensions"] is None
    assert not (tmp_path / "page/extensions.png").exists()
    ranges = ["prior.extensions.share=1.0", "prior.extensions.n_features=[9, 11]"]
    generate_shards(load_config(tiny_yaml, ranges), tmp_path / "shards", [1], jobs=1)
    assert extension_counts(take_sample(tmp_path / "shards", 0)) is None


def test_microbatches_without_an_scm_are_told_as_what_they_are(tiny_yaml, tmp_path):
    """Their tags of an SCM mean nothing, and sizes are expected where extensions draw them."""
    extended = ["share=0.6", "shallow=0.5", "cluster_labels=0.5", "n_features=[9, 11]"]
    config = load_config(tiny_yaml, [f"prior.extensions.{setting}" for setting in extended])
    folder = tmp_path / "shards"
    generate_shards(config, folder, [1, 2, 3], jobs=1)
    sample = take_sample(folder, 0)
    clusters = [one for one in sample.seen if one.source == "cluster_labels"]
    models = [one for one in sample.seen if one.has_scm]
    own = [one for one in sample.seen if "extensions" in one.tags]
    assert clusters
    assert len(clusters) + len(models) == len(sample.seen)
    tags = {tag.name: tag for tag in tag_counts(sample)}
    d = dict(zip(tags["d"].values, tags["d"].expected, strict=True))
    assert [d[value] for value in (9, 10, 11)] == pytest.approx([len(own) / 3] * 3)
    assert sum(d.values()) == pytest.approx(len(sample.seen))
    assert sum(tags["source"].counts) == len(models) == pytest.approx(sum(tags["source"].expected))
    assert tags["source"].unit == "microbatches with an SCM"
    plain = {s: draw_architecture(config.prior, s)[0] for s in sample.stages}
    told = np.repeat(tags["L_g"].values, tags["L_g"].counts).tolist()
    assert sorted(told) == sorted(plain.values())
    stages = realised(sample)
    assert sum(stage.with_scm for stage in stages) == len(models)
    numbers = write_preview(folder, tmp_path / "page", tasks=6)
    assert "cluster_labels" in {task["source"] for task in numbers["difficulty"]["tasks"]}
    page = (tmp_path / "page" / "index.html").read_text()
    assert f"of the {len(models)} with an SCM in the sample" in page
    assert f"{len(models)} of them have a structural causal model" in page
    counted = describe_shards(folder)["tags"]["source"]
    assert sum(counted.values()) == len(models)


def test_a_folder_without_any_scm_has_a_page(tiny_yaml, tmp_path):
    extended = ["prior.extensions.share=1", "prior.extensions.cluster_labels=1"]
    generate_shards(load_config(tiny_yaml, extended), tmp_path / "shards", [1], jobs=1)
    numbers = write_preview(tmp_path / "shards", tmp_path / "page", tasks=2)
    assert [stage["causal_share"] for stage in numbers["curriculum"]] == [None]
    assert list(numbers["difficulty"]["by_source"]) == ["cluster_labels"]
    page = (tmp_path / "page" / "index.html").read_text()
    assert "No sampled microbatch has an SCM" in page
    assert "source cluster_labels; P = " in page
