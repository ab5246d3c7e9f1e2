"""Bad input gets a sentence that names the thing, the rule and the value, and changes nothing."""

import re
import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from equipoise import (
    FixedWeights,
    LabelCVaR,
    LabelHCVaR,
    PriorBall,
    PriorBox,
    RobustLogisticRegression,
    WeightBox,
    WeightHull,
    WorstClass,
    population_proba,
)
from equipoise.exceptions import (
    ClassMismatchError,
    EmptySetError,
    EquipoiseError,
    InvalidParameterError,
    NotConvergedWarning,
    SeparableDataWarning,
    UnidentifiableError,
)
from equipoise.solvers import SOLVERS, Problem


def draw(k=3, n=120, d=3, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % k
    return rng.normal(size=(k, d))[y] + 1.5 * rng.normal(size=(n, d)), y


X, Y = draw()
N = len(Y)


def with_value(value):
    broken = X.copy()
    broken[5, 1] = value
    return broken


def only(*rows):
    weights = np.zeros(N)
    weights[list(rows)] = 1
    return weights


BAD_DATA = {
    "nan": (with_value(np.nan), Y, None, "Input X contains NaN"),
    "infinity": (with_value(np.inf), Y, None, "Input X contains infinity"),
    "sparse nan": (sp.csr_matrix(with_value(np.nan)), Y, None, "Input X contains NaN"),
    "float32 infinity": (with_value(-np.inf).astype(np.float32), Y, None, "contains infinity"),
    "text": (np.array([["a", "b"]] * N), Y, None, "could not convert string to float"),
    "one dimension": (X[:, 0], Y, None, "Expected 2D array"),
    "no rows": (X[:0], Y[:0], None, "minimum of 1 is required"),
    "rows without labels": (X, Y[:-1], None, "inconsistent numbers of samples"),
    "nan label": (X, np.where(Y == 0, np.nan, Y), None, "missing labels, got nan in row 0"),
    "no labels": (X, None, None, "requires y to be passed"),
    "missing label": (X, np.where(Y == 0, None, "a"), None, "missing labels, got None in row"),
    "missing among names": (X, np.array(["a", "b", None] * 40), None, "labels, got None in row 2"),
    "nan among names": (X, np.array(["a", np.nan, "b"] * 40, object), None, "got nan in row 1"),
    "missing among numbers": (X, np.array([0, 1, None] * 40), None, "labels, got None in row 2"),
    "truths and numbers": (X, np.array([True, 0, 2] * 40, object), None, "one type, .* bool, int"),
    "mixed labels": (X, np.array([0, "a"] * 60, dtype=object), None, "one type, .* int, str"),
    "one class": (X, np.zeros(N), None, r"at least 2 classes, got only one class: \[0.0\]"),
    "one class by name": (X, np.full(N, "a"), None, r"only one class: \['a'\]"),
    "numbers to predict": (X, X[:, 0], None, "Unknown label type: continuous"),
    "two columns of labels": (X, np.c_[Y, Y], None, "y must be one class label per row"),
    "all distinct": (X, np.arange(N), None, r"as many classes as rows \(120\)"),
    "all distinct names": (X, [f"row {i}" for i in range(N)], None, "as many classes as rows"),
    "negative weight": (X, Y, np.where(Y == 0, -1.0, 1.0), "not be negative, got .* of -1"),
    "no weight": (X, Y, np.zeros(N), "positive in at least one row, got only zeros"),
    "a class without weight": (X, Y, (Y != 1) * 1.0, "zero for every row of class 1: remove"),
    "two classes without weight": (X, Y, (Y == 2) * 1.0, "every row of class 0, 1: remove"),
    "nan weight": (X, Y, np.where(Y == 0, np.nan, 1.0), "must hold finite values.* NaN"),
    "infinite weight": (X, Y, np.where(Y == 0, np.inf, 1.0), "largest value of inf"),
    "too few weights": (X, Y, np.ones(N - 1), r"each of the 120 rows, got .* shape \(119,\)"),
    "a table of weights": (X, Y, np.ones((N, 1)), r"each of the 120 rows, got .* \(120, 1\)"),
    "one weight": (X, Y, 2.0, r"each of the 120 rows, got an array of shape \(\)"),
    "huge weights": (X, Y, np.full(N, 1e308), "finite sum, got a largest value of 1e\\+308"),
    "tiny weights": (X, Y, np.full(N, 5e-324), "C times the sum of the sample weights"),
    "weights of text": (X, Y, ["a"] * N, "sample_weight must hold numbers"),
}

UNKNOWN = (ClassMismatchError, "names 7, not among the classes 0, 1, 2")
MISSING = (ClassMismatchError, "must name every class; 2 is missing")
LONG = (ClassMismatchError, r"for each of the 3 classes, got an array of shape \(4,\)")

BAD_PARAMETERS = {
    "alpha 0": ({"goal": LabelCVaR(0)}, InvalidParameterError, "alpha .* got 0"),
    "alpha 1.5": ({"goal": LabelCVaR(1.5)}, InvalidParameterError, "alpha .* got 1.5"),
    "alpha nan": ({"goal": LabelCVaR(np.nan)}, InvalidParameterError, "alpha .* got nan"),
    "alpha text": ({"goal": LabelCVaR("0.1")}, InvalidParameterError, "alpha .* got '0.1'"),
    "c": ({"goal": LabelHCVaR(c=2)}, InvalidParameterError, r"c must .* \(0, 1\], got 2"),
    "kappa": ({"goal": LabelHCVaR(kappa=0)}, InvalidParameterError, "kappa must .* got 0"),
    "alphas": ({"goal": LabelHCVaR(alphas=[0.1, -1, 1])}, InvalidParameterError, "class 1"),
    "radius": ({"goal": PriorBall(-1)}, InvalidParameterError, "radius must .* got -1"),
    "divergence": ({"goal": PriorBall(1, "x")}, InvalidParameterError, "divergence must"),
    "no weightings": ({"goal": WeightHull([])}, InvalidParameterError, "at least one"),
    "goal": ({"goal": 0.1}, InvalidParameterError, "goal must .* got 0.1"),
    "name": ({"goal": "robust"}, InvalidParameterError, "one of the names .* got 'robust'"),
    "unknown class": ({"goal": FixedWeights({0: 1, 1: 1, 2: 1, 7: 1})}, *UNKNOWN),
    "missing class": ({"goal": FixedWeights({0: 1, 1: 1})}, *MISSING),
    "long": ({"goal": FixedWeights([1, 1, 1, 1])}, *LONG),
    "unknown in a box": ({"goal": WeightBox(upper={7: 2})}, *UNKNOWN),
    "unknown in a hull": ({"goal": WeightHull([{0: 1, 1: 1, 2: 1, 7: 1}])}, *UNKNOWN),
    "unknown centre": ({"goal": PriorBall(1, center={0: 0.5, 1: 0.5, 7: 0})}, *UNKNOWN),
    "empty caps": ({"goal": WeightBox(upper=0.5)}, EmptySetError, "sum of 0.5"),
    "empty floors": ({"goal": WeightBox(lower=1.5)}, EmptySetError, "sum of 1.5"),
    "empty priors": ({"goal": PriorBox(upper=0.2)}, EmptySetError, "sum of 0.6"),
    "empty levels": ({"goal": LabelHCVaR(alphas=2.0)}, EmptySetError, "sum of 0.5"),
    "C 0": ({"C": 0}, InvalidParameterError, r"C must be a number in \(0, inf\], got 0"),
    "C tiny": ({"C": 1e-320}, InvalidParameterError, "must not vanish, got C = .*e-321?"),
    "C negative": ({"C": -1.0}, InvalidParameterError, "C must .* got -1"),
    "C nan": ({"C": np.nan}, InvalidParameterError, "C must .* got nan"),
    "C text": ({"C": "1"}, InvalidParameterError, "C must .* got '1'"),
    "C None": ({"C": None}, InvalidParameterError, "C must .* got None"),
    "C bool": ({"C": True}, InvalidParameterError, "C must .* got True"),
    "tol 0": ({"tol": 0}, InvalidParameterError, r"tol must be a number in \(0, inf\), got 0"),
    "tol negative": ({"tol": -1e-6}, InvalidParameterError, "tol must .* got -1e-06"),
    "tol infinite": ({"tol": np.inf}, InvalidParameterError, "tol must .* got inf"),
    "tol nan": ({"tol": np.nan}, InvalidParameterError, "tol must .* got nan"),
    "max_iter 0": ({"max_iter": 0}, InvalidParameterError, "max_iter must .* at least 1, got 0"),
    "max_iter 1.5": ({"max_iter": 1.5}, InvalidParameterError, "max_iter must .* got 1.5"),
    "solver": ({"solver": "lbfgs"}, InvalidParameterError, "solver must .* 'auto', .* got 'lbfgs'"),
    "solver list": ({"solver": ["auto"]}, InvalidParameterError, r"solver must .* got \['auto'\]"),
    "intercept": ({"fit_intercept": 2}, InvalidParameterError, "fit_intercept must .* got 2"),
    "verbose": ({"verbose": "yes"}, InvalidParameterError, "verbose must .* got 'yes'"),
    "prior sum": ({"class_prior": [0.5, 0.2, 0.2]}, InvalidParameterError, "sum to 1, got .* 0.9"),
    "prior sign": ({"class_prior": [1.5, -0.5, 0]}, InvalidParameterError, "at least 0, got"),
    "prior nan": ({"class_prior": [np.nan, 0.5, 0.5]}, InvalidParameterError, "finite values"),
    "prior text": ({"class_prior": "balanced"}, InvalidParameterError, "class_prior must .* 'bal"),
    "prior long": ({"class_prior": [0.25] * 4}, *LONG),
    "prior unknown": ({"class_prior": {0: 0.5, 1: 0.5, 2: 0, 7: 0}}, *UNKNOWN),
    "prior missing": ({"class_prior": {0: 0.5, 1: 0.5}}, *MISSING),
}


def frozen(estimator):
    """What an estimator is, to compare before and after."""
    return {
        name: np.array(value).tolist()
        for name, value in vars(estimator).items()
        if name.endswith("_") and name != "history_"
    }


def assert_refused(estimator, error, match, X, y, sample_weight=None):
    before, names = frozen(estimator), list(vars(estimator))
    with pytest.raises(error, match=match):
        estimator.fit(X, y, sample_weight=sample_weight)
    assert list(vars(estimator)) == names and frozen(estimator) == before


@pytest.mark.filterwarnings("ignore:The number of unique classes is greater than 50%")
@pytest.mark.parametrize("case", BAD_DATA)
def test_bad_data_are_refused_and_nothing_changes(case):
    bad, y, weights, match = BAD_DATA[case]
    # Before the first fit, and after one.
    assert_refused(RobustLogisticRegression(WorstClass()), ValueError, match, bad, y, weights)
    fitted = RobustLogisticRegression(WorstClass()).fit(X[:, :2], Y)
    assert_refused(fitted, ValueError, match, bad, y, weights)
    assert fitted.n_features_in_ == 2


@pytest.mark.parametrize("case", BAD_PARAMETERS)
def test_bad_parameters_are_refused_and_nothing_changes(case):
    parameters, error, match = BAD_PARAMETERS[case]
    clf = RobustLogisticRegression(WorstClass()).fit(X, Y)
    assert_refused(clf.set_params(**parameters), error, match, X, Y)
    assert issubclass(error, EquipoiseError) and issubclass(error, ValueError)


@pytest.mark.parametrize("case", BAD_PARAMETERS)
def test_messages_are_sentences(case):
    parameters, error, _ = BAD_PARAMETERS[case]
    with pytest.raises(error) as caught:
        RobustLogisticRegression(**parameters).fit(X, Y)
    assert re.fullmatch(r"[A-Za-z][\s\S]*\.", str(caught.value)) and len(str(caught.value)) < 300


def test_constructors_check_nothing():
    for parameters, _, _ in BAD_PARAMETERS.values():
        RobustLogisticRegression(**parameters)


@pytest.mark.parametrize("method", ["predict", "predict_proba"])
def test_unfitted_estimators_say_so(method):
    with pytest.raises(NotFittedError, match="not fitted"):
        getattr(RobustLogisticRegression(), method)(X)
    with pytest.raises(NotFittedError, match="not fitted"):
        RobustLogisticRegression().to_sklearn()
    with pytest.raises(NotFittedError, match="not fitted"):
        population_proba(RobustLogisticRegression(), X)


def test_rows_to_predict_are_checked():
    clf = RobustLogisticRegression(WorstClass()).fit(X, Y)
    with pytest.raises(ValueError, match="expecting 3 features"):
        clf.predict(X[:, :2])
    with pytest.raises(ValueError, match="NaN"):
        clf.predict_proba(with_value(np.nan))


BAD_PRIORS = {
    "sum": ([0.5, 0.2, 0.2], InvalidParameterError, "prior must sum to 1, got a sum of 0.9"),
    "text": ("standard", InvalidParameterError, "prior must .* got 'standard'"),
    "long": ([0.25] * 4, *LONG),
    "unknown": ({0: 0.5, 1: 0.5, 2: 0, 7: 0}, *UNKNOWN),
    "missing": ({0: 0.5, 1: 0.5}, *MISSING),
}


@pytest.mark.parametrize("case", BAD_PRIORS)
def test_bad_priors_for_probabilities_are_refused(case):
    prior, error, match = BAD_PRIORS[case]
    clf = RobustLogisticRegression(WorstClass()).fit(X, Y)
    with pytest.raises(error, match=match):
        population_proba(clf, X, prior)


def test_probabilities_of_a_class_without_mass_are_refused():
    clf = RobustLogisticRegression(FixedWeights([1, 0, 1])).fit(X, Y)
    with pytest.raises(UnidentifiableError, match="Class 1 carries no mass"):
        population_proba(clf, X)


# Interruptions


class Interrupts:
    """Lets a solver run for a few steps, then presses Ctrl-C."""

    def __init__(self, error, after):
        self.error, self.left = error, after
        self.inner = SOLVERS["sqp-newton"]

    def make(self, problem, tol):
        solver = self.inner.make(problem, tol)
        step = solver.step

        def counted(*args):
            self.left -= 1
            if self.left < 0:
                raise self.error
            return step(*args)

        solver.step = counted
        return solver


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, FloatingPointError])
@pytest.mark.parametrize("after", [0, 2])
@pytest.mark.parametrize("warm_start", [False, True])
def test_an_interrupted_fit_leaves_the_estimator_as_it_was(error, after, warm_start):
    fresh = RobustLogisticRegression(WorstClass(), warm_start=warm_start)
    fitted = RobustLogisticRegression(WorstClass(), warm_start=warm_start).fit(X, Y)
    before, predictions = frozen(fitted), fitted.predict_proba(X)
    for clf in (fresh, fitted):
        names = list(vars(clf))
        make = Interrupts(error, after).make
        SOLVERS.register(replace(SOLVERS["sqp-newton"], name="interrupted", make=make))
        try:
            with pytest.raises(error):
                clf.set_params(solver="interrupted").fit(X[:90, :2], Y[:90])
        finally:
            SOLVERS.remove("interrupted")
        assert list(vars(clf.set_params(solver="auto"))) == names
    assert frozen(fitted) == before
    np.testing.assert_array_equal(fitted.predict_proba(X), predictions)
    assert fresh.fit(X, Y).status_ == "converged"


