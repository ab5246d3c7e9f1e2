"""The robust Bayes rule: against linear programmes over all randomised rules, and closed forms."""

import numpy as np
import pytest
from scipy.optimize import linprog
from sklearn.linear_model import LogisticRegression

from equipoise import (
    FixedWeights,
    LabelCVaR,
    PriorBox,
    WeightHull,
    WorstClass,
)
from equipoise.datasets import PowerImbalance
from equipoise.exceptions import InvalidInputError, InvalidParameterError
from equipoise.risks import ClassRisks
from equipoise.sets import CappedSimplex
from equipoise.theory import robust_bayes, robust_bayes_known, tied_rules
from set_examples import few_examples

each_set = pytest.mark.parametrize("recipe", few_examples(), ids=repr)
# Sets whose support is the largest of a few linear functions, for the linear programme.
RESOLVED = [(one, one.resolve([0.6, 0.4])) for one in few_examples()]
POLYTOPES = [
    one
    for one, masses in RESOLVED
    if isinstance(masses, CappedSimplex) or isinstance(one, FixedWeights)
]
each_polytope = pytest.mark.parametrize("recipe", POLYTOPES, ids=repr)


def draw(n, k, seed, *, ties=False):
    rng = np.random.default_rng(seed)
    scores = 1.5 * rng.normal(size=(n, k)) - np.arange(k) / 2
    probabilities = np.exp(scores)
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    if ties:
        probabilities = np.ceil(5 * probabilities)
        probabilities /= probabilities.sum(axis=1, keepdims=True)
    return probabilities, rng.uniform(0.5, 2, size=n)


def by_linear_programme(probabilities, weights, recipe):
    """The least robust risk over all randomised rules: one unknown for each row and class."""
    n, k = probabilities.shape
    weights = weights / weights.sum()
    prior = weights @ probabilities
    # Class risks are 1 - A x for the probabilities x of deciding i in row j.
    A = np.zeros((k, n * k))
    for i in range(k):
        A[i, i::k] = weights * probabilities[:, i] / prior[i]
    if isinstance(recipe, FixedWeights):
        mass = recipe.resolve(prior).vertices[0]
        return 1 + linprog(-(mass @ A), **decisions(n, k)).fun
    bounds = recipe.resolve(prior)
    # Support of lower <= m <= upper, sum m = 1, by its dual: v + sum u (r - v)+ - l (v - r)+.
    size = n * k
    c = np.r_[np.zeros(size), 1.0, bounds.upper, -bounds.lower]
    eye = np.eye(k)
    # r = v + above - below, above and below at least zero.
    equal = np.hstack([A, np.ones((k, 1)), eye, -eye])
    rules = np.hstack([decisions(n, k)["A_eq"], np.zeros((n, 1 + 2 * k))])
    solved = linprog(
        c,
        A_eq=np.vstack([equal, rules]),
        b_eq=np.ones(k + n),
        bounds=[(0, None)] * size + [(None, None)] + [(0, None)] * (2 * k),
    )
    return solved.fun


def decisions(n, k):
    A = np.zeros((n, n * k))
    for j in range(n):
        A[j, j * k : (j + 1) * k] = 1
    return {"A_eq": A, "b_eq": np.ones(n), "bounds": (0, None)}


@each_polytope
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("k", [2, 3, 4])
def test_no_randomised_rule_does_better(recipe, k, ties):
    probabilities, weights = draw(60, k, seed=k, ties=ties)
    found = robust_bayes(probabilities, recipe, sample_weight=weights)
    best = by_linear_programme(probabilities, weights, recipe)
    assert found.risk == pytest.approx(best, abs=1e-9 if k == 2 else 2e-7)
    assert found.gap <= (1e-12 if k == 2 else 2e-7)


@each_set
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("k", [2, 3, 6])
def test_masses_and_rule_are_a_saddle_point(recipe, k, ties):
    probabilities, weights = draw(400, k, seed=10 + k, ties=ties)
    found = robust_bayes(probabilities, recipe, sample_weight=weights)
    w = weights / weights.sum()
    prior = w @ probabilities
    mass, risks = np.asarray(found.masses), np.asarray(found.class_risks)
    mass_set = recipe.resolve(prior)
    # The masses lie in the set, the risk is the rule's worst case, and no rule is better at m*.
    np.testing.assert_allclose(mass_set.project(mass), mass, atol=1e-6)
    assert found.risk == pytest.approx(float(mass_set.support(risks)), abs=1e-12)
    bayes = 1 - w @ np.max(probabilities * (mass / prior), axis=1)
    assert found.risk - found.gap <= bayes + 1e-12
    assert 0 <= found.gap <= (1e-12 if k == 2 else 1.1e-7)
    np.testing.assert_allclose(np.asarray(found.weights), mass / prior)


