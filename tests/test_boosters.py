"""Boosters of other libraries inside the plug-in, with names as classes and columns of text."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from equipoise import RobustClassifier, TunedDecisionClassifier
from equipoise.decisions.early_stopping import with_validation_rows
from equipoise.exceptions import InvalidInputError, InvalidParameterError

pd = pytest.importorskip("pandas", reason="pandas is not installed")


def draw(n_rows=300, seed=0):
    """Numbers, a column of text that matters, and three unequal classes."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 3))
    kind = rng.choice(["red", "green"], n_rows)
    score = X[:, 0] + (kind == "red") + rng.normal(size=n_rows)
    y = np.where(score > 1.5, "rare", np.where(score > 0, "some", "common"))
    return pd.DataFrame(X, columns=list("abc")), kind, y


def xgboost(**parameters):
    module = pytest.importorskip("xgboost", reason="xgboost is not installed")
    return module.XGBClassifier(n_estimators=5, n_jobs=1, **parameters)


def catboost(**parameters):
    module = pytest.importorskip("catboost", reason="catboost is not installed")
    quiet = {"verbose": 0, "allow_writing_files": False, "thread_count": 1}
    return module.CatBoostClassifier(iterations=5, **quiet, **parameters)


def lightgbm(**parameters):
    module = pytest.importorskip("lightgbm", reason="lightgbm is not installed")
    return module.LGBMClassifier(n_estimators=5, verbose=-1, n_jobs=1, **parameters)


@pytest.mark.parametrize("make", [xgboost, catboost, lightgbm])
@pytest.mark.parametrize(
    "names", [("rare", "some", "common"), (7, 3, 5), (2, 1, 0)], ids=["text", "gaps", "places"]
)
def test_classes_of_any_names(make, names):
    X, _, y = draw()
    named = np.array(names)[np.searchsorted(["common", "rare", "some"], y)]
    clf = TunedDecisionClassifier(make(), "worst_class", cv=3).fit(X, named)
    assert set(clf.predict(X)) <= set(names) and clf.classes_.tolist() == sorted(names)
    places = np.searchsorted(clf.classes_, named)
    same = TunedDecisionClassifier(make(), "worst_class", cv=3).fit(X, places)
    np.testing.assert_array_equal(clf.predict_proba(X), same.predict_proba(X))
    np.testing.assert_array_equal(clf.predict(X), clf.classes_[same.predict(X)])
    again = pickle.loads(pickle.dumps(clf))
    np.testing.assert_array_equal(again.predict(X), clf.predict(X))


@pytest.mark.parametrize("make", [xgboost, catboost, lightgbm])
def test_one_that_was_fitted_before_is_trained_as_a_new_one(make):
    X, _, y = draw()
    places = np.unique(y, return_inverse=True)[1]
    before = RobustClassifier(make().fit(X, places), "worst_class", cv=2).fit(X, places)
    new = RobustClassifier(make(), "worst_class", cv=2).fit(X, places)
    np.testing.assert_array_equal(before.predict(X), new.predict(X))


def test_a_class_that_was_dropped_and_one_that_a_fold_lacks():
    X, _, y = draw()
    y[:2] = "tiny"
    for rare in ("keep", "drop"):
        clf = TunedDecisionClassifier(xgboost(), cv=3, rare_classes=rare).fit(X, y)
        assert clf.predict_proba(X).shape == (len(y), 4)
        assert (clf.weights_["tiny"] == 0) == (rare == "drop")


def test_what_is_wrong_with_the_base_is_said():
    X, _, y = draw()
    with pytest.raises(ValueError, match="Invalid classes inferred") as found:
        TunedDecisionClassifier(xgboost(max_depth="deep"), cv=3).fit(X, y)
    assert "in fold 0 of 3" in str(found.value)
    assert "max_depth" in str(found.value.__cause__.__cause__)
    with pytest.raises(ValueError, match="max_depth"):
        TunedDecisionClassifier(xgboost(max_depth="deep"), cv=3).fit(X, (y == "rare") * 1)


@pytest.mark.parametrize("wrapped", [False, True])
def test_columns_of_text(wrapped):
    X, kind, y = draw()
    X = X.assign(kind=kind)
    base = catboost(cat_features=["kind"])
    if wrapped:
        base = make_pipeline("passthrough", base)
    clf = TunedDecisionClassifier(base, "worst_class", cv=3).fit(X, y)
    assert set(clf.predict(X)) == set(y)
    # Fresh copies of it, also where scikit-learn makes them.
    fresh = clone(clf)
    assert fresh.estimator is not base and not hasattr(fresh, "tuned_")
    np.testing.assert_array_equal(fresh.fit(X, y).predict(X), clf.predict(X))
    assert np.all(np.isfinite(cross_val_score(clf, X, y, cv=2)))
    step = "catboostclassifier__" if wrapped else ""
    search = GridSearchCV(clf, {f"estimator__{step}depth": [1, 2]}, cv=2).fit(X, y)
    assert search.best_score_ > 0