def test_an_interruption_at_the_very_end_is_no_half_fit(monkeypatch):
    clf = RobustLogisticRegression(WorstClass()).fit(X, Y)
    before = frozen(clf)

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(RobustLogisticRegression, "_warn", interrupted)
    with pytest.raises(KeyboardInterrupt):
        clf.fit(X[:, :2], Y)
    assert frozen(clf) == before and clf.n_features_in_ == 3


def test_threads_end_with_an_interrupted_fit(monkeypatch):
    import threading

    big, labels = draw(n=40_000, d=20)
    count = threading.active_count()

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Problem, "value", interrupted)
    with pytest.raises(KeyboardInterrupt):
        RobustLogisticRegression(WorstClass()).fit(big, labels)
    assert threading.active_count() == count


# Hard data: warned where there is something to say, and finite


def separable(k, d=3):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, d))
    return X, np.digitize(X[:, 0], np.linspace(-0.7, 0.7, k - 1))


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("recipe", [FixedWeights("standard"), WorstClass()], ids=str)
def test_separable_data_without_a_penalty_are_warned_of(recipe, k):
    rows, labels = separable(k)
    with pytest.warns(SeparableDataWarning, match="can be separated.*Use a finite C") as caught:
        clf = RobustLogisticRegression(recipe, C=np.inf).fit(rows, labels)
    assert len(caught) == 1 and caught[0].filename == __file__
    assert np.all(np.isfinite(clf.coef_)) and np.all(np.isfinite(clf.intercept_))
    assert clf.score(rows, labels) == 1 and clf.robust_risk_ < 1e-6
    assert np.all(np.isfinite(clf.predict_proba(rows)))


