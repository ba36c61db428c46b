"""Ecology: specimens of one species are known, those of a survey are not determined.

    python docs/examples/presence_only.py

Anderson's iris table has 150 specimens and comes with scikit-learn. Twenty determined specimens of
versicolor are a separate collection, not part of the survey (case-control). Of the other 130, 90
are the survey. 40 come later and are scored against it.
"""

import argparse

import numpy as np
import pandas as pd
from sklearn.datasets import load_iris
from sklearn.metrics import roc_auc_score

from puicl_model import PUICLClassifier


def main(model: str | None) -> float:
    """Print the answer and how good it is; returns the AUC among later specimens."""
    table = load_iris(as_frame=True)
    order = np.random.default_rng(0).permutation(len(table.data))
    x = table.data.iloc[order].reset_index(drop=True)
    versicolor = (table.target.iloc[order] == 1).to_numpy()

    collection = x[versicolor].head(20)
    others = x.drop(collection.index)
    survey, later = others.head(90), others.tail(40)
    s = np.repeat([1, 0], [len(collection), len(survey)])

    clf = PUICLClassifier(model).fit(pd.concat([collection, survey]), s)

    share = versicolor[survey.index].mean()
    print(f"estimated share of versicolor in the survey {clf.class_prior_:.0%}, true {share:.0%}")
    auc = roc_auc_score(versicolor[survey.index], clf.unlabeled_proba_)
    auc_later = roc_auc_score(versicolor[later.index], clf.predict_proba(later)[:, 1])
    print(f"AUC in the survey {auc:.3f}, among later specimens {auc_later:.3f}")
    return auc_later


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", help="model.safetensors; default: the shipped weights")
    main(parser.parse_args().model)
