"""What each ingredient of `PUICLClassifier` adds: mean AUC over a folder of tables.

    python benchmarks/ensembling.py --model runs/cpu/model.safetensors --data DIR --splits 3

Folder and splits: see `real_tables.py`. Every variant is compared with the default's single pass on
the same splits: mean over tables of the mean difference over splits, with its standard error over
tables. The defaults take some five minutes on one core; `--rows 2000 --splits 3` is the full
measurement.
"""

import argparse
import time
import warnings
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd
from how_many import count
from real_tables import data_digest, digest, measured, read_split, table_names, thin
from scipy.special import expit, logit
from scipy.stats import rankdata
from sklearn.metrics import roc_auc_score

from pu_bench.methods.crossfit import posterior
from puicl_config import exit_on_input_error
from puicl_model import PUICLClassifier, find_weights
from puicl_model.preprocessing import TablePreprocessor
from puicl_model.trees import cross_fitted

_MEMBERS = 4


def variants(model: Path, x: pd.DataFrame, s: np.ndarray, seed: int) -> dict[str, np.ndarray]:
    """Scores [n_u] of the unlabelled rows by variant."""

    def members(n: int = _MEMBERS, **parameters) -> np.ndarray:
        fitted = PUICLClassifier(model, n_estimators=n, random_state=seed, **parameters)
        return fitted.fit(x, s).estimator_log_odds_

    by = {
        kind: members(scalings=(kind,)) for kind in ("standard", "quantile", "robust", "principal")
    }

    def mixed(*kinds: str) -> np.ndarray:
        """Mean log-odds of one estimator for each kind, with the column orders in turn."""
        return np.mean([by[kind][number] for number, kind in enumerate(kinds)], axis=0)

    found = {
        "single pass": by["quantile"][0],
        "single pass, standard": by["standard"][0],
        "single pass, robust": by["robust"][0],
        "single pass, principal": by["principal"][0],
        "2 orders, quantile": by["quantile"][:2].mean(axis=0),
        "4 orders, quantile": by["quantile"].mean(axis=0),
        "4 orders, standard": by["standard"].mean(axis=0),
        "4 orders, principal": by["principal"].mean(axis=0),
        "4: quantile, standard in turn": mixed(*("quantile", "standard") * 2),
        "4: quantile, standard, quantile, principal": mixed(
            "quantile", "standard", "quantile", "principal"
        ),
        "2: quantile, principal": mixed("quantile", "principal"),
        "4: three quantile, one principal": mixed(*("quantile",) * 3, "principal"),
        "4: quantile, principal in turn": mixed(*("quantile", "principal") * 2),
        "8: both of each order": (by["quantile"] + by["principal"]).mean(axis=0) / 2,
        "16: 4 orders in each scaling": np.mean(list(by.values()), axis=(0, 1)),
    }
    with mock.patch("puicl_model.plan.turnable", lambda X: np.zeros(X.shape[1], bool)):
        found["4: the same, no column of two values turned"] = members(
            scalings=(*("quantile",) * 3, "principal")
        ).mean(axis=0)
    both = np.stack(
        [by[kind][n] for n, kind in enumerate(("quantile", "quantile", "quantile", "principal"))]
    )
    found["4: three quantile, one principal, mean of probabilities"] = expit(both).mean(axis=0)
    sixteen = members(16)
    found["4 of the default's 16"] = sixteen[:4].mean(axis=0)
    found["8 of the default's 16"] = sixteen[:8].mean(axis=0)
    found["16: the default"] = sixteen.mean(axis=0)
    text = [name for name in x if not pd.api.types.is_numeric_dtype(x[name])]
    for levels in (2, 5, 10):
        one = found["single pass"]
        if text:
            one = members(1, preprocessing=TablePreprocessor(one_hot_levels=levels))[0]
        found[f"single pass, categories of up to {levels} levels one-hot"] = one
    for share in (0.05, 1.0):
        one = found["single pass"]
        if x.isna().any(axis=None):
            one = members(1, preprocessing=TablePreprocessor(indicator_share=share))[0]
        found[f"single pass, missing indicators from {share:.0%}"] = one

    X = TablePreprocessor().fit_transform(x)
    labeled = s == 1
    scores, _ = cross_fitted(X, labeled, labeled, np.random.default_rng(seed))
    network = found["16: the default"]
    trees = posterior(scores[labeled], scores[~labeled])
    found["trees alone"] = scores[~labeled]
    ranks, trees_ranks = rankdata(network), rankdata(scores[~labeled])
    for share in (0.1, 0.2, 0.3, 0.5):
        found[f"as by default, blended with trees P vs U by rank, trees {share:.0%}"] = (
            1 - share
        ) * ranks + share * trees_ranks
    found["the same by posterior"] = expit(network) + trees
    found["the same by log-odds"] = network + logit(np.clip(trees, 0.01, 0.99))
    return found


@exit_on_input_error
def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="default")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--splits", type=count, default=1)
    parser.add_argument("--rows", type=int, default=400, help="maximum rows of each split")
    parser.add_argument("--tables", nargs="*")
    parser.add_argument("--out", type=Path, help="CSV of all AUCs; cells it holds are not redone")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    model, folder = find_weights(arguments.model), arguments.data
    weights = digest(arguments.model)

    def measure(weights: str, rows: int, data: str, name: str, seed: int) -> list[tuple]:
        """Variant and AUC of each."""
        x, s, y = read_split(folder, name, seed)
        kept, _, y = thin(int(s.sum()), y, rows)
        x, s = x.iloc[kept].reset_index(drop=True), s[kept]
        found = variants(model, x, s, seed).items()
        print(f"{name}, split {seed}: {time.monotonic() - start:.0f} s", flush=True)
        return [(variant, roc_auc_score(y, score)) for variant, score in found]

    start = time.monotonic()
    cells = [
        (weights, arguments.rows, data_digest(folder, name), name, seed)
        for name in table_names(folder, arguments.tables)
        for seed in range(arguments.splits)
    ]
    key = ["weights", "rows", "data", "table", "split", "variant"]
    print_table(measured(arguments.out, key, ["auc"], cells, measure))


def print_table(frame: pd.DataFrame) -> None:
    """Mean AUC of each variant, and its difference from the single pass."""
    means = frame.groupby(["variant", "table"], sort=False)["auc"].mean().unstack()
    print(f"\n{means.shape[1]} tables, {frame['split'].nunique()} splits\n")
    print("| what | mean AUC | against the single pass | better on |\n|---|---|---|---|")
    for variant, auc in means.iterrows():
        gain = auc - means.loc["single pass"]
        error = gain.std(ddof=1) / np.sqrt(len(gain)) if len(gain) > 1 else np.nan
        print(
            f"| {variant} | {auc.mean():.4f} | {gain.mean():+.4f} ± {error:.4f} | "
            f"{(gain > 0).sum()} of {len(gain)} |"
        )


if __name__ == "__main__":
    main()