def test_a_feature_that_separates_a_part_is_warned_of_too():
    rng = np.random.default_rng(0)
    rows, labels = rng.normal(size=(200, 2)), np.arange(200) % 2
    marked = np.c_[rows, (np.arange(200) < 40) & (labels == 1)]
    with pytest.warns(SeparableDataWarning):
        clf = RobustLogisticRegression(WorstClass(), C=np.inf).fit(marked, labels)
    assert np.all(np.isfinite(clf.coef_)) and clf.robust_risk_ > 0.1


def test_a_class_without_mass_and_without_a_penalty_is_not_called_separable():
    with pytest.warns(SeparableDataWarning, match="C is infinite and a class can carry no mass"):
        clf = RobustLogisticRegression(WeightBox(upper={0: 0}), C=np.inf).fit(X, Y)
    assert np.all(np.isfinite(clf.intercept_))


@pytest.mark.parametrize("warm_start", [False, True])
def test_data_that_overlap_are_not_warned_of_without_a_penalty(warm_start):
    clf = RobustLogisticRegression(WorstClass(), C=np.inf, warm_start=warm_start)
    for _ in range(2):
        assert clf.fit(X, Y).status_ == "stationary"
    assert RobustLogisticRegression(WorstClass(), C=np.inf).fit(0 * X, Y).robust_risk_ > 1


