"""Checks before the first step that the shards are the run's, and a digest of the data read."""

import hashlib
import shlex
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from puicl_config import Config, first_of, plan_of
from shard_io import (
    FilteredReader,
    ShardError,
    ShardReader,
    Store,
    as_ranges,
    command_for,
    describe_differences,
    folder_of,
    read_manifest,
)
from trainer.agreement import short
from trainer.sampler import addresses_of_step, stages_of_steps


def open_for(config: Config, shards: str | Path | Store) -> ShardReader:
    """Open the shards, filtered by `train.where`; raises `InputError` if that is invalid."""
    folder = folder_of(shards) if isinstance(shards, str) else shards
    where = config.train.where
    return FilteredReader(folder, where) if where else ShardReader(folder)


def describe_reuse(config: Config, reader: ShardReader, stop: int) -> str | None:
    """A sentence on how often steps 0 to `stop` - 1 read each microbatch; None if at most once."""
    prior, train = config.prior, config.train
    reads = Counter(
        reader.part_of(address)
        for step in range(stop)
        for address in addresses_of_step(prior, train, step)
    )
    if not reads or max(reads.values()) == 1:
        return None
    most, times = reads.most_common(1)[0]
    return (
        f"{reads.total():,} microbatches are read from {len(reads):,}: each "
        f"{reads.total() / len(reads):.3g} times on average, at most {times} times (stage "
        f"{most[0].stage})"
    )


def check_plan(config: Config, reader: ShardReader) -> None:
    """Raise `ShardError`, naming the differences, if the shards hold another plan or split."""
    present = reader.manifest.header()
    wanted = {
        **present,
        "split": "train",
        "plan": {**present["plan"], "prior": plan_of(config.prior)["prior"]},
    }
    differences = describe_differences(wanted, present)
    if differences:
        raise ShardError(
            f"{reader.folder} holds another plan than the config: {first_of(differences)}"
        )


def last_trainable_step(config: Config, reader: ShardReader, start: int, stop: int) -> int:
    """The step up to which the shards suffice.

    That is `stop`, or the end of phase 1 if only the tail is missing. Raises `ShardError` naming
    the first missing part if anything else is missing, and naming the file if one is gone or
    truncated. In follow mode missing parts are expected to arrive later.
    """
    prior, train = config.prior, config.train
    needed = stages_of_steps(prior, train, start, stop)
    missing = reader.missing_parts(needed)
    late = {part.stage for part in missing}
    if train.follow:
        needed = [stage for stage in needed if stage not in late]
    elif (
        missing
        and min(late) > prior.stages
        and train.sampler == "curriculum"
        and start <= prior.curriculum_steps < stop
    ):
        stop = min(stop, prior.curriculum_steps)
        needed = [stage for stage in needed if stage <= prior.stages]
    elif missing:
        raise ShardError(
            f"{reader.folder} lacks {missing[0].name}"
            + (f" and {len(missing) - 1} more parts" if len(missing) > 1 else "")
            + f" of the stages {as_ranges(needed)} that train.sampler={train.sampler} needs; "
            + how_to_make(reader, late)
        )
    for stage in needed:
        reader.survivors(stage)  # counts the tasks that `train.where` selects
    try:
        reader.check_sizes(part for stage in needed for part in reader.parts_of_stage(stage))
    except ShardError:
        # Parts that only earlier steps read may be gone, so check just those still needed.
        ahead = (
            reader.part_of(address)[0]
            for step in range(start, stop)
            for address in addresses_of_step(prior, train, step)
            if address[0] in needed
        )
        reader.check_sizes(sorted(set(ahead)))
    return stop


def identity(config: Config, reader: ShardReader, start: int, stop: int) -> dict[str, str]:
    """Properties of the shards, as text by name, that all processes of a run must agree on.

    Parts are included if steps `start` to `stop` - 1 need their stage; in follow mode none are, as
    one process may see a part before another does.
    """
    manifest = reader.manifest
    index, content, survivors = manifest.slice, hashlib.sha256(), hashlib.sha256()
    needed = stages_of_steps(config.prior, config.train, start, stop)
    for stage in [] if config.train.follow else needed:
        survivors.update(repr(reader.survivors(stage)).encode())
        for entry in reader.entries(reader.parts_of_stage(stage)):
            content.update(f"{entry.id.name} {entry.content_digest}\n".encode())
    return {
        "shards' plan": short(manifest.plan_digest),
        "shards' slice": f"{index.where} {short(survivors.hexdigest())}" if index else "none",
        "shards' x_dtype": manifest.storage.x_dtype,
        "shards' content": short(content.hexdigest()),
    }


def how_to_make(reader: ShardReader, stages: Iterable[int]) -> str:
    """Advice on how to add the missing parts of these stages to the reader's folder."""
    cut = read_manifest(reader.folder).slice  # the reader's own slice may come from `train.where`
    if cut is None:
        return f"make them with `{command_for(reader.folder, stages)}`"
    local = isinstance(reader.folder, Path)
    where, place = shlex.quote(cut.where), shlex.quote(str(reader.folder)) if local else "OUT"
    return (
        "make them in the folder of the whole plan, and cut this slice again with "
        f"`prior-gen slice WHOLE --where {where} --out {place}`"
        + ("" if local else f", to be copied to {reader.folder}")
    )


class DataChain:
    """A running hash of the digests of the parts consumed, which identifies the data read."""

    def __init__(self, config: Config, reader: ShardReader):
        self._config, self._reader = config, reader
        self.folder = reader.folder
        self.storage = reader.manifest.storage
        self._seen: set[tuple[int, int]] = set()  # stage, number of the microbatch in it
        self._consumed = 0
        # The expression that selects tasks of the plan: of a slice, of `train.where`, or of both.
        self.where = reader.manifest.slice.where if reader.manifest.slice else None
        origin = reader.manifest.plan_digest
        if self.where:
            origin += f" where {self.where}"
        self.value = hashlib.sha256(origin.encode()).hexdigest()

    def consume(self, step: int) -> str:
        """Add the parts of optimizer step `step`, in order; returns the new value."""
        for address in addresses_of_step(self._config.prior, self._config.train, step):
            part, position = self._reader.part_of(address)
            self._seen.add((part.stage, self._reader.layout.span(part)[position]))
            self._consumed += 1
            digest = self._reader.entry(part).content_digest
            if self._reader.manifest.slice:
                # The address no longer says which of the part's microbatches was read.
                digest += f":{position}"
            self.value = hashlib.sha256((self.value + digest).encode()).hexdigest()
        return self.value

    def parts_of(self, step: int) -> list[str]:
        """Names of the parts that optimizer step `step` reads."""
        addresses = addresses_of_step(self._config.prior, self._config.train, step)
        return sorted({self._reader.part_of(address)[0].name for address in addresses})

    @property
    def reuse(self) -> float:
        """Mean number of times that each microbatch was read, over those read at all."""
        return self._consumed / max(len(self._seen), 1)
