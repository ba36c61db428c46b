"""The loss on held-out tasks, whoever computes it."""

import numpy as np
import torch

from prior_gen import generate_shards
from puicl_config import load_config
from trainer.cli import _resolve
from trainer.heldout import HeldoutSet, auc
from trainer.state import TrainState
from trainer.world import World

CPU = torch.device("cpu")


def test_heldout_figures_do_not_depend_on_the_number_of_processes(
    tiny_yaml, tiny, tmp_path, monkeypatch
):
    generate_shards(tiny, tmp_path, [2], split="heldout", jobs=1)
    options = [f"train.heldout={tmp_path}", "train.heldout_microbatches=5"]
    config = _resolve(load_config(tiny_yaml, options), "cpu")
    average = TrainState(config, CPU).ema
    sent = []

    def all_gather(gathered, rows):  # the second process first, then the first one with its rows
        sent.append(rows.clone())
        for place, each in zip(gathered, reversed(sent), strict=False):
            place.copy_(each)

    monkeypatch.setattr("trainer.world.dist.all_gather", all_gather)
    alone, _, shared = (
        HeldoutSet(config, World(rank, size, CPU)).evaluate(average)
        for rank, size in ((0, 1), (1, 2), (0, 2))
    )
    assert shared == alone


def test_the_auc_of_float32_scores_is_exact():
    rng = np.random.default_rng(0)
    for n in (7, 37, 5000):
        y = (np.arange(n) % 3 == 0).astype(np.uint8)
        score = rng.normal(size=n).astype(np.float32).round(1)  # some are equal
        above = score[y == 1][:, None] - score[y == 0]
        expected = float(np.mean((above > 0) + 0.5 * (above == 0)))
        assert abs(auc(score, y) - expected) < 1e-14