@each_set
@pytest.mark.parametrize("ties", [False, True])
def test_threshold_and_tie_share_are_the_rule(recipe, ties):
    probabilities, weights = draw(300, 2, seed=5, ties=ties)
    found = robust_bayes(probabilities, recipe, sample_weight=weights)
    w = weights / weights.sum()
    eta = probabilities[:, 1]
    share = np.where(eta == found.threshold, found.tie_share, eta > found.threshold)
    missed = w @ (eta * (1 - share)) / (w @ eta)
    alarms = w @ ((1 - eta) * share) / (w @ (1 - eta))
    np.testing.assert_allclose(np.asarray(found.class_risks), [alarms, missed], atol=1e-12)
    q = np.asarray(found.masses) / (w @ probabilities)
    if 0 < found.tie_share < 1:
        assert found.threshold == pytest.approx(q[0] / q.sum(), abs=1e-9)


def test_one_probability_for_all_is_decided_by_a_coin():
    found = robust_bayes(np.full(10, 0.3), WorstClass())
    assert found.threshold == 0.3 and found.tie_share == pytest.approx(0.5)
    assert found.risk == pytest.approx(0.5)
    np.testing.assert_allclose(np.asarray(found.masses), 0.5)


def test_certain_probabilities_have_no_risk():
    for recipe in few_examples():
        assert robust_bayes(np.repeat([0.0, 1.0], [6, 4]), recipe).risk == pytest.approx(
            0, abs=1e-9
        )


PRIORS = [0.3, 0.5, 0.8, 0.9, 0.98]


@each_set
@pytest.mark.parametrize("p", PRIORS)
def test_a_known_model_against_all_thresholds(p, recipe):
    model = PowerImbalance(p)
    if p == 0.98 and isinstance(recipe, PriorBox):
        recipe = PriorBox(0.01, 0.999)
    found = robust_bayes_known(model, recipe)
    grid = np.linspace(0, 1, 201)
    every = [ClassRisks(risks, model.prior).robust(recipe) for risks in model.class_risks_at(grid)]
    assert found.gap <= 1e-12
    assert found.risk <= min(every) + 1e-12
    # The nearest threshold of the grid is within 1 / 400, and no risk is steeper than 1 / min p.
    assert found.risk == pytest.approx(min(every), abs=1 / 400 / min(p, 1 - p))
    s = found.threshold ** ((1 - p) / p)
    np.testing.assert_allclose(model.class_risks_at(s), np.asarray(found.class_risks), atol=1e-9)


@each_set
def test_quadrature_agrees_with_the_closed_form(recipe):
    model = PowerImbalance(0.8)
    X, w = model.quadrature(4000)
    exact = robust_bayes_known(model, recipe)
    close = robust_bayes(model.predict_proba(X), recipe, class_prior=model.prior, sample_weight=w)
    assert close.risk == pytest.approx(exact.risk, abs=1e-4)
    assert close.threshold == pytest.approx(exact.threshold, abs=5e-3)


def test_the_worst_class_rule_has_equal_risks():
    for p in PRIORS:
        risks = np.asarray(robust_bayes_known(PowerImbalance(p), WorstClass()).class_risks)
        assert risks[0] == pytest.approx(risks[1], abs=1e-12)
    probabilities, _ = draw(2000, 5, seed=3)
    risks = np.asarray(robust_bayes(probabilities, WorstClass()).class_risks)
    assert np.ptp(risks) <= 1e-4


def test_a_hundred_classes_take_few_steps(monkeypatch):
    asked, slopes = [], tied_rules.Smoothed.at
    monkeypatch.setattr(
        tied_rules.Smoothed, "at", lambda self, mass: asked.append(0) or slopes(self, mass)
    )
    probabilities, _ = draw(3000, 100, seed=0)
    found = robust_bayes(probabilities, WorstClass())
    assert found.gap <= 1e-7 and len(asked) <= 250
    assert len(found.rules) <= 101 and np.ptp(np.asarray(found.class_risks)) <= 1e-6


def test_one_weighting_is_the_bayes_rule():
    model = PowerImbalance(0.9)
    for weights in ("standard", "balanced", (1, 5)):
        recipe = FixedWeights(weights)
        found = robust_bayes_known(model, recipe)
        assert found.risk == pytest.approx(model.bayes_risk(weights), abs=1e-15)
        assert found.threshold == pytest.approx(model.threshold(weights))


def test_larger_sets_have_larger_risks():
    probabilities, _ = draw(500, 4, seed=1)
    risks = [robust_bayes(probabilities, LabelCVaR(alpha)).risk for alpha in (1, 0.7, 0.4, 0.1)]
    assert np.all(np.diff(risks) >= -2e-7) and risks[-1] > risks[0] + 0.01


