"""Errors about folders of shards, each with a message of one sentence."""

import contextlib
import shlex
from collections.abc import Iterator

from puicl_config import InputError, fixable_reason


class ShardError(InputError):
    """A shard folder is missing, damaged, incomplete, or holds something else."""


class ManifestLost(ShardError):
    """A folder's manifest is missing or damaged; its parts may be whole."""


class NoShards(ManifestLost):
    """There is no manifest; usually, since no shards have been made there yet."""


def repairing(folder: object, rest: str = "") -> str:
    """The command that repairs `folder`, quoted so that it can be pasted from a message."""
    return f"`prior-gen repair {shlex.quote(str(folder))}{rest}`"


@contextlib.contextmanager
def told_as_shard_error(folder: object) -> Iterator[None]:
    """Turn an `OSError` that the user can fix into a `ShardError` that names `folder`.

    Such errors concern permissions, disk space or file names; others are passed on.
    """
    try:
        yield
    except OSError as error:
        reason = fixable_reason(error)
        if reason is None:
            raise
        where = f" at {error.filename}" if error.filename else ""
        raise ShardError(f"{folder} cannot be used: {reason}{where}") from error
