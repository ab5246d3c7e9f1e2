"""robust_path: the numbers along a path are those of the fits made one by one."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from equipoise import (
    FixedWeights,
    LabelCVaR,
    LabelHCVaR,
    PriorBall,
    RobustLogisticRegression,
    WeightBox,
    WorstClass,
    class_risks,
    robust_path,
)
from equipoise.analysis import RobustPath
from equipoise.datasets import make_power_imbalance
from equipoise.exceptions import FewRowsWarning, InvalidInputError, InvalidParameterError

NAMES = np.array(["common", "less common", "rare"])


def draw(n=400, d=4, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.choice(3, size=n, p=[0.7, 0.2, 0.1])
    return rng.normal(size=(3, d))[y] + 1.5 * rng.normal(size=(n, d)), NAMES[y]


X, Y = draw()

PATHS = {
    "alpha": (LabelCVaR(0.5), "alpha", [1.0, 0.6, 0.3, 0.05]),
    "c": (LabelHCVaR(c=0.5, kappa=4), "c", [1.0, 0.7, 0.4]),
    "c by default": (LabelHCVaR(kappa=4), "c", [1.0, 0.5]),
    "kappa": (LabelHCVaR(c=0.9, kappa=2), "kappa", [8.0, 4.0, 2.0]),
    "radius": (PriorBall(0.1, "kl"), "radius", [0.0, 0.05, 0.2, 5.0]),
    "upper": (WeightBox(0.5, 2.0), "upper", [1.0, 2.0, 8.0]),
}
each_path = pytest.mark.parametrize("name", PATHS)


@each_path
@pytest.mark.parametrize("loss", ["zero_one", "cross_entropy"])
def test_a_path_is_its_fits(name, loss):
    recipe, knob, values = PATHS[name]
    path = robust_path(X, Y, recipe, parameter=knob, values=values, loss=loss)
    assert isinstance(path, RobustPath) and path.parameter == knob
    assert path.values.tolist() == values and path.classes.tolist() == NAMES.tolist()
    for place, value in enumerate(values):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            alone = RobustLogisticRegression(clone(recipe).set_params(**{knob: value})).fit(X, Y)
        assert path.objective[place] == pytest.approx(alone.objective_, rel=2e-6)
        fit = path.estimators[place]
        predicted = fit.predict(X) if loss == "zero_one" else fit.predict_proba(X)
        risks = class_risks(Y, predicted, loss=loss)
        assert path.class_risks[place].tolist() == list(risks.values())
        assert path.standard_risk[place] == risks.standard()
        assert path.worst_class_risk[place] == risks.worst()
        assert path.balanced_risk[place] == risks.balanced()
        assert fit.goal.get_params()[knob] == value
        assert path.duality_gap[place] <= 1e-6 * path.objective[place]
        assert path.caps_bind[place] == alone.caps_active_


def test_more_robustness_costs_standard_risk_and_saves_the_worst_class():
    path = robust_path(X, Y, loss="cross_entropy")
    assert path.parameter == "alpha" and len(path.values) == 10
    assert path.values[0] == 1.0 and path.values[-1] == pytest.approx(0.01)
    # The training objective grows with the set; so do the risks it trades, up to the penalty.
    assert np.all(np.diff(path.objective) >= -1e-6)
    assert np.all(np.diff(path.standard_risk) >= -1e-3)
    assert np.all(np.diff(path.worst_class_risk) <= 1e-3)
    # From the smallest prior down no cap binds, and the path is flat.
    flat = ~path.caps_bind
    assert flat.any() and not flat.all()
    np.testing.assert_allclose(path.objective[flat], path.objective[-1], rtol=2e-6)


def test_a_path_over_kappa_ends_at_the_worst_class():
    rows, labels = make_power_imbalance(2_000, p=0.9, random_state=0)
    path = robust_path(rows, labels, LabelHCVaR(kappa=1), parameter="kappa")
    assert path.parameter == "kappa" and len(path.values) == 10
    assert path.values[0] == 16.0 and path.values[-1] == 1.0
    worst = RobustLogisticRegression(WorstClass()).fit(rows, labels)
    assert path.objective[-1] == pytest.approx(worst.objective_, rel=2e-6)
    assert path.objective[0] < 0.99 * path.objective[-1]
    assert path.caps_bind[0] and not path.caps_bind[-1]


def test_the_ends_of_the_path_are_known_problems():
    path = robust_path(X, Y, values=[1.0, 0.001], loss="cross_entropy")
    plain = RobustLogisticRegression("standard").fit(X, Y)
    worst = RobustLogisticRegression(WorstClass()).fit(X, Y)
    assert path.objective[0] == pytest.approx(plain.objective_, rel=2e-6)
    assert path.objective[1] == pytest.approx(worst.objective_, rel=2e-6)


def test_fits_start_where_the_last_one_ended():
    values = np.linspace(0.5, 0.45, 6)
    path = robust_path(X, Y, LabelCVaR(0.5), values=values)
    cold = [RobustLogisticRegression(LabelCVaR(value)).fit(X, Y).n_iter_ for value in values]
    warm = [fit.n_iter_ for fit in path.estimators]
    assert warm[0] == cold[0] and sum(warm[1:]) < 0.7 * sum(cold[1:])


def test_the_order_of_the_values_is_the_callers():
    down = robust_path(X, Y, values=[0.8, 0.4, 0.2])
    up = robust_path(X, Y, values=[0.2, 0.4, 0.8])
    np.testing.assert_allclose(up.objective[::-1], down.objective, rtol=2e-6)
    twice = robust_path(X, Y, values=[0.4, 0.4])
    assert twice.estimators[1].n_iter_ <= 2


def test_settings_of_the_estimator_are_kept():
    base = RobustLogisticRegression(
        WorstClass(), C=0.1, tol=1e-8, fit_intercept=False, solver="sqp-lbfgs"
    )
    path = robust_path(X, Y, values=[0.9, 0.5], estimator=base)
    for fit, value in zip(path.estimators, [0.9, 0.5], strict=True):
        expected = base.get_params(deep=False) | {"goal": None}
        assert fit.get_params(deep=False) | {"goal": None} == expected
        assert fit.goal.alpha == value and np.all(fit.intercept_ == 0)
    assert isinstance(base.goal, WorstClass) and not hasattr(base, "coef_")
    recipe = LabelCVaR(0.5)
    robust_path(X, Y, recipe, values=[0.9])
    assert recipe.alpha == 0.5


def test_sample_weights_weigh_fits_and_risks():
    counts = np.random.default_rng(0).integers(1, 4, len(Y))
    base = RobustLogisticRegression(tol=1e-10)
    weighted = robust_path(X, Y, values=[0.8, 0.4], sample_weight=counts, estimator=base)
    repeated = robust_path(
        np.repeat(X, counts, axis=0), np.repeat(Y, counts), values=[0.8, 0.4], estimator=base
    )
    np.testing.assert_allclose(weighted.objective, repeated.objective, rtol=1e-8)
    np.testing.assert_allclose(weighted.class_risks, repeated.class_risks, rtol=1e-12)
    np.testing.assert_allclose(weighted.standard_risk, repeated.standard_risk, rtol=1e-12)


def test_risks_may_be_those_of_held_out_rows():
    rows, labels = draw(seed=1)
    path = robust_path(X, Y, values=[0.8, 0.3], held_out=(rows, labels))
    for fit, standard in zip(path.estimators, path.standard_risk, strict=True):
        assert standard == pytest.approx(np.mean(fit.predict(rows) != labels))


@pytest.mark.parametrize("loss", ["zero_one", "cross_entropy"])
def test_a_class_that_is_not_judged_has_no_risk(loss):
    rows, labels = draw(seed=1)
    kept = labels != "less common"
    held_out = (rows[kept], labels[kept])
    path = robust_path(X, Y, values=[0.8, 0.3], held_out=held_out, loss=loss)
    assert np.isnan(path.class_risks[:, 1]).all()
    assert np.isfinite(path.class_risks[:, [0, 2]]).all()
    np.testing.assert_allclose(path.worst_class_risk, np.nanmax(path.class_risks, axis=1))
    np.testing.assert_allclose(path.balanced_risk, np.nanmean(path.class_risks, axis=1))
    prior = {"common": 0.5, "less common": 0.2, "rare": 0.3}
    base = RobustLogisticRegression(class_prior=prior)
    told = robust_path(X, Y, values=[0.8], held_out=held_out, loss=loss, estimator=base)
    expected = told.class_risks[:, [0, 2]] @ [0.625, 0.375]
    np.testing.assert_allclose(told.standard_risk, expected)


def test_the_standard_risk_is_that_of_the_stated_population():
    prior = {"common": 0.98, "less common": 0.01, "rare": 0.01}
    base = RobustLogisticRegression(class_prior=prior)
    path = robust_path(X, Y, values=[0.9, 0.5], estimator=base)
    np.testing.assert_allclose(path.standard_risk, path.class_risks @ [0.98, 0.01, 0.01])
    np.testing.assert_allclose(path.balanced_risk, path.class_risks.mean(axis=1))


def test_columns_by_name():
    path = robust_path(X, Y, values=[0.8, 0.3], loss="cross_entropy")
    columns = path.to_dict()
    assert list(columns)[:4] == ["alpha", "standard_risk", "balanced_risk", "worst_class_risk"]
    np.testing.assert_array_equal(columns["risk[rare]"], path.class_risks[:, 2])
    frame = path.to_frame()
    assert isinstance(frame, pd.DataFrame) and list(frame.columns) == list(columns)
    assert len(frame) == 2 and frame["alpha"].tolist() == [0.8, 0.3]


def test_frames_and_sparse_data():
    frame = robust_path(pd.DataFrame(X), pd.Series(Y, dtype="category"), values=[0.8, 0.3])
    sparse = robust_path(sp.csr_matrix(X), Y, values=[0.8, 0.3])
    np.testing.assert_allclose(frame.objective, sparse.objective, rtol=2e-6)


def test_two_classes_and_numbers_for_names():
    y = (Y == "rare").astype(int)
    path = robust_path(X, y, values=[1.0, 0.5], loss="cross_entropy")
    assert path.class_risks.shape == (2, 2) and "risk[1]" in path.to_dict()


def test_warnings_of_single_fits_reach_the_caller():
    rare = np.flatnonzero(Y == "rare")
    rows = np.r_[np.flatnonzero(Y != "rare"), rare[:5]]
    with pytest.warns(FewRowsWarning, match="'rare' has 5 rows"):
        robust_path(X[rows], Y[rows], values=[0.01])


BAD = {
    "unknown parameter": ({"parameter": "beta"}, "parameter must be one of 'alpha', got 'beta'"),
    "no knob": ({"goal": WorstClass()}, "no hyper-parameter to move"),
    "no knob by name": ({"goal": "balanced"}, "no hyper-parameter to move"),
    "no knob without c": ({"goal": LabelHCVaR(alphas=0.5)}, "no hyper-parameter to move"),
    "no grid": ({"goal": PriorBall(0.1)}, "values must be given for 'radius'"),
    "no values": ({"values": []}, "at least one number"),
    "a table": ({"values": [[0.5]]}, "sequence of at least one number"),
    "text": ({"values": ["a"]}, "values must be a number"),
    "None": ({"values": [None, "x"]}, "values must be a number"),
    "out of range": ({"values": [0.5, 1.5]}, r"alpha must be a number in \(0, 1\], got 1.5"),
    "nan": ({"values": [np.nan]}, "alpha must be .* got nan"),
    "not a set": ({"goal": 0.1, "values": [0.5]}, "goal must be"),
    "weights": (
        {"goal": FixedWeights("balanced"), "values": [1.0], "parameter": "alpha"},
        "parameter must be one of 'weights', got 'alpha'",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_gets_a_sentence(case):
    arguments, match = BAD[case]
    with pytest.raises(InvalidParameterError, match=match):
        robust_path(X, Y, **arguments)


def test_bad_data_are_refused_as_by_the_estimator():
    with pytest.raises(ValueError, match="NaN"):
        robust_path(np.where(X > 2, np.nan, X), Y, values=[0.5])
    with pytest.raises(InvalidInputError, match="at least 2 classes"):
        robust_path(X, np.zeros(len(Y)), values=[0.5])
    with pytest.raises(InvalidInputError, match="loss"):
        robust_path(X, Y, values=[0.5], loss="absolute")
