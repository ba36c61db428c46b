"""Where a microbatch's features come from, and whether it has an SCM, according to its tags."""

from collections.abc import Mapping
from typing import Any

# Extensions that make the columns in place of an SCM. Tags of an SCM are then stored all the same,
# but mean nothing.
WITHOUT_SCM = ("independent", "factorial", "cluster_labels", "factor_model", "graph")
# What the features of an SCM are read from.
SCM_SOURCES = ("head", "causes", "clique", "subset")
SOURCES = (*SCM_SOURCES, *WITHOUT_SCM)


def source_of(tags: Mapping[str, Any]) -> str:
    """Where the features of a microbatch with these tags come from: one of `SOURCES`."""
    names = tags.get("extensions") or ()
    return next((name for name in WITHOUT_SCM if name in names), tags["source"])


def has_scm(tags: Mapping[str, Any]) -> bool:
    """Whether the features of a microbatch with these tags come from a structural causal model."""
    return source_of(tags) in SCM_SOURCES