def test_separable_data_with_a_penalty_are_no_problem():
    for C in (1.0, 1e4, 1e8):
        clf = RobustLogisticRegression(WorstClass(), C=C).fit(*separable(3))
        assert clf.status_ == "converged"


HARD = {
    "huge": X * 1e8,
    "far away": X + 1e8,
    "tiny": X * 1e-8,
    "one huge": X * [1e8, 1, 1],
    "one tiny": X * [1e-8, 1, 1],
    "constant": np.c_[X, np.ones(N)],
    "constant and huge": np.c_[X, np.full(N, 1e8)],
    "constant and zero": np.c_[X, np.zeros(N)],
    "only constants": np.ones((N, 2)),
    "only zeros": np.zeros((N, 2)),
    "twice the same": np.c_[X, X],
    "nearly twice the same": np.c_[X, X * (1 + 1e-9)],
    "outlier": np.where(np.arange(N)[:, None] == 7, 1e6, X),
    "one hot": np.c_[X, np.eye(N)],
    "integers": np.round(X * 1000).astype(int),
    "booleans": X > 0,
}


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("kind", HARD)
def test_hard_features_are_fitted_to_the_end(kind, k):
    y = Y if k == 3 else Y % 2
    clf = RobustLogisticRegression(LabelCVaR(0.6)).fit(HARD[kind], y)
    assert clf.status_ == "converged"
    assert np.all(np.isfinite(clf.coef_)) and np.all(np.isfinite(clf.predict_proba(HARD[kind])))
    assert clf.robust_risk_ <= np.log(k) + 1e-9


