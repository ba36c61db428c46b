"""Are these the shards the run was told about? Checked before the first step."""

import hashlib

from puicl_config import Config, plan_of
from shard_io import ShardError, ShardReader, describe_differences
from trainer.sampler import addresses_of_step, stages_of_steps


def check_plan(config: Config, reader: ShardReader) -> None:
    """Raise `ShardError` naming what differs where the shards hold another plan or split."""
    present = reader.manifest.header()
    wanted = {
        **present,
        "split": "train",
        "plan": {**present["plan"], "prior": plan_of(config.prior)["prior"]},
    }
    differences = describe_differences(wanted, present)
    if differences:
        raise ShardError(
            f"{reader.folder} holds another plan than the config: {'; '.join(differences)}"
        )


def last_trainable_step(
    config: Config, reader: ShardReader, start: int, stop: int, generate: str
) -> int:
    """How far the shards reach: `stop`, or the end of phase 1 where only the tail is missing.

    Raises `ShardError` naming the first hole where anything else is missing, and the file where
    one is gone or truncated. `generate` is the `prior-gen` command of this plan, for the message.
    """
    prior = config.prior
    needed = stages_of_steps(prior, config.train, start, stop)
    missing = reader.missing_parts(needed)
    holes = [part for part in missing if part.stage <= prior.stages]
    if missing and not holes and config.train.sampler == "curriculum" and stop > start:
        stop = min(stop, prior.curriculum_steps)
        needed = [stage for stage in needed if stage <= prior.stages]
    elif missing and reader.manifest.slice:
        raise ShardError(
            f"{reader.folder} is a slice without {missing[0].name}; slice a folder that holds all "
            f"of stages {needed[0]}-{needed[-1]}"
        )
    elif missing:
        first = (holes or missing)[0]
        raise ShardError(
            f"{reader.folder} lacks {first.name}"
            + (f" and {len(missing) - 1} more parts" if len(missing) > 1 else "")
            + f" of stages {needed[0]}-{needed[-1]}; make them with `{generate}"
            f" --stages {first.stage}-{missing[-1].stage} --out {reader.folder}`"
        )
    reader.check_sizes(part for stage in needed for part in reader.parts_of_stage(stage))
    return stop


class DataChain:
    """A running hash of the part digests consumed, step by step: which data a run has seen."""

    def __init__(self, config: Config, reader: ShardReader):
        self._config, self._reader = config, reader
        origin = reader.manifest.plan_digest
        if reader.manifest.slice:
            origin += f" where {reader.manifest.slice.where}"
        self.value = hashlib.sha256(origin.encode()).hexdigest()

    def consume(self, step: int) -> str:
        """Add the parts of optimizer step `step`, in order; returns the new value."""
        for address in addresses_of_step(self._config.prior, self._config.train, step):
            part, position = self._reader.part_of(address)
            digest = self._reader.entry(part).content_digest
            if self._reader.manifest.slice:
                # The address no longer says which of the part's microbatches was read.
                digest += f":{position}"
            self.value = hashlib.sha256((self.value + digest).encode()).hexdigest()
        return self.value