def test_a_model_with_an_atom_is_mixed():
    class Coin:
        """Eta is 0.1 with probability one half, and 0.7 otherwise."""

        prior = np.array([0.6, 0.4])

        def bayes_class_risks(self, weights):
            eta = np.array([0.1, 0.7])
            chosen = eta * weights[1] > (1 - eta) * weights[0]
            alarms = np.sum((1 - eta) * chosen) / 2 / 0.6
            return np.array([alarms, np.sum(eta * ~chosen) / 2 / 0.4])

    known = robust_bayes_known(Coin(), WorstClass())
    rows = robust_bayes([0.1, 0.7], WorstClass())
    assert known.risk == pytest.approx(rows.risk, abs=1e-12)
    np.testing.assert_allclose(np.asarray(known.class_risks), np.asarray(rows.class_risks))
    np.testing.assert_allclose(
        known.decision_shares([0.1, 0.7]), rows.decision_shares([0.1, 0.7]), atol=1e-12
    )


def test_a_hull_of_weightings():
    probabilities, _ = draw(300, 3, seed=8)
    hull = WeightHull([[1, 1, 1], [1, 4, 1], [1, 1, 6]])
    found = robust_bayes(probabilities, hull)
    prior = probabilities.mean(axis=0)
    risks = ClassRisks(np.asarray(found.class_risks), prior)
    worst = max(risks.weighted(q) for q in hull.weightings)
    assert found.risk == pytest.approx(worst, abs=1e-9) and found.gap <= 1.1e-7


def test_another_prior_changes_the_set_and_not_the_class_risks():
    probabilities, _ = draw(300, 2, seed=4)
    prior = {"a": 0.2, "b": 0.8}
    recipe = LabelCVaR(0.7)
    found = robust_bayes(probabilities, recipe, class_prior=prior, classes=["a", "b"])
    mass = np.asarray(found.masses)
    assert np.all(mass <= np.array([0.2, 0.8]) / 0.7 + 1e-12)
    np.testing.assert_allclose(np.asarray(found.weights), mass / [0.2, 0.8])
    # The rule is Bayes for the masses, on the scale of the probabilities that were given.
    q = mass / probabilities.mean(axis=0)
    eta = np.sort(probabilities[:, 1])
    nearest = np.searchsorted(eta, q[0] / q.sum())
    assert eta[nearest - 1] <= found.threshold <= eta[nearest]


def test_the_rule_decides_rows_by_name():
    probabilities, _ = draw(300, 3, seed=4)
    names = np.array(["x", "y", "z"])
    found = robust_bayes(probabilities, WorstClass(), classes=names)
    # Bayes for the masses, up to rows in which classes nearly tie.
    scores = probabilities * (np.asarray(found.masses) / probabilities.mean(axis=0))
    clear = np.diff(np.sort(scores, axis=1))[:, -1] > 1e-3
    assert clear.sum() > 250
    np.testing.assert_array_equal(
        found.decide(probabilities)[clear], names[np.argmax(scores, axis=1)][clear]
    )
    lines = repr(found).splitlines()
    assert "robust Bayes risk" in lines[0] and lines[1].split() == [
        "class",
        "mass",
        "weight",
        "risk",
    ]
    assert [line.split(":")[0] for line in lines[2:]] == ["x", "y", "z"]
    with pytest.raises(InvalidInputError, match="each of the 3 classes, got shape"):
        found.decide([[0.5, 0.5]])


