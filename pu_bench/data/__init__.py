"""Real tables for the protocol: loading, verification and encoding."""

from pu_bench.data.canonical import Table
from pu_bench.data.collection import PAPER, Collection, load_collection
from pu_bench.data.left_out import left_out_words
from pu_bench.data.tasks import TASKS, TaskSpec

__all__ = ["PAPER", "TASKS", "Collection", "Table", "TaskSpec", "left_out_words", "load_collection"]
