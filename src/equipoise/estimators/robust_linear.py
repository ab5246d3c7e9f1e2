"""What linear models over a set of class weightings share: everything but the loss."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.svm import LinearSVC
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted, validate_data

from equipoise.arrays import Indices, Matrix, NDArray, Vector, is_tensor, norm, to_numpy
from equipoise.blocks.answers import streamed
from equipoise.blocks.memory import check_memory
from equipoise.blocks.partitions import is_dask
from equipoise.blocks.sources import as_blocks, is_sliced
from equipoise.decisions.summary import (
    FEW_ROWS,
    DecisionSummary,
    Summarised,
    SummaryTable,
)
from equipoise.decisions.tune import POOLING
from equipoise.estimators.adapting import Adaptable
from equipoise.estimators.linear_decisions import DECISIONS, tuned_decisions
from equipoise.estimators.tensor_rows import handed_back, labels_of, scores_of
from equipoise.estimators.unknown_parameters import RefusesUnknownParameters
from equipoise.exceptions import (
    FewRowsWarning,
    InactiveCapsWarning,
    InvalidInputError,
    InvalidParameterError,
    NotConvergedWarning,
    SeparableDataWarning,
    unchanged_on_failure,
    warn,
)
from equipoise.goals.labelled_predictions import BLOCK_VALUES
from equipoise.goals.registry import as_training_set
from equipoise.losses import TrainedLoss
from equipoise.objectives import (
    Objective,
    OtherLosses,
    RowsInBlocks,
    RowsInMemory,
    TrainingRows,
    offered,
)
from equipoise.objectives.torch_rows import RowsOnDevice, memory_in_words
from equipoise.sets import MassSet, Uncertainty
from equipoise.solvers import Limits, Problem, Progress, Solution, Status, run
from equipoise.text import share_text
from equipoise.validation.labels import complete_labels, one_label_per_row
from equipoise.validation.numbers import (
    check_count,
    check_flag,
    check_number,
    check_verbosity,
    check_word,
)
from equipoise.weights.by_class import ByClass
from equipoise.weights.priors import check_prior, weights_of

# _DIVERGING: change of the coefficients in the last step of a converged fit, relative to their
# norm, from which the fit has no finite optimum; of a finite one it is about sqrt(tol).
_DIVERGING = 1e-2
# _SAME_RISK: excess of the worst class over the robust risk, in tolerances of the fit, up to which
# the two are the same risk.
_SAME_RISK = 10.0
# _MUCH_MASS: share of the objective beyond its share of the rows from which a class of fewer than
# FEW_ROWS rows is likely to be memorised.
_MUCH_MASS = 0.1

# Advice by how a solve ended.
_ADVICE = {
    Status.MAX_ITER: "Raise max_iter, raise tol, or scale the features.",
    Status.STALLED: "Raise tol, centre and scale the features, or give them in float64.",
    Status.UNCONFIRMED: "Use a finite C, or drop columns that nearly coincide with others.",
}


@dataclass(eq=False, repr=False)
class RobustLinearModel(
    Adaptable,
    RefusesUnknownParameters,
    Summarised,
    ClassifierMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
    ABC,
):
    """A linear model of least worst weighted risk; a subclass says of which loss.

    Use it as the base of a linear model of another loss.
    """

    goal: Uncertainty | str | None = None
    _: KW_ONLY
    C: float = 1.0
    fit_intercept: bool = True
    tol: float = 1e-6
    max_iter: int = 1000
    solver: str = "auto"
    decisions: str = "argmax"
    pooling: float = POOLING
    class_prior: Any = None
    adjustment: float | None = None
    warm_start: bool = False
    memory: int | str = "1 GiB"
    verbose: int = 0

    # The estimator of scikit-learn that predicts in the same way.
    plain_kind: ClassVar[type] = LinearSVC

    @abstractmethod
    def _trained_loss(self) -> TrainedLoss:
        """The loss whose class risks are minimised."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to rows ``X`` with labels ``y``.

        If anything interrupts the fit, the estimator is left as it was.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features), or Blocks
            Features; float32 data stay float32. Out-of-core data (:mod:`equipoise.blocks`), and
            rows of a memory map or of another array that is read in slices and is larger than
            half of ``memory``, are read again for every pass, a few at a time. Torch tensors and
            CuPy arrays stay on their device, and the model comes back in their library. Partitions
            of Dask arrays and DataFrames stay with the workers that hold them.
        y : array-like of shape (n_rows,)
            Labels; those of blocks come with them, those of Dask's rows are in a Dask collection.
        sample_weight : array-like of shape (n_rows,), optional
            Weights of the rows.

        Returns
        -------
        self : the fitted estimator
        """
        with unchanged_on_failure(self), memory_in_words(X):
            self._fit(X, y, sample_weight)
        return self

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> None:
        check_number(self.C, "C", "(0, inf]")
        loss = self._trained_loss()
        if np.isinf(self.C) and not loss.convex:
            raise InvalidParameterError(
                f"loss={loss!r} needs a finite C, got {self.C}: without a penalty, the loss "
                "vanishes as the coefficients grow. Give C=1.0, for example."
            )
        limits = Limits(
            check_number(self.tol, "tol", "(0, inf)"), check_count(self.max_iter, "max_iter")
        )
        fit_intercept = check_flag(self.fit_intercept, "fit_intercept")
        progress = Progress(check_verbosity(self.verbose))
        tuned = check_word(self.decisions, "decisions", DECISIONS) == "tuned"
        rows = self._rows(X, y, sample_weight)
        loss, classes, totals = loss.for_classes(rows.totals), rows.classes, rows.totals
        prior = np.asarray(totals / totals.sum())
        if self.class_prior is not None:
            prior = check_prior(self.class_prior, classes, name="class_prior")
        masses = as_training_set(self.goal).resolve(prior, classes)
        total = float(totals.sum())
        if not self.C * total > np.finfo(np.float64).tiny:
            raise InvalidParameterError(
                f"C times the sum of the sample weights must not vanish, got C = {self.C:.6g} and "
                f"a sum of {total:.6g}."
            )
        ridge = 1 / (float(self.C) * total)
        with rows.open(fit_intercept=fit_intercept, ridge=ridge, loss=loss) as objective:
            objective.offsets = self._offsets(rows.counts)
            problem = Problem(objective, masses, ridge)
            start, cold = self._start(objective, masses, prior, classes)
            way = self._way(problem, loss)
            inner = limits
            if objective.precision != np.float64:
                # Half the tolerance leaves room for rounding in single precision.
                inner = replace(limits, tol=limits.tol / 2)
            solution = run(problem, self.solver, start, inner, progress, cold=cold, way=way)
            solution = solution.as_returned(problem, limits)
            back = partial(handed_back, like=X) if is_tensor(X) else np.asarray
            self._take(problem, solution, prior, classes, back)
        if isinstance(rows, RowsInBlocks):
            self.n_passes_ = rows.stream.n_passes
        elif hasattr(self, "n_passes_"):
            del self.n_passes_
        # Where the set does not hold the worst case back from the worst class, the model and its
        # worst case are optimal over the whole simplex as well.
        excess = float(solution.risks.max()) - self.robust_risk_
        self.caps_active_ = excess > _SAME_RISK * limits.target(solution.objective)
        offsets, weights = np.zeros(len(classes)), None
        if tuned and not masses.is_point:
            offsets, weights = tuned_decisions(self, loss, X, y, sample_weight)
        self.decision_offsets_ = ByClass(offsets, classes)
        self.__dict__.pop("tuned_", None)
        if weights is not None:
            self.tuned_ = weights
        self._warn(solution, limits, problem, rows.counts)

    def _way(self, problem: Problem, loss: TrainedLoss) -> list[Problem]:
        """Problems with easier losses that lead to a loss that is not convex."""
        if not loss.way:
            return []
        rows: OtherLosses = offered(problem.objective, OtherLosses, user=f"loss={loss!r}")
        return [replace(problem, objective=rows.with_loss(other)) for other in loss.way]

    def _rows(self, X: Any, y: Any, sample_weight: Any) -> TrainingRows:
        """The rows to fit to, where they are."""
        memory = check_memory(self.memory)
        if is_tensor(X):
            on_device = RowsOnDevice(X, y, sample_weight, memory)
            validate_data(self, X, skip_check_array=True)
            return on_device
        blocks = as_blocks(X, y, sample_weight, memory)
        if blocks is None:
            X, y = (part[:] if is_sliced(part) else part for part in (X, y))
            y = complete_labels(one_label_per_row(y))
            X, y = validate_data(self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32])
            return RowsInMemory(X, y, sample_weight, memory)
        if self.decisions == "tuned":
            raise InvalidInputError(
                "decisions='tuned' needs rows in memory, got out-of-core data: fit with "
                "decisions='argmax', and give predictions for other rows to tune_weights."
            )
        rows = RowsInBlocks(blocks, memory)
        self.n_features_in_ = rows.n_features
        if blocks.columns is not None:
            self.feature_names_in_ = np.array(blocks.columns, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        return rows

    def _offsets(self, counts: Indices) -> Vector | float:
        """What is added to the class risks."""
        if self.adjustment is None:
            return 0.0
        adjustment = check_number(self.adjustment, "adjustment", "[0, inf)")
        return np.asarray(adjustment / np.sqrt(counts))

    def _start(
        self, objective: Objective, masses: MassSet, prior: Vector, classes: NDArray[Any]
    ) -> tuple[tuple[Vector, Vector], bool]:
        """Parameters and masses to start from, and whether they know nothing yet."""
        known = self.warm_start and np.array_equal(getattr(self, "classes_", []), classes)
        if known and objective.unpack(np.zeros(objective.size))[0].shape == self.coef_.shape:
            mass = masses.project(np.asarray(self.worst_case_masses_))
            theta = objective.pack(to_numpy(self.coef_), to_numpy(self.intercept_))
            return (objective.vector(theta), mass), False
        return (objective.vector(np.zeros(objective.size)), masses.project(prior)), True

    def _take(
        self,
        problem: Problem,
        solution: Solution,
        prior: Vector,
        classes: NDArray[Any],
        back: Callable[[Matrix], Any],
    ) -> None:
        """Keep what the solve found, the model as ``back`` hands it to the user."""
        coef, intercept = problem.objective.model(solution.theta)
        self.classes_, self.coef_, self.intercept_ = classes, back(coef), back(intercept)
        self.class_prior_ = ByClass(prior, classes)
        self.class_risks_ = ByClass(solution.risks - problem.objective.offsets, classes)
        self.worst_case_masses_ = ByClass(solution.mass, classes)
        self.worst_case_weights_ = ByClass(weights_of(solution.mass, prior), classes)
        self.robust_risk_ = float(problem.masses.support(solution.risks))
        self.objective_ = float(solution.objective)
        self.lower_bound_ = float(solution.lower_bound)
        self.duality_gap_ = float(solution.gap)
        self.n_iter_ = max(1, solution.n_iter)
        self.n_evaluations_ = solution.n_evaluations
        self.status_, self.message_ = solution.status.name.lower(), solution.message
        if problem.masses.is_simplex:
            self.message_ += " The set is the whole simplex: the worst-class problem."
        columns = zip(*solution.history, strict=True)
        names = solution.history[0]._fields
        self.history_ = {n: np.array(column) for n, column in zip(names, columns, strict=True)}

    def _warn(self, solution: Solution, limits: Limits, problem: Problem, rows: Indices) -> None:
        masses = problem.masses
        if not solution.status.converged:
            target = limits.target(solution.objective)
            gap = f"The gap is {solution.gap:.3g}, the target was {target:.3g}, "
            warn(
                f"{solution.message} {gap if np.isfinite(solution.gap) else 'It stopped '}"
                f"after {solution.n_iter} iterations. {_ADVICE[solution.status]}",
                NotConvergedWarning,
            )
        if np.isinf(self.C) and _diverges(solution, problem.least, self._trained_loss()):
            barred = np.any(masses.bounds[1] <= 0)
            reason = "a class can carry no mass" if barred else "some classes can be separated"
            warn(
                f"C is infinite and {reason}: the optimum lies at infinity, and the parameters are "
                f"those of a fit stopped at a risk of {self.robust_risk_:.2g}. Use a finite C.",
                SeparableDataWarning,
            )
        goal = self.goal
        # A set without parameters is meant as it is.
        if masses.is_simplex and isinstance(goal, Uncertainty) and goal.get_params():
            warn(
                f"The bounds of {goal!r} bind nowhere for these class priors: this is exactly the "
                "worst-class problem. Use WorstClass() to say so, or tighten the set.",
                InactiveCapsWarning,
            )
        much = _MUCH_MASS + rows / rows.sum()
        heavy = (rows < FEW_ROWS) & (solution.mass > much) & (not masses.is_point)
        for i in np.flatnonzero(heavy):
            name = self.classes_.tolist()[i]
            warn(
                f"Class {name!r} has {rows[i]} rows but carries {solution.mass[i]:.0%} of the "
                f"objective (weight {self.worst_case_weights_[name]:.3g}): the fit may memorise "
                "these rows. Cap its weight (a larger alpha), regularise more (a smaller C), or "
                "collect more rows.",
                FewRowsWarning,
            )

    @streamed
    def decision_function(self, X: Any) -> Any:
        """Scores of the rows: one each for two classes, else one per class.

        ``decision_offsets_`` are added to them; for two classes, their difference.
        """
        return self._scores(X, self._shifts)

    def _scores(self, X: Any, shifts: Vector) -> Any:
        """Scores of the fit, with shifts added to them."""
        check_is_fitted(self)
        intercept = to_numpy(self.intercept_) + shifts
        if is_tensor(X):
            return scores_of(self, X, intercept)
        X = validate_data(self, X, reset=False, accept_sparse="csr", dtype=[np.float64, np.float32])
        scores = _products(X, to_numpy(self.coef_)) + intercept
        return scores.ravel() if len(self.classes_) == 2 else scores

    @property
    def _shifts(self) -> Vector:
        """What decisions add to the scores of the fit."""
        check_is_fitted(self)
        offsets = np.asarray(self.decision_offsets_)
        return np.diff(offsets) if len(offsets) == 2 else offsets

    @streamed
    def predict(self, X: Any) -> Any:
        """The class of the highest score, offsets of the decisions included."""
        scores = self.decision_function(X)
        if is_tensor(scores):
            return labels_of(scores, self.classes_)
        best = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[best])

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The accuracy of ``predict``; that of Dask collections is computed."""
        if not is_dask(X):
            return float(super().score(X, y, sample_weight))
        weights = None if sample_weight is None else np.asarray(sample_weight)
        truth, predicted = np.asarray(y), np.asarray(self.predict(X))
        return float(accuracy_score(truth, predicted, sample_weight=weights))

    def summary(self) -> DecisionSummary | SummaryTable:
        """The classes, what the fit weighs them with, and how near it is to the optimum.

        Where decisions are tuned, recalls and precisions by class on approximately held-out rows,
        the same that the offsets were tuned on, before (most probable class) and after.
        """
        check_is_fitted(self)
        notes = {
            "largest weighted risk": f"{self.robust_risk_:.4g}",
            "objective": f"{self.objective_:.4g}, within {self.duality_gap_:.2g} of the optimum "
            f"({self.status_})",
            "fit": f"{self.history_['seconds'][-1]:.3g} s, {self.n_evaluations_} evaluations",
        }
        if hasattr(self, "tuned_"):
            return self.tuned_.summary().with_costs(**notes)
        header = "class", "share", "training risk", "worst-case weight", "share of the objective"
        shares = self.class_prior_
        columns = self.class_risks_.values(), self.worst_case_weights_.values()
        lines = [
            (str(name), share_text(p), f"{risk:.4g}", f"{weight:.4g}", share_text(p * weight))
            for (name, p), risk, weight in zip(shares.items(), *columns, strict=True)
        ]
        return SummaryTable(header, lines, notes)

    def to_sklearn(self) -> Any:
        """A fitted estimator of scikit-learn, with probabilities on the scale of the fit's weights.

        It has the same coefficients and predictions: a LogisticRegression where there are
        probabilities, which are those of ``predict_proba`` (not of the population), and a LinearSVC
        elsewhere, for any loss. ``decision_offsets_`` become part of its intercepts: where
        decisions are tuned, its probabilities are those that its predictions are the argmax of, and
        not those of this estimator.
        """
        check_is_fitted(self)
        twin = self.plain_kind(C=self.C, fit_intercept=self.fit_intercept, tol=self.tol)
        for name in ("classes_", "coef_", "intercept_", "feature_names_in_"):
            if hasattr(self, name):
                values = getattr(self, name)
                setattr(twin, name, to_numpy(values) if is_tensor(values) else values.copy())
        twin.intercept_ = twin.intercept_ + self._shifts
        twin.n_features_in_ = self.n_features_in_
        twin.n_iter_ = np.array([self.n_iter_], dtype=np.int32)
        return twin


def _products(X: Any, coef: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rows times coefficients in float64; float32 rows are converted a few at a time."""
    values = X.nnz if issparse(X) else X.size
    step = (
        max(1, BLOCK_VALUES * X.shape[0] // max(1, values)) if X.dtype != coef.dtype else X.shape[0]
    )
    starts = range(0, X.shape[0], step)
    parts = (X[start : start + step] for start in starts)
    return np.vstack([safe_sparse_dot(part, coef.T, dense_output=True) for part in parts])


def _diverges(solution: Solution, least: float, loss: TrainedLoss) -> bool:
    """Whether large parameters were still growing, or have left no risk of a loss that has some."""
    large = norm(solution.theta) > 1
    vanished = solution.objective - least < 1e-6 and not loss.reaches_zero
    return (large and _DIVERGING < solution.last_step < np.inf) or vanished
