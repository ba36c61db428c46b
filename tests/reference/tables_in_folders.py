"""Tables of a folder for `puicl predict`: making, writing and reading them and what it leaves."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest


def make_table(seed: int, n: int = 40) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    s = np.isin(np.arange(n), rng.permutation(n)[:12])
    return pd.DataFrame(
        {"name": [f"r{j}" for j in range(n)], "a": rng.normal(size=n) + s, "b": rng.normal(size=n)}
    ).assign(s=s.astype(int))


def write(path: Path, table: pd.DataFrame) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".parquet":
        pytest.importorskip("pyarrow")
        table.to_parquet(path)
    else:
        table.to_csv(path, index=False)


def read(path: Path) -> pd.DataFrame:
    return pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)


def scores_of(out: Path) -> dict[str, Path]:
    found = [path for path in out.rglob("*") if path.suffix.lower() in (".csv", ".parquet")]
    return {p.relative_to(out).as_posix(): p for p in found if p.name != "_summary.csv"}


def whole_records(out: Path) -> list[Path]:
    records = [path for path in (out / ".puicl").rglob("*.json") if path.name != "settings.json"]
    for path in records:
        json.loads(path.read_text(encoding="utf-8"))
    return records