def test_categories_of_pandas_and_missing_values_pass_through():
    X, kind, y = draw()
    X = X.assign(kind=pd.Categorical(kind))
    X.iloc[::7, 0] = np.nan
    for base in (lightgbm(), xgboost(enable_categorical=True)):
        assert set(TunedDecisionClassifier(base, cv=3).fit(X, y).predict(X)) <= set(y)


@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize("name", ["eval_set", "eval_X", "step__eval_set", "sample_weight_eval_set"])
def test_validation_rows_are_refused(name, wrapped):
    X, _, y = draw()
    base = make_pipeline(StandardScaler(), lightgbm()) if wrapped else lightgbm()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(InvalidInputError, match=f"fit does not take {name}: the same rows"):
            TunedDecisionClassifier(base, cv=3).fit(X, y, **{name: [(X, y)]})


def asking(make, rounds=100):
    """A booster of many rounds that stops early, and how to ask how many it has made."""
    if make is lightgbm:
        return make(n_iter_no_change=3).set_params(n_estimators=rounds), "best_iteration_"
    if make is xgboost:
        base = make(early_stopping_rounds=3, verbosity=0)
        return base.set_params(n_estimators=rounds), "best_iteration"
    return make(od_wait=3, learning_rate=0.5).set_params(iterations=rounds), "tree_count_"


@pytest.mark.filterwarnings("ignore:The argument 'eval_set' is deprecated")
@pytest.mark.parametrize("make", [xgboost, catboost, lightgbm])
@pytest.mark.parametrize("training", ["plain", "balanced", "average"])
def test_one_that_stops_early_does_so_on_rows_of_its_own_part(make, training):
    X, _, y = draw()
    base, made = asking(make)
    clf = RobustClassifier(base, "worst_class", training=training, cv=3).fit(X, y)
    models = clf.estimator_.estimators if training == "average" else [clf.estimator_]
    for model in models:
        fitted = model if hasattr(model, made) else model.estimator_
        assert 0 < getattr(fitted, made) < 60
    assert len(models) == (3 if training == "average" else 1)
    assert set(clf.predict(X)) <= set(y)


@pytest.mark.filterwarnings("ignore:The argument 'eval_set' is deprecated")
def test_the_plug_in_holds_validation_rows_out_too():
    X, _, y = draw()
    y[0] = "single"  # a class of one row is trained on
    clf = TunedDecisionClassifier(
        asking(lightgbm)[0], "worst_class", cv=3, rare_classes="keep"
    ).fit(X, y)
    assert 0 < clf.estimator_.best_iteration_ < 60 and "single" in clf.estimator_.classes_


def test_validation_rows_are_rows_of_the_part_and_not_trained_on():
    X, _, y = draw()
    rows, weights = np.arange(0, 300, 2), np.arange(300.0)
    base = asking(lightgbm)[0]
    train, own = with_validation_rows(base, X, y, {"sample_weight": weights}, rows)
    ((features, labels),) = own["eval_set"]
    stop = features.index.to_numpy()
    np.testing.assert_array_equal(np.sort(np.concatenate([stop, train])), rows)
    np.testing.assert_array_equal(labels, y[stop])
    np.testing.assert_array_equal(own["eval_sample_weight"][0], weights[stop])
    assert len(stop) == pytest.approx(0.2 * 150, abs=2)


def test_one_that_stops_early_inside_a_pipeline_is_refused():
    X, _, y = draw()
    base = make_pipeline(StandardScaler(), asking(lightgbm)[0])
    with pytest.raises(InvalidParameterError, match="Pipeline asks for validation rows"):
        RobustClassifier(base, "worst_class", cv=3).fit(X, y)


@pytest.mark.parametrize("name", ["is_unbalance", "unbalance", "unbalanced_sets"])
def test_balance_of_its_own_is_refused(name):
    X, _, y = draw()
    with pytest.raises(InvalidParameterError, match=f"must not weigh classes itself, got {name}"):
        RobustClassifier(lightgbm(**{name: True}), "worst_class", cv=3).fit(X, y)


def test_weights_of_its_own_in_an_array_are_refused():
    X, _, y = draw()
    with pytest.raises(InvalidParameterError, match="must not weigh classes itself, got class_w"):
        RobustClassifier(catboost(class_weights=np.array([1.0, 3, 2])), cv=3).fit(X, y)
