"""choose_levels: c and kappa of LHCVaR by cross-validated class errors."""

import warnings

import numpy as np
import pytest
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from equipoise import LabelHCVaR, RobustLogisticRegression, WorstClass, class_risks
from equipoise.analysis import choose_levels
from equipoise.exceptions import InvalidParameterError

NAMES = np.array(["common", "less common", "rare"])


def draw(n=1000, seed=0):
    """Classes along a line, the rare one between the others: its mass grows until a cap binds."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat([0, 1, 2], [n * 7 // 10, n * 2 // 10, n // 10]))
    return np.array([0.0, 2.0, 1.0])[y, None] + rng.normal(size=(n, 2)), NAMES[y]


X, Y = draw()
GRID = {"c": [1.0, 0.5], "kappa": [1.0, 2.0, 8.0]}


@pytest.fixture(scope="module")
def found():
    return choose_levels(X, Y, **GRID, cv=3)


def test_every_set_is_in_the_grid_once(found):
    pairs = list(zip(found.c.tolist(), found.kappa.tolist(), strict=True))
    # With kappa = 1 the set is the simplex whatever c.
    assert (1.0, 1.0) in pairs and (0.5, 1.0) not in pairs
    sets = [LabelHCVaR(c=c, kappa=kappa).resolve([0.7, 0.2, 0.1]).upper for c, kappa in pairs]
    assert len({tuple(np.minimum(each, 1).round(9)) for each in sets}) == len(pairs) == 4


def test_risks_are_those_of_cross_validated_predictions(found):
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    for place, (c, kappa) in enumerate(zip(found.c, found.kappa, strict=True)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fit = RobustLogisticRegression(LabelHCVaR(c=c, kappa=kappa))
            risks = class_risks(Y, cross_val_predict(fit, X, Y, cv=folds))
        assert found.class_risks[place].tolist() == list(risks.values())
        assert found.standard_risk[place] == risks.standard()
        assert found.worst_class_risk[place] == risks.worst()


def test_the_sets_make_different_rules(found):
    assert len(set(found.standard_risk.tolist())) > 1


def test_the_regret_is_over_the_sets_of_the_grid(found):
    prior = class_risks(Y, Y).prior
    values = np.array(
        [
            [
                LabelHCVaR(c=c, kappa=kappa).resolve(np.asarray(prior)).support(row)
                for row in found.class_risks
            ]
            for c, kappa in zip(found.c, found.kappa, strict=True)
        ]
    )
    regrets = (values - values.min(axis=1, keepdims=True)).max(axis=0)
    np.testing.assert_allclose(found.largest_regret, regrets, atol=1e-12)
    assert found.chosen == np.argmin(regrets)
    chosen = found.goal
    assert (chosen.c, chosen.kappa) == (found.c[found.chosen], found.kappa[found.chosen])


def test_a_price_and_a_recall_choose_by_their_number(found):
    standard, worst = found.standard_risk, found.worst_class_risk
    dear = choose_levels(X, Y, **GRID, cv=3, rule="price", price=100)
    assert worst[dear.chosen] == worst.min()
    free = choose_levels(X, Y, **GRID, cv=3, rule="price", price=0)
    assert standard[free.chosen] == standard.min()
    low = choose_levels(X, Y, **GRID, cv=3, rule="recall", recall=1 - worst.max())
    assert standard[low.chosen] == standard.min()
    high = choose_levels(X, Y, **GRID, cv=3, rule="recall", recall=0.999)
    assert worst[high.chosen] == worst.min()


def test_weights_priors_and_settings_are_those_of_the_caller():
    weights = np.random.default_rng(0).integers(1, 4, len(Y)).astype(float)
    base = RobustLogisticRegression(WorstClass(), C=0.1, class_prior=[0.5, 0.3, 0.2])
    found = choose_levels(X, Y, c=[1], kappa=[3], cv=3, estimator=base, sample_weight=weights)
    np.testing.assert_allclose(found.standard_risk, found.class_risks @ [0.5, 0.3, 0.2])
    assert isinstance(base.goal, WorstClass) and not hasattr(base, "coef_")
    plain = choose_levels(X, Y, c=[1], kappa=[3], cv=3, estimator=base)
    assert not np.allclose(plain.class_risks, found.class_risks)


def test_columns_by_name(found):
    pd = pytest.importorskip("pandas")
    frame = found.to_frame()
    assert isinstance(frame, pd.DataFrame) and len(frame) == 4
    assert list(frame) == ["c", "kappa", "standard_risk", "worst_class_risk", "largest_regret"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"c": []}, "c and kappa must hold at least one number each"),
        ({"c": [1.5]}, r"c must be a number in \(0, 1\], got 1.5"),
        ({"kappa": [0.0]}, "kappa must be a number"),
        ({"rule": "price"}, "rule='price' needs price"),
        ({"recall": 0.5}, "recall is for rule='recall'"),
        ({"cv": 1}, "cv must be"),
    ],
)
def test_bad_settings_get_a_sentence(options, words):
    with pytest.raises(InvalidParameterError, match=words):
        choose_levels(X, Y, **options)
