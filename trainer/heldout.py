"""Loss, accuracy and AUC of the EMA on a fixed set of tasks that no run ever trains on."""

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from puicl_config import Config
from puicl_model import PUICL
from puicl_model.precision import computed_in
from shard_io import NoShards, PartId, ShardError, ShardReader, open_shards
from trainer.loader import Batch, as_batch
from trainer.world import World


@dataclass(frozen=True)
class HeldoutFigures:
    """Means over tasks: cross-entropy, accuracy at threshold 1/2, AUC, all of unlabelled rows."""

    loss: float
    accuracy: float
    auc: float


class HeldoutSet:
    """`train.heldout_microbatches` microbatches, evenly spaced in the folder `train.heldout`.

    The processes share the work. The set has a network of its own, so that evaluation does not
    touch the one in training.
    """

    def __init__(self, config: Config, world: World):
        """Raises `ShardError` if `train.heldout` holds no held-out shards."""
        train = config.train
        assert train.heldout is not None, "made where there is one"
        # Suggest one stage, which is enough tasks: the curriculum's last, as wide as the tail.
        how = (
            "make held-out tasks with, say, `prior-gen --config CONFIG --split heldout --stages "
            f"{config.prior.stages} --out FOLDER`"
        )
        try:
            reader = open_shards(train.heldout)
        except NoShards as error:
            raise ShardError(f"train.heldout: {error}; {how}") from None
        split = reader.manifest.split
        if split != "heldout":
            raise ShardError(f"train.heldout is {reader.folder}, whose split is {split}; {how}")
        places = [
            (part, position)
            for part in reader.published_parts()
            for position in reader.positions(part)
        ]
        if not places:
            raise ShardError(f"train.heldout: {reader.folder} holds no parts yet")
        count = min(train.heldout_microbatches, len(places))
        chosen = [places[number * len(places) // count] for number in range(count)]
        self.digest = _digest(reader, chosen)
        self._world, self._train, self._count = world, train, count
        self._mine = [_batch_at(reader, *chosen[number]) for number in world.mine(count)]
        self._model = PUICL(config.model).to(world.device).eval().requires_grad_(False)
        self._model.precision = computed_in(train.precision, world.device)

    def evaluate(
        self, weights: dict[str, Tensor], broken_off: Callable[[], bool] = lambda: False
    ) -> HeldoutFigures | None:
        """Figures of `weights` (by parameter name); every process must call this together.

        Returns None on all processes if `broken_off` becomes true on one before it has finished.
        """
        with torch.no_grad():
            for name, parameter in self._model.named_parameters():
                parameter.copy_(weights[name])
        rounds = math.ceil(self._count / self._world.size)
        # One row for each microbatch: its figures, and whether this process was interrupted.
        rows = torch.zeros(rounds, 4, dtype=torch.float64)
        for row, batch in zip(rows, self._mine, strict=False):
            if broken_off():
                rows[:, -1] = 1.0
                break
            row[:-1] = torch.tensor(self._figures(batch), dtype=torch.float64)
        gathered = self._world.gather(rows.to(self._world.device), self._count)
        *figures, broken = gathered.mean(dim=0).tolist()
        return None if broken else HeldoutFigures(*figures)

    @torch.no_grad()
    def _figures(self, batch: Batch) -> tuple[float, float, float]:
        device, train = self._world.device, self._train
        step = train.tasks_per_forward or len(batch.x)
        logits = []
        for start in range(0, len(batch.x), step):
            x = batch.x[start : start + step].to(device)
            logits.append(self._model(x, batch.n_labeled).float().cpu())
        scores = torch.cat(logits)  # T n_u 2
        loss = F.cross_entropy(scores.flatten(0, 1), batch.y.flatten()).item()
        accuracy = (scores.argmax(-1) == batch.y).double().mean().item()
        margin = (scores[..., 1] - scores[..., 0]).numpy()
        aucs = [auc(m, y) for m, y in zip(margin, batch.y.numpy(), strict=True)]
        return loss, accuracy, float(np.mean(aucs))


def auc(score: np.ndarray, y: np.ndarray) -> float:
    """Share of pairs of a positive and a negative that `score` orders correctly, ties as half.

    score: [n] floats; y: [n], 1 = positive, 0 = negative, both present.
    """
    positive = y == 1
    n_positive = int(positive.sum())
    from scipy.stats import rankdata  # takes a second to import; most runs do not need it

    # SciPy 1.18 ranks in the scores' dtype, and float32 is too coarse to sum ranks in.
    ranks = rankdata(np.asarray(score, dtype=np.float64))[positive].sum()
    wins = ranks - n_positive * (n_positive + 1) / 2
    return float(wins / (n_positive * (len(y) - n_positive)))


def _batch_at(reader: ShardReader, part: PartId, position: int) -> Batch:
    microbatch = reader.part(part)[position]
    return as_batch(microbatch.address, microbatch)


def _digest(reader: ShardReader, chosen: list[tuple[PartId, int]]) -> str:
    digest = hashlib.sha256()
    for part, position in chosen:
        digest.update(f"{reader.entry(part).content_digest}:{position}\0".encode())
    return digest.hexdigest()
