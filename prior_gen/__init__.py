"""The SCM prior over PU tasks, its curriculum, and the parallel generator of shards."""

from prior_gen.canary import software
from prior_gen.generator import generate_shards
from prior_gen.microbatch import generate_microbatch

__all__ = ["generate_microbatch", "generate_shards", "software"]
