from shard_io.microbatch import Microbatch
