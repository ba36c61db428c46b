"""What single values say of the share of positives."""

import json
import sys

import numpy as np
import pandas as pd
import telltales


def test_bounds_are_set_against_true_shares_and_estimates(tmp_path, monkeypatch, capsys):
    rng = np.random.default_rng(0)
    rare = np.arange(1000) < 120
    marked = np.where(rare & (np.arange(1000) % 3 > 0), "marked", "plain")  # two thirds of them
    noise = rng.integers(0, 3, 1000)
    for name, column in (("telling", marked), ("noisy", noise)):
        table = pd.DataFrame({"a": rng.normal(size=1000), "b": column, "rare": rare})
        table.to_csv(tmp_path / f"{name}.csv.gz", index=False)
    facts = {"title": "t", "licence": "CC0", "source": "none", "positive": "False"}
    (tmp_path / "index.json").write_text(json.dumps({"telling": facts, "noisy": facts}))
    shares = pd.DataFrame({"table": ["telling", "noisy"], "estimate": [0.4, 0.3]})
    shares.to_csv(tmp_path / "shares.csv", index=False)
    words = ["telltales.py", "--data", tmp_path, "--shares", tmp_path / "shares.csv"]
    monkeypatch.setattr(sys, "argv", [*map(str, words)])
    telltales.main()
    told = capsys.readouterr().out.splitlines()
    least = float(told[0].removeprefix("2 tables; the least bound is "))
    assert 80 / 960 < least < 0.2  # a fair sample's, and its allowance for chance
    assert told[1] == "below the true share: 0, by 0.000 at most"
    assert told[2] == "below the estimate: 1 (telling)"
    share = 80 / 960
    assert (
        told[4]
        == f"these: share off by {0.4 - share:.3f}, no more than the bound {least - share:.3f}"
    )
