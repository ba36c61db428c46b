"""Fraud: few positives are hidden among many rows, and there are many columns.

    python docs/examples/rare_positives.py

Handwritten digits, 1,797 images of 8 x 8 pixels, come with scikit-learn. 60 eights are known, and
40 are hidden among 1,600 others. An expert says that about 3 in 100 unlabelled digits are eights;
`class_prior` makes the probabilities agree with that share.
"""

import argparse

import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score

from puicl_model import PUICLClassifier


def main(model: str | None, blend: str | None = None) -> float:
    """Print the answer and how good it is; returns the AUC."""
    digits = load_digits()
    rng = np.random.default_rng(0)
    eights = rng.permutation(np.flatnonzero(digits.target == 8))
    others = rng.permutation(np.flatnonzero(digits.target != 8))[:1600]
    rows = np.concatenate([eights[:60], rng.permutation(np.concatenate([eights[60:100], others]))])
    s = np.arange(len(rows)) < 60

    clf = PUICLClassifier(model, blend=blend).fit(digits.data[rows], s, class_prior=0.03)

    hidden = digits.target[rows][~s] == 8
    auc = roc_auc_score(hidden, clf.unlabeled_proba_)
    best = np.argsort(-clf.unlabeled_proba_)[:40]
    print(f"AUC {auc:.3f}; of the 40 highest scores {hidden[best].sum()} are eights, by chance 1")
    print(f"expected number of eights: {clf.unlabeled_proba_.sum():.0f} of {len(hidden)}")
    return auc


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", help="model.safetensors; default: the shipped weights")
    parser.add_argument("--blend", choices=["trees"])
    arguments = parser.parse_args()
    main(arguments.model, arguments.blend)
