"""`PUICLClassifier`: positive-unlabeled learning in context, in scikit-learn's manner."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from scipy.special import expit
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.metrics import roc_auc_score
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import check_is_fitted

from puicl_model import class_prior as priors
from puicl_model.blend import Blend, Students, taught_by
from puicl_model.contexts import TrainedRange, column_relevance, levels_alone
from puicl_model.ensemble import NewRows, Scores, keep_references, row_keys, score_unlabeled
from puicl_model.inference import resolve_device
from puicl_model.labels import labeled_mask, labels_of_rows, refuse_another_order
from puicl_model.model import PUICL
from puicl_model.parameters import check_parameters
from puicl_model.plan import Plan, plan_table
from puicl_model.precision import set_precision
from puicl_model.preprocessing import TablePreprocessor, read_table
from puicl_model.process_settings import threads, tiny_to_zero
from puicl_model.report import make_report
from puicl_model.telling import tell
from puicl_model.trees import check_enough
from puicl_model.weights import find_weights, load_model


class PUICLClassifier(ClassifierMixin, BaseEstimator):
    """Classify the unlabelled rows of a table in forward passes of a pretrained network.

    Nothing is fitted to the table (unless `blend` says so): `fit` reads it as the network's
    context. Larger tables than the network reads at once are read in parts: rows in random
    contexts, columns in subsets. Time grows linearly with rows. Beside the table itself, memory is
    that of one context, or of several small ones that together have up to 30,000 cells (on a GPU
    2,000,000).

    Parameters
    ----------
    model : str, Path or None
        Weights: the name of some that come with the package (`puicl weights list`; None:
        "default"), or a `model.safetensors` with its `model.json` beside it, as the trainer writes
        them.
    n_estimators : int
        Forward passes over which a row's log-odds are averaged. 1 is a single forward pass, as in
        the paper, but with a scaling before the network's own. The first pass has columns and rows
        as given. The others differ in

        - the order of the columns, the scaling, and, where rows or columns do not all fit, contexts
          and subsets of columns;
        - columns of two values, where columns are scaled one by one: read as they are or the other
          way round, at random. In tables of levels alone of which some column has more than two,
          every other pass reads all columns from the other end instead, where the network was
          trained on such tables (`prior.extensions.mirrored`);
        - categories of more than three levels without an order: coded by the alphabet in half of
          the passes (of four in a scaling, two), and by frequency in the others
          (`TablePreprocessor.codes_by_count`).
    scalings : "auto" or sequence of str
        Scalings that the passes take in turn:

        - "standard", "robust", "quantile", "uniform" (ranks): each column by itself;
        - "principal", "principal_quantile", "principal_uniform": the principal axes of the columns
          in standard, quantile or uniform scaling. Of more columns than the network reads at once,
          only the first ten and the first five axes are read, in turn;
        - "rotated", "rotated_quantile", "rotated_uniform": a random rotation of the columns in
          standard, quantile or uniform scaling, another one in each pass;
        - "auto": "quantile", "principal", "rotated_quantile" and "standard" in turn. Of more
          columns than the network reads at once, "principal_quantile" instead of the last. Of
          tables of levels alone (at most ten values a column), "quantile" alone. With networks that
          do not see the order of columns: three "quantile" and one "principal", for any table.

        Orders and subsets of columns are drawn of the axes or rotations that come out.
    columns : {"random", "relevant", "all"}
        How to draw subsets of columns where there are more than the network reads at once:
        "random", or "relevant", by how well each alone separates labelled from unlabelled rows.
        "all" reads all columns, and all axes, together.
    blend : {None, "trees"}
        "trees" averages the network's ranks with those of two students that learn its
        probabilities on the table: cross-fitted extremely randomised trees, and the mean of the
        twenty nearest rows (a tenth of the rows, where that is less). Each weighs a fifth, less
        where it does not follow the network (`puicl_model.blend`). Tables of levels alone (at most
        ten values a column) are left to the network, which reads rules there.
    positive_label : object or None
        The entry of `s` that marks labelled positives; all others are unlabelled. None: 1, True.
    preprocessing : "auto", None or a scikit-learn transformer
        "auto" is `TablePreprocessor(categorical_features)`; None takes finite numbers as they
        are; a transformer must make finite numbers.
    categorical_features : sequence of int or str, or of bool, or None
        Columns of numbers that are codes of categories, for "auto": names, positions or a mask.
    random_state : int, RandomState or None
        Seed of everything that is random.
    device : str
        Where the network runs: "auto" (a GPU where there is one), "cpu", "cuda", ...
    precision : {"float32", "bfloat16"}
        Precision of the network's blocks. "bfloat16" takes a third of the time on processors with
        AVX-512 BF16 and half of the memory of contexts; rows rank as well, and single
        probabilities change (docs/user_guide.md). Where it would be slower, float32 is used
        instead, with a warning.
    n_threads : int or None
        Threads of the network on a CPU; None leaves PyTorch's setting.
    batch_rows : int
        New rows scored together. Bounds memory; changes no score beyond rounding.
    keep_context : bool
        Whether `fit` keeps what the network read of the table, so that new rows are scored without
        reading it again. This takes, for each pass, some 4 bytes * rows read * (columns + 1) *
        embedding size * blocks, which may be gigabytes. Otherwise the context is read again for
        the first new rows, and kept where all that a process keeps takes less than 1 GB. Changes no
        score beyond rounding.
    verbose : bool or None
        Whether to show progress on stderr; None: on a terminal, where it takes long.

    Attributes
    ----------
    classes_ : ndarray [2]
        [0, 1]: negatives, positives.
    unlabeled_proba_ : ndarray [n_u]
        P(positive) of the unlabelled rows of `fit`, in their order there (paper, Section 4.2).
        Equal rows have equal probabilities.
    unlabeled_rows_ : ndarray [n_u]
        Which rows of `fit` these are.
    class_prior_ : float
        Estimated share of positives among the unlabelled rows, or the share that was given.
    class_prior_interval_ : tuple of float
        Interval of that share (`puicl_model.class_prior.estimate`), within the range that was
        given; NaN where the weights' card has none and nothing was given.
    estimator_log_odds_ : ndarray [n_estimators, n_u]
        Log-odds of each pass, which are averaged. Passes that cannot differ (networks that do not
        see the order of columns, tables that fit as a whole) are run once and repeated here as
        often as they count.
    column_orders_ : list of ndarray
        The columns of each view of the table that was run: after preprocessing, of the axes, or of
        the rotations one after the other, as many of each as there are columns.
    preprocessor_ : transformer or None
        What turns the table into numbers.
    report_ : dict
        Sizes, kinds of columns, class prior, and `warnings`: reasons not to trust the answer.
    n_features_in_, feature_names_in_
        As in scikit-learn.
    """

    def __init__(
        self,
        model: str | Path | None = None,
        *,
        n_estimators: int = 16,
        scalings: Literal["auto"] | Sequence[str] = "auto",
        columns: Literal["random", "relevant", "all"] = "random",
        blend: Literal["trees"] | None = None,
        positive_label: Any = None,
        preprocessing: Any = "auto",
        categorical_features: Sequence[int | str] | None = None,
        random_state: int | np.random.RandomState | None = 0,
        device: str = "auto",
        precision: Literal["float32", "bfloat16"] = "float32",
        n_threads: int | None = None,
        batch_rows: int = 1024,
        keep_context: bool = False,
        verbose: bool | None = None,
    ):
        self.model = model
        self.n_estimators = n_estimators
        self.scalings = scalings
        self.columns = columns
        self.blend = blend
        self.positive_label = positive_label
        self.preprocessing = preprocessing
        self.categorical_features = categorical_features
        self.random_state = random_state
        self.device = device
        self.precision = precision
        self.n_threads = n_threads
        self.batch_rows = batch_rows
        self.keep_context = keep_context
        self.verbose = verbose

    def fit(self, X: Any, s: Any, class_prior: float | tuple[float, float] | None = None) -> Self:
        """Read the table `X` [n, d] with the labels `s` [n].

        X: numbers, booleans, text, dates, with missing cells; numpy, pandas, polars, Arrow, lists.
        s: 1 or True marks a labelled positive; 0, -1, False or a missing value an unlabelled row;
        see also `positive_label`. class_prior: the share of positives among the unlabelled rows,
        between 0 and 1, if known, or a range (least, most) for it, such as (0, 0.5) where positives
        are the rarer class. The mean of the probabilities is then this share, or the estimate
        within the range (`puicl_model.class_prior.estimate_within`); the order of the rows stays.

        Raises `ValueError` for infinite cells, other values in `s`, no labelled positive or no
        unlabelled row, parameters out of range, and where the weights cannot be read; `TypeError`
        for sparse matrices.
        """
        before = dict(vars(self))
        try:
            with tiny_to_zero():
                task = self._prepare(X, s, class_prior)
                if "_new_rows" in before:  # tables before and now may not fit beside each other
                    self._new_rows.forget()
                with threads(self.n_threads):
                    (scores,) = score_unlabeled(
                        self.network_, [task.plan], self.verbose, self.keep_context
                    )
                self._finish(task, scores)
        except BaseException:  # a fit that was refused or stopped leaves the one before as it was
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        for doubt in self.report_["warnings"]:
            tell(doubt)
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Log-odds [m] of being positive for the rows of `X` [m, d]; see `predict_proba`."""
        check_is_fitted(self)
        with tiny_to_zero():
            X = self._preprocess(X, reset=False)
            keys = row_keys(X)
            place = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
            log_odds = self._key_log_odds[place]
            new = np.flatnonzero(self._keys[place] != keys)
            if len(new):
                log_odds[new] = self._log_odds_of_new(X[new])
        return log_odds

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities [m, 2] of (negative, positive) for the rows of `X` [m, d].

        A row equal to an unlabelled row of `fit`, as the network sees it, gets its
        `unlabeled_proba_`. Any other row attends to the fitted context and itself, and nothing
        attends to it: its score is a function of the fit and the row alone. So are labelled rows
        of `fit`: they are scored as if nobody knew that they are positive.
        """
        positive = _probability(self.decision_function(X))
        return np.column_stack([1 - positive, positive])

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithms [m, 2] of `predict_proba`, exact where a probability is nearly 0."""
        log_odds = self.decision_function(X)
        return -np.column_stack([np.logaddexp(0, log_odds), np.logaddexp(0, -log_odds)])

    def predict(self, X: Any) -> np.ndarray:
        """Class 1 where P(positive) is at least one half, else 0, for the rows of `X` [m, d]."""
        positive = self.decision_function(X) >= 0
        return self.classes_[positive.astype(int)]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Area under the ROC curve of P(positive) for `y` [m], which says positive as `s` did.

        That is by `positive_label` where it was given; booleans mean what they say all the same.
        With true classes that is the AUC. With PU labels of rows that were not in the fit, and
        labelled positives drawn at random, it is alpha / 2 + (1 - alpha) AUC, with alpha the share
        of positives among the unlabelled rows: too low, but ordering models as the AUC does.
        Accuracy has no such use: PU labels are no classes. Raises `ValueError` where `y` holds
        one kind alone, or something else.
        """
        booleans = np.asarray(y).dtype == bool
        truth = labeled_mask(y, None if booleans else self.positive_label, name="y")
        if truth.all() or not truth.any():
            raise ValueError("score needs rows of both kinds in y")
        return float(roc_auc_score(truth, self.decision_function(X), sample_weight=sample_weight))

    def save(self, path: str | Path) -> None:
        """Write the fitted classifier, weights and rows of its table included.

        See `puicl_model.saving`.
        """
        from puicl_model.saving import save_classifier

        save_classifier(self, path)

    @classmethod
    def load(cls, path: str | Path, device: str | None = None) -> Self:
        """The classifier that `save` wrote, with the same answers; nothing is unpickled.

        device: instead of the one that it has, which may not be there.
        """
        from puicl_model.saving import load_classifier

        return load_classifier(cls, path, device)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        # Two classes only; and with PU labels, accuracy on them is no measure.
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.poor_score = True
        return tags

    def _prepare(
        self,
        X: Any,
        s: Any,
        class_prior: float | tuple[float, float] | None,
        loaded: tuple[PUICL, dict[str, Any]] | None = None,
    ) -> "_Task":
        """Everything of `fit` before the forward passes; `loaded`: network and card, if at hand."""
        check_parameters(self, class_prior)
        table = read_table(self, X, reset=True)
        refuse_another_order(X, s)
        labeled = labels_of_rows(s, len(table), self.positive_label)
        if self.blend == "trees":
            check_enough(labeled)
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        rng = np.random.default_rng(seed)
        if loaded is None:
            self._load_network()
        else:
            self.network_, self.model_card_ = loaded

        X = self._preprocess(X, reset=True)
        relevance = column_relevance(X, labeled)
        plan = plan_table(
            X,
            labeled,
            relevance,
            n_estimators=self.n_estimators,
            scalings=self.scalings if isinstance(self.scalings, str) else tuple(self.scalings),
            columns=self.columns,
            orders_matter=self.network_.orders_matter,
            trained=TrainedRange.from_card(self.model_card_),
            rng=rng,
            rotations=np.random.default_rng((seed, 1)),
            recodings=self._other_codes(),
        )
        return _Task(X, labeled, relevance, plan, rng, class_prior)

    def _finish(self, task: "_Task", scores: Scores) -> None:
        """Everything of `fit` after the forward passes; its warnings are left to the caller."""
        X, labeled, plan = task.X, task.labeled, task.plan
        self._new_rows = NewRows(self.network_, keep_references(plan), plan.scalings, scores.read)
        self._keys, first, inverse = np.unique(
            row_keys(plan.unlabeled), return_index=True, return_inverse=True
        )
        self.estimator_log_odds_ = log_odds = _mean_by(scores.log_odds, inverse)
        log_odds = log_odds.mean(axis=0)

        self._students = self._blend = None
        if self.blend == "trees" and not levels_alone(X):
            answers = taught_by(log_odds, labeled)
            self._students, taught = Students.taught(X, labeled, answers, task.rng)
            self._blend = Blend(log_odds, _mean_by(taught[:, ~labeled], inverse))
            log_odds = self._blend.fitted
        own = self._set_prior(log_odds, int(labeled.sum()), task.class_prior)
        log_odds = log_odds + self._offset
        self._key_log_odds = log_odds[first]
        self.unlabeled_proba_ = _probability(log_odds)
        runs = [views for _, views in plan.runs()]
        self.column_orders_ = [view.columns for views in runs for view in views]
        self.unlabeled_rows_ = np.flatnonzero(~labeled)
        self.classes_ = np.array([0, 1])
        self.report_ = make_report(self, X, task.relevance, runs, task.class_prior, own)

    def _log_odds_of_new(self, X: np.ndarray) -> np.ndarray:
        """Log-odds [m] of preprocessed rows [m, w], as if none of them had been in the fit."""
        with threads(self.n_threads):
            each = self._new_rows(X, self.batch_rows, self.verbose, self.keep_context)
        scores = each.mean(axis=0)
        if self._blend is not None and self._students is not None:
            scores = self._blend(scores, self._students(X))
        return scores + self._offset

    def _load_network(self) -> None:
        device = resolve_device(self.device)
        self.network_, self.model_card_ = load_model(find_weights(self.model))
        set_precision(self.network_.to(device), self.precision)

    def _preprocess(self, X: Any, *, reset: bool) -> np.ndarray:
        """[n, w] finite float64."""
        if reset:
            self.preprocessor_ = None
            if isinstance(self.preprocessing, str):
                self.preprocessor_ = TablePreprocessor(self.categorical_features)
            elif self.preprocessing is not None:
                self.preprocessor_ = clone(self.preprocessing)
        table = None if reset else read_table(self, X, reset=False)
        if isinstance(self.preprocessor_, TablePreprocessor):
            # What it would say once more is left out without `warnings.catch_warnings`, which is
            # for one thread: of several, one may leave the others' filters behind for good.
            if table is None:
                X = self.preprocessor_.fit_quietly(X)  # its warnings are the report's first
            else:
                X = self.preprocessor_.transform_read(table)
        elif self.preprocessor_ is not None:
            X = (self.preprocessor_.fit_transform if reset else self.preprocessor_.transform)(X)
        # Its first look sums the cells up; dispatch would leave tensors as they are.
        with (
            np.errstate(over="ignore", invalid="ignore"),
            config_context(array_api_dispatch=False),
        ):
            X = check_array(X, dtype=np.float64) + 0.0  # -0.0 is 0.0
        if reset:
            self._width = X.shape[1]
        elif X.shape[1] != getattr(self, "_width", X.shape[1]):  # a loaded one's cannot vary
            raise ValueError(
                f"the preprocessing made {X.shape[1]} columns of these rows and {self._width} of "
                "those of the fit"
            )
        return X

    def _other_codes(self) -> dict[int, np.ndarray]:
        """See `TablePreprocessor.codes_by_count`."""
        if isinstance(self.preprocessor_, TablePreprocessor):
            return self.preprocessor_.codes_by_count()
        return {}

    def _set_prior(
        self, log_odds: np.ndarray, n_labeled: int, class_prior: float | tuple[float, float] | None
    ) -> tuple[float, float]:
        """The class prior, and the shift to it; returns the interval that the table alone gives."""
        found = priors.estimate(log_odds, n_labeled, self.model_card_)
        own = found[1:]
        if isinstance(class_prior, tuple | list):
            least, most = map(float, class_prior)
            found = priors.estimate_within(log_odds, n_labeled, self.model_card_, least, most)
        elif class_prior is not None:
            found = (float(class_prior),) * 3
        self.class_prior_, *ends = found
        self.class_prior_interval_ = tuple(ends)
        # Probabilities whose mean is the class prior: a given one moves them.
        self._offset = priors.shift_to(log_odds, found[0]) if class_prior is not None else 0.0
        return own


@dataclass(frozen=True)
class _Task:
    """A fit between its halves: the table X [n, w], preprocessed, and what belongs to it."""

    X: np.ndarray
    labeled: np.ndarray
    relevance: np.ndarray
    plan: Plan
    rng: np.random.Generator
    class_prior: float | tuple[float, float] | None


def _mean_by(values: np.ndarray, group: np.ndarray) -> np.ndarray:
    """`values` [k, n] with each replaced by its group's mean along n."""
    counts = np.bincount(group)
    if len(counts) == values.shape[1]:
        return values
    return np.stack([(np.bincount(group, row) / counts)[group] for row in values])


def _probability(log_odds: np.ndarray) -> np.ndarray:
    return np.clip(expit(log_odds), 1e-12, 1 - 1e-12)
