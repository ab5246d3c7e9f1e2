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
    What decisions are tuned for: an uncertainty set such as ``LabelCVaR(0.1)``, which is the
    default, ``LabelCVaR("auto")`` or ``"worst_class"``; a metric or its name, such as
    ``"f1_macro"`` (see :class:`~equipoise.goals.MetricGoal`); or ``RecallFloors``. The weights of
    ``FixedWeights(...)``, ``"balanced"``, ``"standard"`` and ``CostMatrix(...)`` are known and not
    tuned.
""",
        "pooling": """
pooling : float, default=2.0
    How strongly the decision weights of small classes are shrunk towards the starting weights of
    the goal (balanced ones, for recalls): a penalty of ``pooling`` over the number of rows of the
    class, on the squared difference of the log-weights. 0 turns it off. Recall floors and known
    weights are not shrunk.
""",
        "cv": """
cv : int, float, splitter, iterable or "prefit", default=5
    5 is five folds, stratified and shuffled, with equal rows kept together, so that no model is
    evaluated on copies of its training rows. A float is the share of the rows to hold out; a
    splitter must test no row twice; ``"prefit"`` is for an estimator that is already fitted.
    Floors with a confidence need a single model and so a single split: the first of a
    splitter, or a share of one over the number of folds (a fifth by default).
""",
        "refit": """
refit : bool, default=True
    Whether the base estimator is trained on all rows in the end. False keeps the model of a
    single split, as floors with a confidence always do.
""",
        "class_prior": """
class_prior : dict or array-like of shape (n_classes,), default=None
    Class frequencies of the population, where those of the rows differ. Goals are evaluated at
    these frequencies, and ``predict_proba`` is on their scale.
""",
        "rare_classes": """
rare_classes : {"error", "keep", "drop"}, default="error"
    What to do with classes that have too few rows to be tuned. ``"error"`` refuses them.
    ``"keep"`` trains on them, leaves their decision weight at 1 and reports no risk for them; it
    is refused for recall floors with a confidence. ``"drop"`` leaves their rows out: a dropped
    class stays in ``classes_``, with weight 0 and probability 0, and is never predicted.
min_rows : int, default=1
    Classes of fewer rows than this count as rare too (with ``rare_classes="keep"`` only if two
    others have more).
""",
        "n_jobs": """
n_jobs : int, default=None
    The number of folds that are fitted at a time; results do not depend on it.
""",
        "random_state": """
random_state : int, RandomState or None, default=None
    None is deterministic: the same in every fit. Seed of the folds, of the hold-out split, and of
    the weighted rows drawn for floors with a confidence.
""",
        "memory": """
memory : int or str, default="1 GiB"
    Memory for out-of-core data, such as ``"500 MB"``, without that of the base estimator.
sample_rows : int, default=None
    The number of rows of out-of-core data in the sample that is trained and tuned on, half each. It
    has equally many rows of every class (all rows of smaller classes, parted by ``cv``) and row
    weights that correct for this; where the base estimator takes no weights, classes have
    their shares of all rows. None is as many rows as fit into an eighth of ``memory``, at most
    200,000. Smaller data are read into memory.
verbose : int, default=0
    Above 0, progress of the folds.
""",
        "decision_attributes": """
classes_ : ndarray of shape (n_classes,)
    Class names.
estimator_ : estimator
    The fitted base estimator. Where it takes integer classes only (XGBoost), the fitted original
    is ``estimator_.estimator_``.
tuned_ : TunedWeights
    The decision rule and its evaluation, which the next attributes repeat.
weights_, threshold_, abstain_below_, costs_, fold_weights_, pooling_
    The decision rule for ``predict_proba``: decision weights by class; for two classes the
    threshold; for floors with ``abstain=True`` the weighted probability below which ``predict``
    gives None instead of a class; for a cost matrix that weights cannot express, ``costs_`` and no
    ``weights_``; the weights tuned without each fold; and the pooling.
class_risks_, class_risk_intervals_, robust_risk_, metric_value_
    Error rates by class and their 95% intervals, and the value of the goal, by cross-fitting:
    each fold is predicted with weights that were tuned on the other folds.
class_prior_, class_shares_ : ByClass
    Class frequencies of the population, which are ``class_prior`` if it is given; and of the
    training rows.
training_weights_ : ByClass
    Class weights of the training, with mean 1 over the rows. All are 1 for
    ``training="average"``, whose models have theirs in ``estimator_.class_weights``.
rows_seen_, n_passes_
    For out-of-core data, the number of rows of each class that were trained on, tuned on and
    evaluated (all but the training rows), and the number of passes over the data.
alpha_, best_index_, path_
    With ``LabelCVaR("auto")``, the chosen level, its index, and the results of all levels, as in
    :class:`RobustnessCV`.
n_features_in_, feature_names_in_
    Those of the base estimator.
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
    ``"argmax"`` predicts the class of the highest score. ``"tuned"`` adds an offset to the score
    of each class, tuned on held-out rows for the smallest worst-case *error rate* over the set;
    the fit, its certificate and ``predict_proba`` do not change.
pooling : float, default=2.0
    For tuned decisions, how strongly the offsets of small classes are shrunk towards the starting
    offsets of the goal; 0 turns it off.
class_prior : dict or array-like of shape (n_classes,), default=None
    Class frequencies of the population, where those of the rows differ. The class weights of
    ``goal`` are relative to these.
""",
        "warm_start": """
warm_start : bool, default=False
    Whether to start from the last fit.
memory : int or str, default="1 GiB"
    Memory for out-of-core data, or for the scores (rows times classes) of rows in memory: bytes, or
    a text such as ``"500 MB"``. Scores that would take more are computed again where they are
    read; on a GPU they may always take a 32nd of its memory.
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
    Offsets that ``decision_function`` and ``predict`` add to the scores, of mean zero with
    ``decisions="tuned"`` and zero otherwise; probabilities are without them. For two classes their
    difference is added to the single score.
tuned_ : TunedWeights
    With ``decisions="tuned"``, the decision weights and their evaluation on held-out rows.
class_risks_ : ByClass
    Mean loss of each class on the training rows.
robust_risk_ : float
    The largest weighted risk over the set, without the penalty; with an ``adjustment``, this and
    the next numbers are those of the adjusted risks.
worst_case_weights_, worst_case_masses_ : ByClass
    The class weights with the largest weighted risk at the optimum, and the class masses: weights
    times ``class_prior_``.
class_prior_ : ByClass
    Class frequencies of the population: ``class_prior``, or those of the rows.
objective_, lower_bound_, duality_gap_ : float
    Robust risk plus penalty at ``coef_`` and ``intercept_``, a proven lower bound of the optimum,
    and their difference. Without a penalty the bound is minus infinity.
caps_active_ : bool
    Whether the bounds of the set matter at the optimum: the risk of the worst class exceeds the
    robust risk. If not, this is the optimum for ``"worst_class"`` as well.
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
