"""Compute columns, rows and checksums of the 20 canonical tables from a folder that holds them.

`python -m pu_bench.data.pin DIR` prints `pins.json`. It is needed only if the canonical form
changes.
"""

import json
import sys
from pathlib import Path

from pu_bench.data.canonical import canonical_table
from pu_bench.data.local import read_table
from pu_bench.data.tasks import TASKS


def pins_of(folder: Path) -> dict[str, dict]:
    """Columns, number of rows and canonical SHA-256, by the table's name."""
    pins = {}
    for path in sorted(folder.glob("*.csv.gz")):
        columns, rows = read_table(path)
        name = path.name.removesuffix(".csv.gz")
        rows = rows[: TASKS[name].max_rows]
        table = canonical_table(columns, rows)
        pins[name] = {"columns": columns, "rows": len(rows), "sha256": table.digest()}
    return pins


if __name__ == "__main__":
    lines = [f"{json.dumps(k)}: {json.dumps(v)}" for k, v in pins_of(Path(sys.argv[1])).items()]
    print("{\n" + ",\n".join(lines) + "\n}")
