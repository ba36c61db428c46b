"""What can be wrong with a folder of shards, told in one sentence."""

from puicl_config import InputError


class ShardError(InputError):
    """A shard folder is missing, damaged, incomplete, or holds something else."""
