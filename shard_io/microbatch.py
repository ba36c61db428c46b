"""The unit of storage: tasks of one shape with their tags."""

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from puicl_config import canonical_json


@dataclass(frozen=True)
class Microbatch:
    """T tasks of one shape.

    x: [T, P + n_u, d] float16 or float32, labelled positives first.
    y: [T, n_u] uint8, 1 = positive, 0 = negative, of the unlabelled rows.
    tags: stage, step, index and the batch factors; JSON values only.
    """

    x: np.ndarray
    y: np.ndarray
    tags: dict[str, Any]

    def __post_init__(self):
        if (self.x.ndim, self.y.ndim) != (3, 2):
            raise ValueError(f"x has {self.x.ndim} axes and y {self.y.ndim}, not 3 and 2")

    @property
    def n_labeled(self) -> int:
        """P, the number of labelled positives of each task."""
        return self.x.shape[1] - self.y.shape[1]

    @property
    def address(self) -> tuple[Any, Any, Any]:
        """(stage, step, index), according to the tags; None for what these lack."""
        return self.tags.get("stage"), self.tags.get("step"), self.tags.get("index")

    def digest(self) -> bytes:
        """SHA-256 over the canonical content: tags, shapes, dtype and little-endian arrays."""
        header = canonical_json(
            {"tags": self.tags, "x": [self.x.dtype.name, *self.x.shape], "y": [*self.y.shape]}
        )
        digest = hashlib.sha256(header.encode())
        digest.update(b"\0")
        digest.update(np.ascontiguousarray(self.x, dtype=self.x.dtype.newbyteorder("<")).data)
        digest.update(np.ascontiguousarray(self.y).data)
        return digest.digest()


def tags_of(raw: Any) -> dict[str, Any]:
    """The tags read from a part; raises `ValueError` if they are no mapping."""
    if not isinstance(raw, dict):
        raise ValueError("its tags are not a mapping")
    return raw
