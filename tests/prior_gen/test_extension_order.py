"""In which order a task gets its extensions, and what each of them reads."""

from types import SimpleNamespace

import numpy as np
import pytest
from extended import config, extended_by, microbatches, with_labels

from prior_gen.extensions import classes, labeling, noise, pool, task, trees
from prior_gen.extensions.censored import censor_columns
from prior_gen.extensions.propose import accepted_classes
from prior_gen.extensions.warped import warp_columns
from prior_gen.standardization import standardize


def test_rows_are_grouped_before_they_are_binned():
    batches = microbatches(12, grouped=1.0, discrete=1.0)
    for batch, tag in extended_by("discrete", batches):
        for task_ in batch.x:
            for column, levels in zip(task_.T, tag["levels"], strict=True):
                assert not levels or len(np.unique(column)) <= levels


def test_measurements_are_warped_before_what_is_beyond_their_limits_is_lost():
    """A warp of a column that is a few values would leave that few: orders differ in the bits."""
    prior = config(warped=1.0).prior
    chosen = {"warped": {"warps": [["exp", 1.0, 0.0]]}, "censored": {"shares": [0.6]}}
    x = np.random.default_rng(0).standard_normal((300, 1)).astype(np.float32)
    seen, _ = pool.observed(SimpleNamespace(chosen=chosen, prior=prior), x)
    bent = standardize(warp_columns(chosen["warped"], standardize(x, 20.0), portable=False), 20.0)
    expected = standardize(censor_columns(chosen["censored"], bent.astype(np.float32)), 20.0)
    np.testing.assert_array_equal(seen, expected)


def test_the_pool_of_columns_labels_is_three_times_the_task():
    seen = []

    def spy(rng, counts, propose):
        seen.append((len(propose(0)[0]), counts.positive + counts.negative))
        return accepted_classes(rng, counts, propose)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trees, "accepted_classes", spy)
        microbatches(2, tree_labels=1.0)
    assert seen
    assert all(pool == 3 * rows for pool, rows in seen)


def test_noise_near_the_border_is_near_the_one_that_classes_were_cut_at():
    seen = []

    def spy(rng, parameters, negative, score):
        seen.append((negative, score))
        return noise.flipped_rows(rng, parameters, negative, score)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(classes, "flipped_rows", spy)
        microbatches(4, label_noise=1.0, soft_border=1.0, softness=(2.0, 2.0))
    assert all(score[negative].min() >= score[~negative].max() for negative, score in seen)


def test_labelling_reads_the_score_itself_not_its_noisy_border():
    seen = []

    def spy(rng, parameters, x, score):
        seen.append(score)
        return labeling.labeling_column(rng, parameters, x, score)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(task, "labeling_column", spy)
        for softness in (1e-9, 2.0):
            microbatches(4, sar=1.0, soft_border=1.0, softness=(softness, softness))
    hard, soft = np.split(np.array(seen, dtype=object), 2)
    for ours, theirs in zip(hard, soft, strict=True):
        np.testing.assert_array_equal(ours, theirs)
        # It is in standard deviations, which the noise is added to where most rows are alike.
        assert ours.std() == pytest.approx(1, abs=0.2)


def test_the_common_size_is_not_read_by_rules_and_trees():
    settings = {"rule_labels": 0.5, "tree_labels": 0.5, "independent": 0.5}
    plain, sized = (microbatches(8, proportional=p, **settings) for p in (0.0, 1.0))
    for before, after in zip(plain, sized, strict=True):
        np.testing.assert_array_equal(before.y, after.y)


def test_copies_of_a_column_with_a_common_size_have_it_too():
    batches = microbatches(40, duplicated=1.0, proportional=1.0)
    seen = 0
    for batch, tag in extended_by("duplicated", batches):
        sized = batch.tags["extensions"].get("proportional", {"columns": []})["columns"]
        for original, copy in tag["pairs"]:
            if not tag["noise"] and original in sized:
                np.testing.assert_array_equal(batch.x[:, :, original], batch.x[:, :, copy])
                seen += 1
            assert copy not in sized
    assert seen > 3


def test_rows_of_a_design_are_taken_from_all_of_its_list():
    """It stands in order: whoever takes the first rows of a class takes one corner of it."""
    firsts = {"labelled": [], "negative": []}
    settings = {"factorial": 1.0, "factorial_size": (8.0, 8.0), "rule_labels": 1.0}
    settings |= {"levels": (2, 2), "rule_kinds": ("parity",), "rule_arity": (2, 2)}
    for batch, tag in extended_by(
        "rule_labels", microbatches(12, {"n_features": (9, 9)}, **settings)
    ):
        for (x, y), read in zip(with_labels(batch), tag["columns"], strict=True):
            column = x[:, min({*range(9)} - {*read})]  # says nothing of the class
            firsts["labelled"].append((column[: batch.n_labeled] > 0).mean())
            firsts["negative"].append((column[y == 0] > 0).mean())
    for shares in firsts.values():
        assert np.mean(np.abs(np.array(shares) - 0.5)) < 0.12
