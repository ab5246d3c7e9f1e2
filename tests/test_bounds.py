"""Bounds of robust risks: their formulas, what they say, and how often they hold."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import binom

from equipoise.exceptions import ClassMismatchError, InvalidInputError, InvalidParameterError
from equipoise.losses import margin_loss
from equipoise.risks import ClassRisks, class_risks
from equipoise.sets import FixedWeights, LabelCVaR, WorstClass
from equipoise.theory import (
    class_rademacher,
    conditional_bound,
    iid_bound,
    rate_bound,
)
from set_examples import few_examples

RECIPES = few_examples()

COUNTS = np.array([600.0, 300.0, 100.0])
PRIOR = np.array([0.58, 0.3, 0.12])
RISKS = np.array([0.1, 0.2, 0.4])
COMPLEXITY = np.array([0.002, 0.003, 0.005])

each_recipe = pytest.mark.parametrize("recipe", RECIPES, ids=repr)
either_complexity = pytest.mark.parametrize("observed", [False, True])


def on_a_grid(recipe, prior, values):
    """The maximum over the set, of many masses near each corner and between them."""
    masses = recipe.resolve(prior)
    rng = np.random.default_rng()
    points = rng.dirichlet(np.full(len(prior), 0.2), size=3000)
    inside = np.array([masses.project(point) for point in points[:300]])
    return (inside @ values).max()


# Formulas


@each_recipe
@either_complexity
def test_the_iid_bounds_are_the_formulas_of_theorem_1(recipe, observed):
    n, k, delta = COUNTS.sum(), 3, 0.05
    support = recipe.resolve(PRIOR).support
    ratio = COUNTS / (n * PRIOR)
    rad = COMPLEXITY * ratio if observed else COMPLEXITY

    def deviation(odds):
        if observed:
            return 3 * np.sqrt(np.log(2 * odds) / (2 * PRIOR**2 * n))
        return np.sqrt(np.log(odds) / (2 * PRIOR**2 * n))

    given_ = {"confidence": 0.95, "observed": observed}
    bound = iid_bound(COUNTS, COMPLEXITY, PRIOR, recipe, risks=RISKS, **given_)
    terms = 4 * k * rad + deviation(k / delta)
    assert bound.value == pytest.approx(support(ratio * RISKS + terms))
    assert bound.width == pytest.approx(support(terms))
    excess = iid_bound(COUNTS, COMPLEXITY, PRIOR, recipe, **given_)
    terms = 8 * k * rad + deviation(2 * k / delta)
    assert excess.value == excess.width == pytest.approx(2 * support(terms))


@each_recipe
@either_complexity
def test_the_conditional_bounds_are_the_formulas_of_appendix_d(recipe, observed):
    k, delta = 3, 0.1

    def deviation(odds):
        if observed:
            return 3 * np.sqrt(np.log(2 * odds) / (2 * COUNTS))
        return np.sqrt(np.log(odds) / (2 * COUNTS))

    given_ = {"confidence": 0.9, "observed": observed}
    for prior in (None, PRIOR):
        support = recipe.resolve(COUNTS / COUNTS.sum() if prior is None else prior).support
        bound = conditional_bound(COUNTS, COMPLEXITY, prior, recipe, risks=RISKS, **given_)
        terms = 4 * k * COMPLEXITY + deviation(k / delta)
        assert bound.value == pytest.approx(support(RISKS + terms))
        excess = conditional_bound(COUNTS, COMPLEXITY, prior, recipe, **given_)
        terms = 8 * k * COMPLEXITY + deviation(2 * k / delta)
        assert excess.value == pytest.approx(2 * support(terms))


@each_recipe
def test_corollary_2_is_theorem_1_with_the_rate_put_in(recipe):
    C, n = 0.2, COUNTS.sum()
    rad = C / np.sqrt(PRIOR * n)
    pairs = [
        (
            rate_bound(COUNTS, C, PRIOR, recipe, risks=RISKS),
            iid_bound(COUNTS, rad, PRIOR, recipe, observed=False, risks=RISKS),
        ),
        (
            rate_bound(COUNTS, C, PRIOR, recipe),
            iid_bound(COUNTS, rad, PRIOR, recipe, observed=False),
        ),
    ]
    for rate, iid in pairs:
        assert rate.value == pytest.approx(iid.value)
        assert (rate.theorem, iid.theorem) == ("Corollary 2", "Theorem 1")


TWO = {"counts": COUNTS[:2], "class_prior": np.array([0.7, 0.3]), "risks": RISKS[:2]}


@pytest.mark.parametrize("lipschitz", [0.25, 1.0, 3.0])
@either_complexity
def test_lipschitz_losses_of_two_classes_have_twice_their_slope_for_4k(lipschitz, observed):
    # Talagrand's contraction in place of the lemma on margins: 2 L Rad(F), not 4 k Rad(Pi_1(F)).
    options = {"uncertainty": "worst_class", "observed": observed}
    for bound in (iid_bound, conditional_bound):
        margin = bound(TWO["counts"], COMPLEXITY[:2], TWO["class_prior"], **options)
        found = bound(
            TWO["counts"], COMPLEXITY[:2], TWO["class_prior"], lipschitz=lipschitz, **options
        )
        ratio = np.asarray(found.complexity) / np.asarray(margin.complexity)
        np.testing.assert_allclose(ratio, 2 * lipschitz / (4 * 2))
        np.testing.assert_allclose(np.asarray(found.deviation), np.asarray(margin.deviation))
    rate = rate_bound(**TWO, constant=0.5, lipschitz=lipschitz)
    expected = 2 * lipschitz * 0.5 / np.sqrt(TWO["class_prior"] * TWO["counts"].sum())
    np.testing.assert_allclose(np.asarray(rate.complexity), expected)


@pytest.mark.parametrize("bound", [iid_bound, conditional_bound])
def test_lipschitz_losses_are_for_two_classes(bound):
    with pytest.raises(InvalidParameterError, match="lipschitz is for two classes, got 3"):
        bound(COUNTS, COMPLEXITY, PRIOR, lipschitz=1.0)
    with pytest.raises(InvalidParameterError, match="lipschitz must be a number"):
        bound(COUNTS[:2], COMPLEXITY[:2], PRIOR[:2] / PRIOR[:2].sum(), lipschitz=0.0)


def test_bounds_of_a_lipschitz_loss_hold_for_all_functions_of_a_class():
    # The ramp max(0, min(1, (1 - L y f) / 2)) is L/2-Lipschitz in f; f(x) = w x with |w| <= 1.
    rng, broken, trials, slope = np.random.default_rng(0), 0, 300, 2.0
    w = np.linspace(-1, 1, 41)
    far = np.random.default_rng(1).uniform(-1, 2, size=40_000)  # x of class 1; class 0 has -x

    def ramp(x):
        return np.clip((1 - slope * x[:, None] * w) / 2, 0, 1).mean(axis=0)

    population = ramp(far)
    for _ in range(trials):
        rows = {name: rng.uniform(-1, 2, size=n) for name, n in ((0, 60), (1, 25))}
        complexity = {name: of_one_class(x[:, None], 1.0) for name, x in rows.items()}
        empirical = np.array([ramp(x) for x in rows.values()])
        bounds = [
            conditional_bound(
                [60, 25],
                complexity,
                uncertainty="worst_class",
                risks=risks,
                confidence=0.8,
                lipschitz=slope / 2,
            ).value
            for risks in empirical.T
        ]
        broken += bool(np.any(population > bounds))
    assert broken <= binom.ppf(0.999, trials, 0.2)


@each_recipe
def test_no_masses_of_the_set_are_above_the_bound(recipe):
    bound = conditional_bound(COUNTS, COMPLEXITY, PRIOR, recipe, risks=RISKS)
    terms = np.asarray(bound.terms)
    assert on_a_grid(recipe, PRIOR, RISKS + terms) <= bound.value + 1e-9
    assert on_a_grid(recipe, PRIOR, terms) <= bound.width + 1e-9
    assert np.asarray(bound.masses) @ terms == pytest.approx(bound.width)
    assert bound.value <= recipe.resolve(PRIOR).support(RISKS) + bound.width + 1e-12


def of_one_class(X, radius):
    """The bound of the complexity on rows of one class."""
    return class_rademacher(X, np.zeros(len(X), int), radius)[0]


def test_more_confidence_costs_width_and_more_rows_save_it():
    def width(confidence=0.9, times=1):
        return conditional_bound(times * COUNTS, COMPLEXITY, confidence=confidence).width

    assert width(0.8) < width(0.9) < width(0.99)
    assert width(times=4) < width(times=2) < width()


# What a bound says


def test_the_contributions_are_the_width_and_the_dominant_class_is_the_largest():
    for bound in (
        conditional_bound(COUNTS, COMPLEXITY, uncertainty="balanced", risks=RISKS),
        iid_bound(COUNTS, COMPLEXITY, PRIOR, "balanced"),
    ):
        assert np.asarray(bound.contributions).sum() == pytest.approx(bound.width)
        assert bound.dominant == 2
        assert bound.contributions[bound.dominant] == max(bound.contributions.values())


def test_a_vacuous_bound_is_said_to_be_vacuous():
    few = conditional_bound([20, 3], 0.1, uncertainty=WorstClass(), risks=[0.1, 0.2])
    assert few.vacuous and few.value >= 1 and "vacuous" in few.sentence and "vacuous" in repr(few)
    many = conditional_bound([10**6, 10**6], 1e-4, risks=[0.1, 0.2])
    assert not many.vacuous and many.value < 1 and "vacuous" not in repr(many)
    assert "the robust risk of every classifier is at most" in many.sentence
    assert "above the lowest by at most" in conditional_bound([20, 3], 0.1).sentence


def test_names_are_kept_and_matched():
    counts = {"common": 900, "rare": 100}
    named = conditional_bound(
        counts,
        {"rare": 0.02, "common": 0.01},
        uncertainty=WorstClass(),
        risks=ClassRisks({"rare": 0.3, "common": 0.1}, {"rare": 0.1, "common": 0.9}),
    )
    plain = conditional_bound([900, 100], [0.01, 0.02], uncertainty=WorstClass(), risks=[0.1, 0.3])
    assert named.value == plain.value and named.dominant == "rare"
    by_risks = conditional_bound([900, 100], [0.01, 0.02], risks={"a": 0.1, "b": 0.3})
    assert by_risks.counts["b"] == 100


def test_complexities_and_risks_of_data_go_straight_in():
    rng = np.random.default_rng()
    X, y = rng.normal(size=(60, 2)), np.array(["a", "b"])[[0, 0, 1] * 20]
    scores = X @ rng.normal(size=(2, 2))
    counts = dict(zip(*np.unique(y, return_counts=True), strict=True))
    by_class = class_rademacher(X, y, radius=0.01)
    bound = conditional_bound(counts, by_class, risks=class_risks(y, scores, loss="margin"))
    assert bound.complexity["a"] == pytest.approx(8 * by_class["a"])


# How often they hold


def enough(hits, trials, level):
    """Whether so many hits are no evidence against a coverage of at least the level."""
    return hits >= binom.ppf(1e-6, trials, level)


def coverage_of_a_fixed_classifier(trials, level):
    """A single classifier has no complexity: only the deviations must cover.

    Its losses are fair coins, for which Hoeffding's inequality is tightest, and one class carries
    all mass, so that no other can make up for it.
    """
    rng = np.random.default_rng()
    counts, prior, truth = np.array([90, 10]), np.array([0.9, 0.1]), np.array([0.5, 0.5])
    alone = {"uncertainty": FixedWeights([1, 0]), "confidence": level, "observed": False}
    hits = {"conditional": 0, "iid": 0}
    for _ in range(trials):
        risks = rng.binomial(counts, truth) / counts
        bound = conditional_bound(counts, 0.0, risks=risks, **alone)
        hits["conditional"] += bound.value >= 0.5
        drawn = rng.multinomial(100, prior)
        risks = rng.binomial(drawn, truth) / np.maximum(drawn, 1)
        bound = iid_bound(drawn, 0.0, prior, risks=risks, **alone)
        hits["iid"] += bound.value >= 0.5
    return hits


class World:
    """Classes on a few points, and a finite set of linear classifiers with known class risks."""

    def __init__(self, n_points=12, n_features=6, k=3, n_classifiers=150, radius=0.6):
        rng = np.random.default_rng()
        self.k, self.radius = k, radius
        points = rng.normal(size=(n_points, n_features))
        self.points = points / np.linalg.norm(points, axis=1, keepdims=True)
        self.shares = rng.dirichlet(np.full(n_points, 0.5), size=k)
        self.prior = np.array([0.5, 0.3, 0.2])
        vectors = rng.normal(size=(n_classifiers, k, n_features))
        vectors *= radius / np.linalg.norm(vectors, axis=2, keepdims=True)
        scores = np.einsum("pd,fkd->fpk", self.points, vectors)
        # Losses of every classifier at every point, for every class it may be of.
        self.losses = np.array(
            [[margin_loss(np.full(n_points, i), s) for i in range(k)] for s in scores]
        )
        self.risks = np.einsum("fip,ip->fi", self.losses, self.shares)

    def draw(self, counts):
        """Rows at each point by class, and the class risks of all classifiers on them."""
        rng = np.random.default_rng()
        rows = np.array([rng.multinomial(c, s) for c, s in zip(counts, self.shares, strict=True)])
        sums = np.einsum("fip,ip->fi", self.losses, rows)
        return rows, sums / np.maximum(counts, 1)

    def complexity(self, rows):
        """Proven upper bounds of the complexity of each class, computed on its rows."""
        some = [self.points.repeat(row, axis=0) for row in rows]
        return [of_one_class(X, self.radius) if len(X) else 0.0 for X in some]


def coverage_of_all_classifiers(trials, level, recipe):
    """How often all classifiers, and the empirical minimiser, keep to their bounds."""
    hits = dict.fromkeys(["iid", "iid excess", "rate", "rate excess", "cond", "cond excess"], 0)
    for trial in range(trials):
        if trial % 10 == 0:
            world = World()
        p, n = world.prior, 200
        robust = np.array([recipe.resolve(p).support(r) for r in world.risks])
        counts = np.random.default_rng().multinomial(n, p)
        rows, risks = world.draw(counts)
        rad = world.complexity(rows)
        # The theorem for iid rows knows the priors, and weighs the sums of the losses by them.
        empirical = np.array([recipe.resolve(p).support(counts / (n * p) * r) for r in risks])
        worst, best = np.argmax(robust - empirical), np.argmin(empirical)
        excess = robust[best] - robust.min()
        options = {"uncertainty": recipe, "confidence": level}
        first = iid_bound(counts, rad, p, risks=risks[worst], **options)
        hits["iid"] += first.value >= robust[worst]
        hits["iid excess"] += iid_bound(counts, rad, p, **options).value >= excess
        second = rate_bound(counts, world.radius, p, risks=risks[worst], **options)
        hits["rate"] += second.value >= robust[worst]
        hits["rate excess"] += rate_bound(counts, world.radius, p, **options).value >= excess
        # Given the labels, the priors may be estimated.
        shares = counts / n
        robust = np.array([recipe.resolve(shares).support(r) for r in world.risks])
        empirical = np.array([recipe.resolve(shares).support(r) for r in risks])
        worst, best = np.argmax(robust - empirical), np.argmin(empirical)
        third = conditional_bound(counts, rad, risks=risks[worst], **options)
        hits["cond"] += third.value >= robust[worst]
        excess = robust[best] - robust.min()
        hits["cond excess"] += conditional_bound(counts, rad, **options).value >= excess
    return hits


@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
def test_deviations_cover_a_fixed_classifier(level):
    hits = coverage_of_a_fixed_classifier(1000, level)
    assert all(enough(count, 1000, level) for count in hits.values()), hits


@pytest.mark.slow
@pytest.mark.parametrize("level", [0.1, 0.5, 0.8, 0.9, 0.95, 0.99])
def test_deviations_cover_a_fixed_classifier_in_the_long_run(level):
    hits = coverage_of_a_fixed_classifier(20_000, level)
    assert all(enough(count, 20_000, level) for count in hits.values()), hits


@pytest.mark.parametrize("recipe", [WorstClass(), LabelCVaR(0.4)], ids=repr)
def test_bounds_cover_all_classifiers_at_once(recipe):
    hits = coverage_of_all_classifiers(15, 0.5, recipe)
    assert all(enough(count, 15, 0.5) for count in hits.values()), hits


@pytest.mark.slow
@each_recipe
@pytest.mark.parametrize("level", [0.5, 0.9])
def test_bounds_cover_all_classifiers_in_the_long_run(recipe, level):
    hits = coverage_of_all_classifiers(300, level, recipe)
    assert all(enough(count, 300, level) for count in hits.values()), hits


def test_without_its_complexity_term_the_bound_would_be_broken():
    # Every row has a direction of its own, and the labels are noise. The classifier that leans
    # towards each row's label by c has an empirical margin loss of 1 - 2c, and a risk of 1 on
    # rows to come, which have directions of their own.
    n, c = 4000, 0.3
    radius = c * np.sqrt(n)
    rad = of_one_class(np.eye(900), radius) * np.sqrt(900 / n)
    assert rad == pytest.approx(c)
    given_ = {"uncertainty": WorstClass(), "observed": False}
    counts, risks = [n, n], [1 - 2 * c, 1 - 2 * c]
    assert conditional_bound(counts, rad, risks=risks, **given_).value >= 1
    assert conditional_bound(counts, 0.0, risks=risks, **given_).value < 1


def test_one_toss_of_a_coin_needs_deviations_on_both_sides():
    # The mean of one fair coin is off by a half for certain. With the odds of the printed lemma,
    # and no complexity, a width of less than a half would be promised with probability 0.3.
    confidence = 0.3
    printed = np.sqrt(np.log(1 / (1 - confidence)) / 2)
    assert printed < 0.5
    ours = conditional_bound([1, 1], 0.0, confidence=confidence, observed=False)
    assert min(np.asarray(ours.deviation)) >= 0.5


# Refusals

BASE = {"risks": [0.1, 0.2], "counts": [50, 40], "complexity": 0.01, "class_prior": [0.6, 0.4]}

REFUSED = {
    "risk above one": ({"risks": [0.1, 1.2]}, InvalidParameterError, r"risks must be in \[0, 1\]"),
    "nan risk": ({"risks": [0.1, np.nan]}, InvalidParameterError, "risks must be in"),
    "negative complexity": ({"complexity": -1}, InvalidParameterError, "complexity must be in"),
    "confidence": ({"confidence": 1.0}, InvalidParameterError, "confidence must be a number in"),
    "counts": ({"counts": 7}, InvalidParameterError, "counts must be a dict by class"),
    "text": ({"counts": ["many", "few"]}, InvalidParameterError, "counts must be a number"),
    "lengths": ({"risks": [0.1, 0.2, 0.3]}, ClassMismatchError, "each of the 2 classes"),
    "prior": ({"class_prior": [0.6, 0.6]}, InvalidParameterError, "prior must sum to 1"),
    "set": ({"uncertainty": "best"}, InvalidParameterError, "uncertainty must be"),
}


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("theorem", [iid_bound, conditional_bound])
def test_what_makes_no_sense_is_refused_in_a_sentence(case, theorem):
    changed, error, message = REFUSED[case]
    with pytest.raises(error, match=message):
        theorem(**(BASE | changed))


def test_a_class_without_rows_or_without_a_prior_is_named():
    with pytest.raises(InvalidParameterError, match=r"counts must be in \[1, inf\).*class 'b'"):
        conditional_bound({"a": 10, "b": 0}, 0.01)
    with pytest.raises(InvalidParameterError, match=r"class_prior must be in \(0, 1\].*class 1"):
        iid_bound([10, 5], 0.01, [1.0, 0.0])
    with pytest.raises(InvalidInputError, match="at least one row"):
        iid_bound([0, 0], 0.01, [0.5, 0.5])
    assert iid_bound([10, 0], 0.01, [0.9, 0.1]).value > 0


@given(
    counts=arrays(np.int64, 3, elements=st.integers(1, 10**6)),
    complexity=st.floats(0, 1),
    confidence=st.floats(0.01, 0.99),
)
def test_bounds_are_finite_and_ordered(counts, complexity, confidence):
    options = {"uncertainty": WorstClass(), "confidence": confidence}
    values = [
        conditional_bound(counts, complexity, observed=o, risks=[0.1] * 3, **options).value
        for o in (False, True)
    ]
    assert 0.1 < values[0] <= values[1] < np.inf
