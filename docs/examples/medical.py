"""Medical: some benign samples are confirmed, the others have no diagnosis.

    python docs/examples/medical.py

The Wisconsin breast cancer table has 569 samples and 30 measurements, and comes with scikit-learn.
A third of the benign samples are labelled. The classes of the others only serve to judge the
answer.
"""

import argparse

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import roc_auc_score

from puicl_model import PUICLClassifier


def main(model: str | None) -> float:
    """Print the answer and how good it is; returns the AUC."""
    table = load_breast_cancer(as_frame=True)
    x, benign = table.data, (table.target == 1).to_numpy()
    confirmed = benign & (np.random.default_rng(0).random(len(x)) < 1 / 3)

    clf = PUICLClassifier(model).fit(x, confirmed)

    hidden = benign[clf.unlabeled_rows_]
    auc = roc_auc_score(hidden, clf.unlabeled_proba_)
    print(f"{confirmed.sum()} confirmed, {len(hidden)} open, {hidden.mean():.0%} of them benign")
    print(f"estimated share of benign among the open: {clf.class_prior_:.0%}")
    print(f"AUC {auc:.3f}, warnings: {clf.report_['warnings'] or 'none'}")
    doubtful = clf.unlabeled_rows_[np.argsort(clf.unlabeled_proba_)[:5]]
    print(f"look at these first, they are least like the confirmed ones: {doubtful.tolist()}")
    return auc


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", help="model.safetensors; default: the shipped weights")
    main(parser.parse_args().model)
