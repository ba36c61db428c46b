"""What can be wrong with a folder of shards, told in one sentence."""

import contextlib
import os
import shlex
from collections.abc import Iterator

from puicl_config import USERS_TO_MEND, InputError


class ShardError(InputError):
    """A shard folder is missing, damaged, incomplete, or holds something else."""


class ManifestLost(ShardError):
    """A folder's manifest is missing or damaged; its parts may be whole."""


class NoShards(ManifestLost):
    """There is no manifest, as a rule since nobody has made shards there yet."""


def repairing(folder: object, rest: str = "") -> str:
    """The command that mends `folder`, to be pasted from a sentence: paths may hold spaces."""
    return f"`prior-gen repair {shlex.quote(str(folder))}{rest}`"


@contextlib.contextmanager
def told_as_shard_error(folder: object) -> Iterator[None]:
    """Tell in one sentence what the system refuses to do in `folder`: permissions, room, names."""
    try:
        yield
    except OSError as error:
        if error.errno is None or error.errno not in USERS_TO_MEND:
            raise
        where = f" at {error.filename}" if error.filename else ""
        raise ShardError(
            f"{folder} cannot be used: {os.strerror(error.errno).lower()}{where}"
        ) from error
