"""The whole line as a user runs it: config, shards, training, a scored table."""

import csv
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from puicl_model import PUICLClassifier

MAIN = Path(__file__).resolve().parents[2] / "trainer" / "main.py"
PRIOR_GEN = "from prior_gen.cli import main; main()"
PUICL = "from puicl_cli.main import main; main()"


def test_from_a_config_to_the_scores_of_a_table(tiny_yaml, run_afresh, run_command, tmp_path):
    out = tmp_path / "run"
    run_afresh(
        "-c", PRIOR_GEN, "--config", tiny_yaml, "--stages", "1-3", "--out", "shards", cwd=tmp_path
    )
    run_command("-c", PRIOR_GEN, "--config", tiny_yaml, "--tail", "--out", "shards", cwd=tmp_path)
    run_command("-c", PRIOR_GEN, "verify", "shards", cwd=tmp_path)
    run_afresh(MAIN, "--config", tiny_yaml, "--shards", "shards", "--out", out, cwd=tmp_path)

    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(40, 3)), columns=list("abc"))
    table["s"] = (np.arange(40) % 4 == 0).astype(int)
    table.to_csv(tmp_path / "table.csv", index=False)
    run_afresh(
        *("-c", PUICL, "predict", "--data", "table.csv", "--label-column", "s"),
        *("--out", "scores.csv", "--model", out / "model.safetensors"),
        cwd=tmp_path,
    )
    with (tmp_path / "scores.csv").open() as file:
        rows = list(csv.DictReader(file))
    classifier = PUICLClassifier(out / "model.safetensors").fit(table[list("abc")], table["s"])
    expected = iter(classifier.unlabeled_proba_)
    for number, row in enumerate(rows):
        assert int(row["row"]) == number
        if number % 4 == 0:
            assert row["p_positive"] == ""
        else:
            assert float(row["p_positive"]) == pytest.approx(next(expected), abs=1e-12)


@pytest.mark.slow
def test_the_demo_ranks_the_breast_cancer_table(run_afresh, tmp_path):
    from pu_bench.demo import run_demo

    shards, out = tmp_path / "shards", tmp_path / "run"
    run_afresh(
        *("-c", PRIOR_GEN, "--config", "demo", "--stages", "1-12", "--tail", "--out", shards),
        cwd=MAIN.parent.parent,
    )
    launch = ("-m", "torch.distributed.run", "--nproc-per-node", 2)
    run_afresh(*launch, MAIN, "--config", "demo", "--shards", shards, "--out", out)
    means = run_demo(out / "model.safetensors", tmp_path / "results")
    assert means["PUICL"][0] >= 0.95
    assert means["all positive"] == (0.5, pytest.approx(238 / 450))
    assert (tmp_path / "results" / "wdbc.png").stat().st_size > 20_000
