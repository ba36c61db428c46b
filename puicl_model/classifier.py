"""`PUICLClassifier`: in-context positive-unlabeled learning as a scikit-learn estimator."""

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
from puicl_model.ensemble import NewRows, keep_references, row_keys
from puicl_model.inference import resolve_device
from puicl_model.labels import labeled_mask, labels_of_rows, refuse_another_order
from puicl_model.model import PUICL
from puicl_model.parameters import as_range, check_parameters
from puicl_model.plan import Plan, plan_table
from puicl_model.precision import set_precision
from puicl_model.preprocessing import TablePreprocessor, read_table
from puicl_model.process_settings import threads, tiny_to_zero
from puicl_model.report import make_report
from puicl_model.telling import tell
from puicl_model.trees import check_enough
from puicl_model.unlabeled import Scores, score_unlabeled
from puicl_model.weights import find_weights, load_model


class PUICLClassifier(ClassifierMixin, BaseEstimator):
    """Classify the unlabelled rows of a table in forward passes of a pretrained network.

    Nothing is trained on the table (except the students of `blend`): `fit` reads it as the
    network's context. A table larger than the network reads at once is split: its rows into random
    contexts, its columns into subsets. Run time grows linearly with the number of rows. Besides the
    table itself, memory holds one context, or several with up to 120,000 cells in total (2,000,000
    on a GPU).

    Parameters
    ----------
    model : str, Path or None
        Weights: either the name of weights shipped with the package (`puicl weights list`; None
        means "default"), or the path of a `model.safetensors` with its `model.json` beside it, as
        written by the trainer.
    n_estimators : int
        Number of forward passes over which a row's log-odds are averaged. 1 is a single forward
        pass, as in the paper, but with a scaling before the network's own. The first pass reads
        columns and rows in the given order. The other passes differ in

        - the order of the columns and the scaling; and, where the table does not fit as a whole,
          the contexts and the subsets of columns;
        - the sign of two-valued columns, negated at random in scalings that treat columns one by
          one. In a table of levels alone (at most ten values a column) where some column has more
          than two, every other pass negates all columns instead, provided that the network was
          trained on such tables (`prior.extensions.mirrored`);
        - the codes of unordered categories with more than three levels: alphabetical in half of
          the passes (two of every four in a scaling), by frequency in the other half
          (`TablePreprocessor.codes_by_count`).
    scalings : "auto" or sequence of str
        Scalings that the passes use in turn:

        - "standard", "robust", "quantile", "uniform" (ranks): each column by itself;
        - "principal", "principal_quantile", "principal_uniform": the principal axes of the columns
          in standard, quantile or uniform scaling. If the table has more columns than the network
          reads at once, passes alternate between the first ten and the first five axes;
        - "rotated", "rotated_quantile", "rotated_uniform": a random rotation of the columns in
          standard, quantile or uniform scaling, drawn anew for each pass;
        - "auto": "quantile", "principal", "rotated_quantile" and "standard" in turn. If the table
          has more columns than the network reads at once, "principal_quantile" replaces
          "standard". For tables of levels alone, "quantile" only. For networks that do not see the
          order of columns, three "quantile" and one "principal", whatever the table.

        Column orders and subsets are drawn after scaling, so from axes or rotated columns.
    columns : {"random", "relevant", "all"}
        How to draw subsets when there are more columns than the network reads at once: "random",
        or "relevant", which favours columns that alone separate labelled from unlabelled rows
        well. "all" reads all columns, and all principal axes, together.
    blend : {None, "trees"}
        "trees" averages the network's ranks with those of two students that learn its
        probabilities on the table: cross-fitted extremely randomised trees, and the mean over the
        nearest rows (twenty, or a tenth of the rows if that is fewer). Each student weighs a fifth,
        or less if it does not follow the network (`puicl_model.blend`). Tables of levels alone are
        not blended: in them the network recognises rules.
    positive_label : object or None
        The entry of `s` that marks labelled positives; all other entries mean unlabelled. None
        means 1 or True.
    preprocessing : "auto", None or a scikit-learn transformer
        "auto" is `TablePreprocessor(categorical_features)`; None requires finite numbers and
        leaves them unchanged; a transformer must return finite numbers.
    categorical_features : sequence of int or str, or of bool, or None
        Numeric columns that hold category codes, as names, positions or a mask. Only with "auto".
    random_state : int, RandomState or None
        Seed for all randomness.
    device : str
        Where the network runs: "auto" (a GPU if there is one), "cpu", "cuda", ...
    precision : {"float32", "bfloat16"}
        Precision of the network's blocks. "bfloat16" takes a third of the time on processors with
        AVX-512 BF16 and halves the memory of contexts. Rows are ranked as well as in float32, but
        individual probabilities change (docs/user_guide.md). Where bfloat16 would be slower,
        float32 is used instead, with a warning.
    n_threads : int or None
        Number of CPU threads for the network; None keeps PyTorch's setting.
    batch_rows : int
        Number of new rows scored together. Bounds memory; changes scores by rounding at most.
    keep_context : bool
        Whether `fit` keeps the network's activations for the table, so that new rows are scored
        without reading the table again. For each pass this takes about 4 bytes * rows read *
        (columns + 1) * embedding size * blocks, which may be gigabytes. If False, the table is read
        again for the first new rows, and its activations are kept as long as all those that the
        process keeps stay below 1 GB. Changes scores by rounding at most.
    verbose : bool or None
        Whether to show progress on stderr. None shows it on a terminal if the run takes long.

    Attributes
    ----------
    classes_ : ndarray [2]
        [0, 1]: negatives, positives.
    unlabeled_proba_ : ndarray [n_u]
        P(positive) of the unlabelled rows of `fit`, in table order (paper, Section 4.2). Equal
        rows have equal probabilities.
    unlabeled_rows_ : ndarray [n_u]
        Positions of these rows in the table given to `fit`.
    class_prior_ : float
        Share of positives among the unlabelled rows: estimated, or as given to `fit`.
    class_prior_interval_ : tuple of float
        Interval of that share (`puicl_model.class_prior.estimate`), within the range given to
        `fit`, if any. If a share was given, both ends are that share. NaN if the weights' card has
        no calibration and neither a share nor a range was given.
    estimator_log_odds_ : ndarray [n_estimators, n_u]
        Log-odds of each pass, before averaging. Passes that cannot differ (because the network does
        not see the order of columns and the table fits as a whole) are run once and repeated here.
    column_orders_ : list of ndarray
        For each view of the table that was run, the numbers of its columns: of the preprocessed
        columns, of the principal axes, or of the rotated columns. Rotations are numbered one after
        the other, w columns each for a table of w columns.
    preprocessor_ : transformer or None
        The fitted transformer from table to numbers.
    report_ : dict
        Plain data about the fit:

        - `warnings`: reasons not to trust the result;
        - `n_labeled`, `n_unlabeled`: numbers of rows;
        - `class_prior`, `class_prior_interval`, `class_prior_given`: as above, and what `fit` got;
        - `columns`: kind of each column; `network_columns`: names of the preprocessed columns;
        - `separation`: cross-validated AUC of a linear discriminant between labelled and unlabelled
          rows, NaN with few rows; `column_separation`: |2 AUC - 1| of each preprocessed column;
        - `forward_passes`, `largest_context`, `blend` (None if the table was not blended).
    network_, model_card_ : PUICL, dict
        The network, and the card of its weights.
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

        X: numbers, booleans, text and dates, also with missing cells, as a numpy array, a pandas or
        polars frame, an Arrow table or lists. s: 1 or True marks a labelled positive; 0, -1, False
        or a missing value marks an unlabelled row; see also `positive_label`. class_prior: the
        share of positives among the unlabelled rows, strictly between 0 and 1, if known; or a range
        (least, most) of it, such as (0, 0.5) if positives are the rarer class. The mean of the
        probabilities is then this share, or the estimate within the range
        (`puicl_model.class_prior.estimate_within`); the ranking of the rows does not change.

        Warns of each entry of `report_["warnings"]`. If it raises, an earlier fit stays in place.

        Raises `ValueError` for infinite cells, other values in `s`, no labelled positive or no
        unlabelled row, fewer than two rows of either kind with `blend="trees"`, parameters out of
        range, a frame and a series with the same index in another order, and (as `InputError`, a
        subclass) weights that cannot be read; `TypeError` for sparse matrices.
        """
        before = dict(vars(self))
        try:
            with tiny_to_zero():
                task = self._prepare(X, s, class_prior)
                if "_new_rows" in before:  # the old and the new context may not both fit in memory
                    self._new_rows.forget()
                with threads(self.n_threads):
                    (scores,) = score_unlabeled(
                        self.network_, [task.plan], self.verbose, self.keep_context
                    )
                self._finish(task, scores)
        except BaseException:  # a rejected or interrupted fit leaves the earlier one in place
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        for doubt in self.report_["warnings"]:
            tell(doubt)
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Log-odds [m] of being positive for the rows of `X` [m, d]; see `predict_proba`.

        Raises `NotFittedError` before `fit`, and `ValueError` if the columns of `X` are not those
        of the fit.
        """
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

        A row that equals an unlabelled row of `fit` after preprocessing gets that row's
        `unlabeled_proba_`. Any other row attends to the fitted context and itself, and nothing
        attends to it, so its score depends on the fit and the row alone. This includes labelled
        rows of `fit`, which are scored as if they were new rows without a label.
        """
        positive = _probability(self.decision_function(X))
        return np.column_stack([1 - positive, positive])

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithms [m, 2] of `predict_proba`, accurate even for probabilities close to 0."""
        log_odds = self.decision_function(X)
        return -np.column_stack([np.logaddexp(0, log_odds), np.logaddexp(0, -log_odds)])

    def predict(self, X: Any) -> np.ndarray:
        """Classes [m] of the rows of `X` [m, d]: 1 if P(positive) is at least 0.5, else 0."""
        positive = self.decision_function(X) >= 0
        return self.classes_[positive.astype(int)]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Area under the ROC curve of P(positive) on the rows of `X` [m, d] with labels `y` [m].

        `y` marks positives as `s` did in `fit`, by `positive_label` if it is set; booleans are
        always taken at face value. If `y` holds true classes, the result is the AUC. If it holds PU
        labels of rows outside the fit, with labelled positives drawn at random, the result is
        alpha / 2 + (1 - alpha) AUC, where alpha is the share of positives among the unlabelled
        rows: lower than the AUC, but models are ranked alike. Accuracy is no alternative, since PU
        labels are not classes. Raises `ValueError` if `y` holds one kind of row only, or other
        values.
        """
        booleans = np.asarray(y).dtype == bool
        truth = labeled_mask(y, None if booleans else self.positive_label, name="y")
        if truth.all() or not truth.any():
            raise ValueError("score needs rows of both kinds in y")
        return float(roc_auc_score(truth, self.decision_function(X), sample_weight=sample_weight))

    def save(self, path: str | Path) -> None:
        """Write the fitted classifier to `path`, including the weights and rows of its table.

        `load` reads it back. Raises `NotFittedError` before `fit`; `ValueError` for a transformer
        of the user's own as preprocessing and for parameters that are not plain data; and more, see
        `puicl_model.saving.save_classifier`.
        """
        from puicl_model.saving import save_classifier

        save_classifier(self, path)

    @classmethod
    def load(cls, path: str | Path, device: str | None = None) -> Self:
        """Read a classifier that `save` wrote; it gives the same answers. Nothing is unpickled.

        device: where to run the network, instead of on the saved device, which this machine may
        lack. Raises `InputError` if the file is missing, damaged or something else, or if the
        device is not available.
        """
        from puicl_model.saving import load_classifier

        return load_classifier(cls, path, device)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        # poor_score: accuracy on PU labels says little about the classifier.
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
        """Do the part of `fit` before the forward passes; `loaded`: network and card, if loaded."""
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
        return _Task(X, labeled, relevance, plan, rng, as_range(class_prior))

    def _finish(self, task: "_Task", scores: Scores) -> None:
        """Do the part of `fit` after the forward passes; the caller emits the report's warnings."""
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
        own = self._set_prior(log_odds, int(labeled.sum()), task.given)
        log_odds = log_odds + self._offset
        self._key_log_odds = log_odds[first]
        self.unlabeled_proba_ = _probability(log_odds)
        runs = [views for _, views in plan.runs()]
        self.column_orders_ = [view.columns for views in runs for view in views]
        self.unlabeled_rows_ = np.flatnonzero(~labeled)
        self.classes_ = np.array([0, 1])
        self.report_ = make_report(self, X, task.relevance, runs, task.given, own)

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
        """Preprocess X to finite float64 [n, w]; `reset` fits the preprocessor first."""
        if reset:
            self.preprocessor_ = None
            if isinstance(self.preprocessing, str):
                self.preprocessor_ = TablePreprocessor(self.categorical_features)
            elif self.preprocessing is not None:
                self.preprocessor_ = clone(self.preprocessing)
        table = None if reset else read_table(self, X, reset=False)
        if isinstance(self.preprocessor_, TablePreprocessor):
            # Not silenced with `warnings.catch_warnings`, which is not thread-safe: concurrent
            # fits could leave each other's filters in place for good.
            if table is None:
                X = self.preprocessor_.fit_quietly(X)  # the report repeats its warnings
            else:
                X = self.preprocessor_.transform_read(table)
        elif self.preprocessor_ is not None:
            X = (self.preprocessor_.fit_transform if reset else self.preprocessor_.transform)(X)
        # check_array first sums the cells, which may overflow; array API dispatch would return
        # tensors instead of numpy arrays.
        with (
            np.errstate(over="ignore", invalid="ignore"),
            config_context(array_api_dispatch=False),
        ):
            X = check_array(X, dtype=np.float64) + 0.0  # -0.0 is 0.0
        if reset:
            self._width = X.shape[1]
        elif X.shape[1] != getattr(self, "_width", X.shape[1]):  # a loaded one's is fixed
            raise ValueError(
                f"the preprocessing made {X.shape[1]} columns of these rows and {self._width} of "
                "those of the fit"
            )
        return X

    def _other_codes(self) -> dict[int, np.ndarray]:
        """`TablePreprocessor.codes_by_count`; empty for any other preprocessor."""
        if isinstance(self.preprocessor_, TablePreprocessor):
            return self.preprocessor_.codes_by_count()
        return {}

    def _set_prior(
        self, log_odds: np.ndarray, n_labeled: int, given: tuple[float, float] | None
    ) -> tuple[float, float]:
        """Set the class prior and the shift to it; return the interval from the table alone."""
        found = priors.estimate(log_odds, n_labeled, self.model_card_)
        own = found[1:]
        if given is not None:
            least, most = given
            found = (least,) * 3
            if least < most:
                found = priors.estimate_within(log_odds, n_labeled, self.model_card_, least, most)
        self.class_prior_, *ends = found
        self.class_prior_interval_ = tuple(ends)
        # Without a given prior, the mean probability already is the class prior.
        self._offset = priors.shift_to(log_odds, found[0]) if given is not None else 0.0
        return own


@dataclass(frozen=True)
class _Task:
    """State of a fit between `_prepare` and `_finish`; X [n, w] is the preprocessed table.

    given: the share of positives that `fit` was given, as a range (`as_range`).
    """

    X: np.ndarray
    labeled: np.ndarray
    relevance: np.ndarray
    plan: Plan
    rng: np.random.Generator
    given: tuple[float, float] | None


def _mean_by(values: np.ndarray, group: np.ndarray) -> np.ndarray:
    """`values` [k, n] with each value replaced by the mean over its `group` [n]."""
    counts = np.bincount(group)
    if len(counts) == values.shape[1]:
        return values
    return np.stack([(np.bincount(group, row) / counts)[group] for row in values])


def _probability(log_odds: np.ndarray) -> np.ndarray:
    return np.clip(expit(log_odds), 1e-12, 1 - 1e-12)
