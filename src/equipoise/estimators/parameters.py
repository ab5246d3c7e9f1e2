"""Descriptions of parameters and attributes that several estimators share.

A docstring names them as ``$cv``; :func:`documented` puts the text there, so that ``help`` and the
reference show every parameter in full.
"""

from string import Template
from textwrap import dedent, indent
from typing import TypeVar

Kind = TypeVar("Kind", bound=type)

# TEXTS: descriptions by name, as in numpydoc.
TEXTS = {
    name: indent(dedent(text).strip("\n"), "    ").lstrip()
    for name, text in {
        "goal": """
goal : Uncertainty, str, metric, CostMatrix, RecallFloors or None, default=None
    What decisions are tuned for: a set of weightings such as ``LabelCVaR(0.1)``, which is the
    default, ``LabelCVaR("auto")`` or ``"worst_class"``; a metric or its name, such as
    ``"f1_macro"`` (see :class:`~equipoise.goals.MetricGoal`); floors of recalls. Decisions for
    ``FixedWeights(...)``, ``"balanced"``, ``"standard"`` and ``CostMatrix(...)`` are known and not
    tuned.
""",
        "pooling": """
pooling : float, default=2.0
    How strongly the decision weights of a class of few rows are shrunk towards those that the
    goal would take if nothing were known: a penalty of ``pooling`` over the number of rows, on
    squared differences of log-weights. 0 turns it off. Floors and known rules are not shrunk.
""",
        "cv": """
cv : int, float, splitter, iterable or "prefit", default=5
    5 is five folds, stratified and shuffled, with equal rows kept together, or a model would be
    evaluated on rows that it has seen (``StratifiedKFold`` parts them). A float is the share of
    the rows to hold out; a splitter must test no row twice; ``"prefit"`` is for an estimator that
    is already fitted. Floors with a confidence are about one model: there is one split, the first
    of a splitter, and a number of folds holds out the share of one (a fifth by default).
""",
        "refit": """
refit : bool, default=True
    Whether the base estimator is trained on all rows in the end; False keeps the model of a
    single split, as floors with a confidence always do.
""",
        "class_prior": """
class_prior : dict or array-like of shape (n_classes,), default=None
    Class frequencies of the population, where those of the rows differ. Weights and sets count
    relative to these, and ``predict_proba`` is on their scale.
""",
        "rare_classes": """
rare_classes : {"error", "keep", "drop"}, default="error"
    What to do with a class of too few rows to be tuned: refuse; or train on it, count its
    probability as it is (weight 1), and report no risk; or leave its rows out of everything. A
    class that was dropped keeps its name in ``classes_``, has weight 0 and probability 0, and is
    never predicted. Floors with a confidence keep none.
min_rows : int, default=1
    A class of fewer rows has too few, even if it could be tuned (with ``rare_classes="keep"``
    only if two others have enough).
""",
        "n_jobs": """
n_jobs : int, default=None
    How many folds are fitted at a time; results do not depend on it.
""",
        "random_state": """
random_state : int, RandomState or None, default=None
    None is deterministic: the same in every fit. Seed of the folds, of the hold-out split, and of
    the weighted rows drawn for floors with a confidence.
""",
        "memory": """
memory : int or str, default="1 GiB"
    Memory for out-of-core data; that of the base estimator is not counted.
sample_rows : int, default=None
    Rows of out-of-core data to train and to tune on, half each: an equal number of every class,
    all of one with fewer (of which ``cv`` says how many tune), and weights that make up for it; in
    the shares of all rows where the base estimator takes no weights. None is what an eighth of
    ``memory`` holds, at most 200,000. Fewer rows are fitted to as in memory.
verbose : int, default=0
    Above 0, progress of the folds.
""",
        "decision_attributes": """
classes_ : ndarray of shape (n_classes,)
    Class names.
estimator_ : estimator
    The fitted base estimator. Of one that takes classes as numbers alone (XGBoost's), the fitted
    original is ``estimator_.estimator_``.
tuned_ : TunedWeights
    The decision rule and its evaluation: all of what follows.
weights_, threshold_, costs_, fold_weights_, pooling_
    The decision rule, as in :class:`~equipoise.decisions.TunedWeights`, for ``predict_proba``.
    There are ``costs_`` and no ``weights_`` where a cost matrix says more than weights can, and
    a ``threshold_`` for two classes.
class_risks_, class_risk_intervals_, robust_risk_, metric_value_
    What the decisions do to new rows, by cross-fitting: each fold is predicted by weights that
    were tuned on the other folds. Intervals are of 95% confidence.
class_prior_, class_shares_ : ByClass
    Class frequencies of the population: those given, or those of the rows; and of the rows.
training_weights_ : ByClass
    Weights that the classes were trained with, of mean 1 over the rows. All 1 for
    ``training="average"``, whose models have theirs in ``estimator_.class_weights``.
rows_seen_, n_passes_
    Of out-of-core data, the rows of each class that were trained on, tuned on, and evaluated
    (all that were not trained on), and the number of passes over the data.
alpha_, best_index_, path_
    With ``LabelCVaR("auto")``, the level that was chosen, as in :class:`RobustnessCV`.
n_features_in_, feature_names_in_
    Of the base estimator.
""",
        "goal_set": """
goal : Uncertainty, "standard", "balanced" or "worst_class", default=None
    The set of weightings. None means ``LabelCVaR(alpha=0.1)``: no class counts more than ten
    times its share.
""",
        "C": """
C : float, default=1.0
    Inverse strength of the penalty, scaled as in scikit-learn; ``numpy.inf`` for none.
""",
        "fit": """
fit_intercept : bool, default=True
    Whether to fit intercepts, which are not penalised.
tol : float, default=1e-6
    The fit has converged when its certified gap is at most ``tol`` times the objective (or 1e-3
    where the objective is less).
max_iter : int, default=1000
    Largest number of iterations.
solver : str, default="auto"
    ``"sqp-newton"``, ``"sqp-lbfgs"``, ``"multipliers"``, ``"descent-ascent"``, or ``"auto"`` to
    choose by the size of the problem.
decisions : {"argmax", "tuned"}, default="argmax"
    ``"argmax"`` predicts the class of the highest score. ``"tuned"`` adds offsets by class, with
    which the largest weighted *error rate* over the set is the smallest on held-out rows; the fit,
    its certificate and ``predict_proba`` do not change.
pooling : float, default=2.0
    For tuned decisions, how strongly the offsets of a class of few rows are shrunk towards those
    that the goal would take if nothing were known; 0 turns it off.
class_prior : dict or array-like of shape (n_classes,), default=None
    Class frequencies of the population, where those of the sample differ. The weights in ``goal``
    count relative to these.
""",
        "warm_start": """
warm_start : bool, default=False
    Whether to start from the last fit.
memory : int or str, default="1 GiB"
    Memory for out-of-core data: bytes, or a text such as ``"500 MB"``.
""",
        "verbose": """
verbose : int, default=0
    Above 0, a line of progress with the gap.
""",
        "linear_attributes": """
classes_ : ndarray of shape (n_classes,)
    Class names.
coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
    Coefficients.
intercept_ : ndarray of shape (1,) or (n_classes,)
    Intercepts.
decision_offsets_ : ByClass
    Offsets of the scores in ``decision_function`` and ``predict``, of mean zero with
    ``decisions="tuned"``, and else zeros; no part of probabilities. For two classes the one score
    is moved by their difference.
tuned_ : TunedWeights
    Tuned decisions on held-out rows, the same that the offsets were tuned on.
class_risks_ : ByClass
    Mean loss of each class on the training rows.
robust_risk_ : float
    The largest weighted risk over the set, without the penalty; of adjusted risks where there is
    an ``adjustment``, as are the numbers that follow.
worst_case_weights_, worst_case_masses_ : ByClass
    The weights that attain it at the optimum, and these as shares of the objective: weights times
    ``class_prior_``.
class_prior_ : ByClass
    Class priors that were used.
objective_, lower_bound_, duality_gap_ : float
    Robust risk plus penalty of ``coef_`` and ``intercept_`` as they are returned, a proven lower
    bound of the optimum, and their difference. Without a penalty the bound is minus infinity.
caps_active_ : bool
    Whether the bounds of the set matter at the optimum: the worst class's risk exceeds the robust
    risk. Where they do not, this is the optimum of the worst-class problem as well.
n_iter_, n_evaluations_, n_passes_ : int
    Iterations, evaluations of the class risks on all rows, and passes over out-of-core data.
status_, message_ : str
    How the solve ended: a word and a sentence.
history_ : dict of ndarray
    ``iteration``, ``evaluations``, ``objective``, ``gap`` and ``seconds`` along the solve.
""",
    }.items()
}


def documented(kind: Kind) -> Kind:
    """A class whose docstring has the texts in place of their names.

    Examples
    --------
    >>> class Model:
    ...     '''A model.
    ...
    ...     $verbose
    ...     '''
    >>> print(documented(Model).__doc__)
    A model.
    <BLANKLINE>
        verbose : int, default=0
            Above 0, a line of progress with the gap.
    """
    if kind.__doc__ is not None:  # None where Python strips docstrings
        kind.__doc__ = Template(kind.__doc__).substitute(TEXTS)
    return kind