@pytest.mark.parametrize("kind", ["huge", "constant", "constant and huge", "only zeros", "one hot"])
def test_hard_features_without_intercept_or_penalty(kind):
    for settings in ({"fit_intercept": False}, {"C": np.inf}):
        with warnings.catch_warnings():
            # Some have no optimum, and the gap of some is lost in rounding: it is said.
            warnings.simplefilter("ignore", SeparableDataWarning)
            warnings.simplefilter("ignore", NotConvergedWarning)
            clf = RobustLogisticRegression(LabelCVaR(0.6), **settings).fit(HARD[kind], Y)
        assert np.all(np.isfinite(clf.coef_)) and clf.robust_risk_ <= np.log(3) + 1e-9


def test_a_constant_feature_changes_nothing():
    plain = RobustLogisticRegression(LabelCVaR(0.6), tol=1e-10).fit(X, Y)
    for value in (0.0, 1.0, 1e8):
        clf = RobustLogisticRegression(LabelCVaR(0.6), tol=1e-10).fit(
            np.c_[X, np.full(N, value)], Y
        )
        np.testing.assert_allclose(clf.coef_[:, :3], plain.coef_, atol=1e-5)
        np.testing.assert_allclose(clf.coef_[:, 3], 0, atol=1e-4)


@pytest.mark.parametrize("C", [1e-12, 1e-6, 1e6, 1e12])
def test_extreme_penalties(C):
    clf = RobustLogisticRegression(LabelCVaR(0.6), C=C).fit(X, Y)
    assert clf.status_ == "converged" and np.all(np.isfinite(clf.coef_))


def test_two_rows_of_two_classes():
    clf = RobustLogisticRegression(WorstClass()).fit([[0.0], [1.0]], ["a", "b"])
    assert clf.predict([[0.0], [1.0]]).tolist() == ["a", "b"]


def test_a_fit_that_has_not_converged_says_how_far_it_got():
    with pytest.warns(
        NotConvergedWarning, match="The gap is .* target was .* Raise max_iter"
    ) as caught:
        clf = RobustLogisticRegression(WorstClass(), max_iter=2).fit(X, Y)
    assert caught[0].filename == __file__ and issubclass(NotConvergedWarning, ConvergenceWarning)
    assert clf.status_ == "max_iter" and clf.n_iter_ == 2
    best = RobustLogisticRegression(WorstClass()).fit(X, Y)
    # What it reports is true all the same.
    assert clf.duality_gap_ == clf.objective_ - clf.lower_bound_ > clf.tol * clf.objective_
    assert clf.lower_bound_ <= best.objective_ <= clf.objective_
