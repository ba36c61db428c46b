"""Pictures of what a folder of shards holds, to look at before spending GPU hours on it."""

from prior_gen.preview.write import write_preview

__all__ = ["write_preview"]