BAD = {
    "a classifier": (LogisticRegression(), {}, "probabilities must be an array"),
    "sums": ([[0.5, 0.4]], {}, "sum"),
    "nan": ([0.5, np.nan], {}, "finite"),
    "absent": ([[0.5, 0.5, 0.0]], {}, r"\[2\] has none"),
    "names": ([0.5, 0.5], {"classes": ["a", "b", "c"]}, "name each of the 2 classes"),
    "weights": ([0.5, 0.5], {"sample_weight": [1.0]}, "one value for each of the 2 rows"),
    "no weight": ([0.5, 0.5], {"sample_weight": [0.0, 0.0]}, "positive in at least one"),
    "a set": ([0.5, 0.5], {"uncertainty": 3}, "uncertainty must be"),
    "a prior": ([0.5, 0.5], {"class_prior": [0.5, 0.6]}, "sum to 1"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_gets_a_sentence(case):
    probabilities, arguments, match = BAD[case]
    with pytest.raises((InvalidInputError, InvalidParameterError), match=match):
        robust_bayes(probabilities, **arguments)


def test_a_classifier_is_no_model():
    with pytest.raises(InvalidInputError, match="model must have prior and bayes_class_risks"):
        robust_bayes_known(LogisticRegression(), WorstClass())


def test_a_known_model_has_two_classes():
    class Three:
        prior = np.full(3, 1 / 3)

        def bayes_class_risks(self, weights):
            raise AssertionError

    with pytest.raises(InvalidInputError, match="model must be of two classes, got 3"):
        robust_bayes_known(Three(), WorstClass())


def by_cutting_planes(probabilities, weights, recipe, *, prior=None):
    """As above, for any set: one constraint for each mass that turned out to be the worst."""
    n, k = probabilities.shape
    weights = weights / weights.sum()
    shares = weights @ probabilities
    masses = recipe.resolve(shares if prior is None else prior)
    A = np.zeros((k, n * k))
    for i in range(k):
        A[i, i::k] = weights * probabilities[:, i] / shares[i]
    rules, cuts, value = decisions(n, k), [np.asarray(masses.project(np.full(k, 1 / k)))], -np.inf
    equal = np.hstack([rules["A_eq"], np.zeros((n, 1))])
    for _ in range(200):
        worst = np.array(cuts) @ A
        solved = linprog(
            np.r_[np.zeros(n * k), 1.0],
            A_ub=np.hstack([-worst, -np.ones((len(cuts), 1))]),
            b_ub=-np.sum(cuts, axis=1),
            A_eq=equal,
            b_eq=rules["b_eq"],
            bounds=[(0, None)] * (n * k) + [(None, None)],
        )
        value, risks = solved.fun, 1 - A @ solved.x[:-1]
        if masses.support(risks) <= value + 1e-9:
            return value
        cuts.append(np.asarray(masses.maximize(risks)))
    raise AssertionError("the cutting planes did not close in")


def risks_of(shares, probabilities, weights):
    """Class risks of decisions that are taken with these probabilities."""
    each = (weights / weights.sum())[:, None] * probabilities
    return 1 - (each * shares).sum(axis=0) / each.sum(axis=0)


def discrete(k, seed):
    """A few points, some of them twice, where several classes are equally probable."""
    rng = np.random.default_rng([k, seed])
    points = rng.integers(0, 4, size=(5 * k, k)).astype(float)
    points[:k] += np.eye(k)
    points = points[points.sum(axis=1) > 0]
    rows = np.r_[np.arange(len(points)), rng.integers(0, len(points), 10)]
    return (points / points.sum(axis=1, keepdims=True))[rows], rng.uniform(0.5, 2, len(rows))


@each_set
@pytest.mark.parametrize("k", [2, 3, 4, 5])
def test_the_mixture_attains_the_least_risk_of_all_rules(recipe, k):
    probabilities, weights = discrete(k, 0)
    found = robust_bayes(probabilities, recipe, sample_weight=weights)
    shares = found.decision_shares(probabilities)
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    risks = risks_of(shares, probabilities, weights)
    np.testing.assert_allclose(risks, np.asarray(found.class_risks), rtol=1e-9, atol=1e-12)
    worst = recipe.resolve(weights @ probabilities / weights.sum()).support(risks)
    assert worst == pytest.approx(found.risk, rel=1e-9)
    best = by_cutting_planes(probabilities, weights, recipe)
    assert found.risk == pytest.approx(best, abs=2e-9 if k == 2 else 1.1e-7)


@pytest.mark.parametrize("k", [2, 3, 5])
def test_decisions_are_drawn_from_the_mixture(k):
    points, weights = discrete(k, 7)
    found = robust_bayes(points, WorstClass(), sample_weight=weights)
    shares = found.decision_shares(points)
    assert np.any((shares > 0.01) & (shares < 0.99))
    n = 4000
    drawn = found.decide(np.repeat(points, n, axis=0), random_state=1).reshape(-1, n)
    seen = (drawn[:, :, None] == np.arange(k)).mean(axis=1)
    # Hoeffding: less than one in a million for all of the numbers together.
    assert np.abs(seen - shares).max() <= np.sqrt(np.log(2e6 * shares.size) / (2 * n))
    again = found.decide(np.repeat(points, n, axis=0), random_state=1).reshape(-1, n)
    np.testing.assert_array_equal(drawn, again)
    sure = shares.max(axis=1) == 1
    np.testing.assert_array_equal(found.decide(points)[sure], shares.argmax(axis=1)[sure])


def test_neighbouring_numbers_are_told_apart():
    # Two values that differ in their last digit: only one of them is drawn for.
    eta = np.array([0.1, np.nextafter(0.3, 0), 0.3, np.nextafter(0.3, 1), 0.6])
    for weights in np.random.default_rng(0).uniform(0.2, 2, size=(20, 5)):
        found = robust_bayes(eta, WorstClass(), sample_weight=weights)
        shares = found.decision_shares(eta)
        assert np.count_nonzero((shares[:, 1] > 0) & (shares[:, 1] < 1)) <= 1
        risks = risks_of(shares, np.column_stack([1 - eta, eta]), weights)
        assert risks.max() == pytest.approx(found.risk, rel=1e-9)
