"""Which microbatches have a structural causal model, by their tags."""

from collections.abc import Mapping
from typing import Any

# Extensions that make the columns in its place; its tags are there all the same, and mean nothing.
WITHOUT_SCM = ("independent", "factorial", "cluster_labels", "factor_model", "graph")
# What the features of a model are read from.
SCM_SOURCES = ("head", "causes", "clique", "subset")
SOURCES = (*SCM_SOURCES, *WITHOUT_SCM)


def source_of(tags: Mapping[str, Any]) -> str:
    """Where the features come from: one of `SOURCES`."""
    names = tags.get("extensions") or ()
    return next((name for name in WITHOUT_SCM if name in names), tags["source"])


def has_scm(tags: Mapping[str, Any]) -> bool:
    """Whether the features come from a structural causal model."""
    return source_of(tags) in SCM_SOURCES
