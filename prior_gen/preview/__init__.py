"""Pictures of the content of a folder of shards, to look at before spending GPU hours on it."""

from prior_gen.preview.write import write_preview

__all__ = ["write_preview"]
