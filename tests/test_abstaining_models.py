"""Where rules with rows without a class go: labels, files, ONNX, frequencies, the command line."""

import json

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.stats import binom, norm
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from equipoise import (
    RobustClassifier,
    TunedDecisionClassifier,
    load_model,
    save_model,
    tune_weights,
)
from equipoise.blocks import from_blocks
from equipoise.exceptions import InvalidInputError, InvalidParameterError, UnattainableError
from equipoise.goals import Floors, PrecisionFloors, format_goal, parse_goal
from equipoise.goals.labelled_predictions import Predictions, decide
from equipoise.report import compare

GOAL = PrecisionFloors(0.9, abstain=True)
NAMES = {"texts": np.array(["a", "b", "c"]), "numbers": np.array([3, 5, 8])}


def rows(n, seed=0, k=3, lead=2.0):
    """Features of classes that are centred apart, and their indices."""
    rng = np.random.default_rng(seed)
    y = rng.choice(k, n, p=np.arange(k, 0, -1) / np.arange(k + 1).sum())
    return lead * np.eye(k)[y] + rng.normal(size=(n, k)), y


def eta(n, seed=0, k=3):
    """Labels, and the probabilities of ``rows``."""
    X, y = rows(n, seed, k)
    table = np.arange(k, 0, -1) * np.exp(2.0 * X)
    return y, table / table.sum(axis=1, keepdims=True)


def precisions(y, predicted, classes):
    named = [np.array([each == name for each in predicted]) for name in classes]
    return [np.mean(y[each] == name) for each, name in zip(named, classes, strict=True)]


@pytest.mark.parametrize("names", NAMES.values(), ids=NAMES)
def test_rows_without_a_class_are_none_in_labels_of_every_type(names):
    labels, table = eta(2000)
    y = names[labels]
    tuned = tune_weights(y, table, GOAL)
    predicted = tuned.decide(table)
    assert predicted.dtype == object
    assert set(predicted.tolist()) == {*names.tolist(), None}
    assert min(precisions(y, predicted, names)) >= 0.9
    # A weighted probability that reaches the weight of abstaining, or none does.
    weighted = table * np.asarray(tuned.weights)
    none = np.array([each is None for each in predicted])
    np.testing.assert_array_equal(none, weighted.max(axis=1) < tuned.abstain_below)
    assert tuned.threshold is None and tuned.may_abstain
    note = f"no class: where the largest weighted probability is below {tuned.abstain_below:.4g}"
    assert repr(tuned).endswith(note)
    every = tune_weights(y, table, "worst_class")
    assert every.abstain_below is None and every.abstained is None and not every.may_abstain


def test_the_summary_counts_rows_without_a_class_as_errors_and_reports_their_share():
    y, table = eta(2000)
    tuned = tune_weights(y, table, GOAL)
    # By folds: each row by the rule that was tuned without its fold.
    predicted = np.full(len(y), 3)
    for fold, weights in enumerate(tuned.fold_weights):
        part, ones = tuned.folds == fold, np.ones((np.sum(tuned.folds == fold), 1))
        predicted[part] = np.argmax(np.hstack([table[part], ones]) * weights, axis=1)
    summary = tuned.summary()
    assert summary.abstained == pytest.approx(np.mean(predicted == 3))
    assert summary.tuned_error == pytest.approx(np.mean(predicted != y))
    recalls = [np.mean(predicted[y == i] == i) for i in range(3)]
    np.testing.assert_allclose(1 - np.asarray(summary.tuned.risks), recalls)
    wanted = [np.mean(y[predicted == i] == i) for i in range(3)]
    np.testing.assert_allclose(summary.to_frame()["precision_tuned"], wanted)
    assert f"no class: {summary.abstained:.1%} of rows, which count as errors" in repr(summary)


@pytest.mark.parametrize("estimator", [TunedDecisionClassifier, RobustClassifier])
def test_a_classifier_keeps_the_floors_of_new_rows_nearly_and_its_probabilities(estimator):
    (X, y), (X_new, y_new) = rows(6000), rows(20_000, seed=1)
    model = estimator(LogisticRegression(), GOAL).fit(X, y)
    predicted = model.predict(X_new)
    # Three standard errors of a precision on as many rows of the tuning.
    named = [np.sum(model.predict(X) == i) for i in range(3)]
    least = 0.9 - 3 * np.sqrt(0.09 / np.array(named))
    assert np.all(precisions(y_new, predicted, range(3)) > least)
    assert 0 < np.mean([each is None for each in predicted]) < 0.5
    plain = estimator(LogisticRegression(), "f1_macro").fit(X, y)
    np.testing.assert_array_equal(model.predict_proba(X_new), plain.predict_proba(X_new))
    weighted = model.predict_proba(X_new) * np.asarray(model.weights_)
    np.testing.assert_allclose(model.decision_function(X_new), weighted)
    right = np.array([own == label for own, label in zip(predicted, y_new, strict=True)])
    weights = np.arange(len(y_new)) % 3
    assert model.score(X_new, y_new) == pytest.approx(right.mean())
    assert model.score(X_new, y_new, weights) == pytest.approx(right @ weights / weights.sum())
    assert "no class" in repr(model.summary())
    again = clone(model)
    assert again.goal.get_params() == {"floors": 0.9, "confidence": None, "abstain": True}


def test_forests_whose_votes_are_zero_keep_the_floors():
    forest = RandomForestClassifier(20, min_samples_leaf=2, random_state=0).fit(*rows(1000))
    X, y = rows(1000, seed=1)
    model = TunedDecisionClassifier(FrozenEstimator(forest), GOAL).fit(X, y)
    assert np.any(model.predict_proba(X) == 0)
    assert min(precisions(y, model.predict(X), range(3))) >= 0.9


def test_a_class_prior_is_that_of_the_floors():
    X, y = rows(6000)
    prior = np.array([0.2, 0.2, 0.6])
    model = TunedDecisionClassifier(LogisticRegression(), GOAL, class_prior=prior).fit(X, y)
    X_new, y_new = rows(20_000, seed=1)
    predicted, weights = model.predict(X_new), (prior / np.bincount(y_new))[y_new]
    for i in range(3):
        named = np.array([each == i for each in predicted])
        # Two points for the tuning on some 1,000 rows of a class.
        assert np.average(y_new[named] == i, weights=weights[named]) > 0.88
    assert any(each is None for each in predicted)


def test_two_classes_have_scores_as_without_abstaining():
    X, y = rows(2000, k=2)
    model = TunedDecisionClassifier(LogisticRegression(), GOAL).fit(X, y)
    assert model.decision_function(X).shape == (2000,)
    assert not hasattr(model, "threshold_")
    # Each class has a threshold of its own.
    first, second = (model.abstain_below_ / np.asarray(model.weights_)).tolist()
    p = model.predict_proba(X)[:, 1]
    wanted = np.where(p >= second, 1, np.where(1 - p >= first, 0, None))
    assert model.predict(X).tolist() == wanted.tolist()


def test_costs_of_rows_are_refused():
    y, table = eta(500)
    tuned = tune_weights(y, table, GOAL)
    model = TunedDecisionClassifier(LogisticRegression(), GOAL).fit(*rows(500))
    costs = np.ones((500, 3))
    for call in (
        lambda: tuned.decide(table, costs=costs),
        lambda: model.predict(rows(500)[0], costs=costs),
    ):
        with pytest.raises(InvalidInputError, match=r"costs must be None .* abstain=True"):
            call()


@pytest.mark.parametrize("names", NAMES.values(), ids=NAMES)
def test_saved_models_abstain_from_the_same_rows(names, tmp_path):
    X, y = rows(2000)
    model = RobustClassifier(LogisticRegression(), GOAL).fit(X, names[y])
    save_model(model, tmp_path / "model.equipoise")
    again = load_model(tmp_path / "model.equipoise")
    assert again.predict(X).tolist() == model.predict(X).tolist()
    assert again.model.abstain_below_ == model.abstain_below_
    assert repr(again.model.tuned_.summary()) == repr(model.tuned_.summary())


@pytest.mark.parametrize("names", NAMES.values(), ids=NAMES)
@pytest.mark.parametrize("k", [2, 3])
def test_onnx_models_report_the_rows_without_a_class(names, k):
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    from equipoise.onnx import to_onnx

    X, y = rows(2000, k=k)
    goal = PrecisionFloors(0.97, abstain=True)
    model = TunedDecisionClassifier(LogisticRegression(), goal)
    model = make_pipeline(StandardScaler(), model).fit(X, names[y])
    session = runtime.InferenceSession(to_onnx(model, X).SerializeToString())
    label, probabilities, abstained = session.run(None, {"X": X})
    assert [each.name for each in session.get_outputs()][2] == "abstained"
    np.testing.assert_allclose(probabilities, model.predict_proba(X), atol=1e-9)
    wanted = model.predict(X)
    np.testing.assert_array_equal(abstained, np.array([each is None for each in wanted]))
    assert 0 < abstained.mean() < 1
    assert label[~abstained].tolist() == wanted[~abstained].tolist()


def test_other_class_frequencies_keep_the_floors_there():
    y, table = eta(6000)
    prior = np.array([0.2, 0.2, 0.6])
    tuned = tune_weights(y, table, GOAL, class_prior=prior)
    assert tuned.weights is None and tuned.costs.shape == (3, 4)
    predicted = tuned.decide(table)
    weights = (prior / np.bincount(y) * len(y))[y]
    for i in range(3):
        named = np.array([each == i for each in predicted])
        assert np.average(y[named] == i, weights=weights[named]) >= 0.9 - 1e-9
    # The decisions of the estimator, whose probabilities are on the scale of the population.
    moved = table * prior / (np.bincount(y) / len(y))
    moved /= moved.sum(axis=1, keepdims=True)
    at_prior = tune_weights(y, moved, GOAL, sample_weight=weights, random_state=0, class_prior=None)
    assert at_prior.weights is not None
    assert predicted.tolist() == at_prior.decide(moved).tolist()


def test_adapted_models_abstain_at_the_new_frequencies():
    X, y = rows(4000)
    model = TunedDecisionClassifier(LogisticRegression(), GOAL).fit(X, y)
    X_held_out, y_held_out = rows(6000, seed=1)
    X_new, y_new = rows(12_000, seed=2)
    kept = np.random.default_rng(0).random(len(y_new)) < np.array([0.2, 0.5, 1.0])[y_new]
    X_new, y_new = X_new[kept], y_new[kept]
    adapted = model.adapt(X_new, held_out=(X_held_out, y_held_out))
    predicted = adapted.predict(X_new)
    assert adapted.may_abstain and any(each is None for each in predicted)
    assert min(precisions(y_new, predicted, range(3))) > 0.86
    right = np.array([own == label for own, label in zip(predicted, y_new, strict=True)])
    assert adapted.score(X_new, y_new) == pytest.approx(right.mean())
    with pytest.raises(InvalidInputError, match="costs must be None"):
        adapted.predict(X_new, costs=np.ones((len(y_new), 3)))


def test_sparse_probabilities_decide_as_dense_ones():
    y, table = eta(1000, k=5)
    sparse = csr_array(np.where(table >= np.sort(table, axis=1)[:, [-2]], table, 0.0))
    tuned = tune_weights(y, sparse, GOAL)
    decisions = decide(sparse, tuned.rule)
    np.testing.assert_array_equal(decisions, decide(sparse.toarray(), tuned.rule))
    assert 0 < np.mean(decisions == 5) < 1
    assert np.all([np.mean(y[decisions == i] == i) >= 0.9 for i in range(5)])


@pytest.mark.parametrize("rare", ["keep", "drop"])
def test_rare_classes_are_kept_or_dropped_beside_the_others(rare):
    y, table = eta(2000)
    y[:2], table[:, 2] = 3, 0.9 * table[:, 2]
    table = np.column_stack([table, 1 - table.sum(axis=1)])
    goal = PrecisionFloors({0: 0.9, 1: 0.9}, abstain=True)
    tuned = tune_weights(y, table, goal, rare_classes=rare)
    assert tuned.rule[3:].tolist() == [float(rare == "keep"), tuned.abstain_below]
    predicted = tuned.decide(table)
    assert min(precisions(y, predicted, range(2))) >= 0.9 - 2 / np.sum(predicted == 1)
    assert tuned.summary().abstained > 0


def test_rows_in_blocks_are_evaluated_with_those_without_a_class():
    X, y = rows(20_000)
    model = TunedDecisionClassifier(LogisticRegression(), GOAL, sample_rows=4000, cv=0.5)
    parts = [slice(start, start + 5000) for start in range(0, 20_000, 5000)]
    model.fit(from_blocks([(X[part], y[part]) for part in parts]))
    predicted = model.predict(X)
    share = np.mean([each is None for each in predicted])
    # The summary evaluates rows that were not trained on: binomial errors are below 0.004.
    assert model.summary().abstained == pytest.approx(share, abs=0.02)


def test_what_is_attainable_with_abstaining_is_said():
    y, table = eta(1000)
    with pytest.raises(UnattainableError, match=r"at best .* beside the others") as raised:
        tune_weights(y, table, PrecisionFloors(0.95))
    assert "set abstain=True, which attains them with" in str(raised.value)
    tune_weights(y, table, PrecisionFloors(0.95, abstain=True))
    # Where abstaining does not help, it is not advised.
    floors = Floors(recall=0.99, precision=0.99)
    with pytest.raises(UnattainableError) as raised:
        tune_weights(y, table, floors)
    assert "abstain" not in str(raised.value)
    with pytest.raises(UnattainableError, match=r"at best .* Lower a floor") as raised:
        tune_weights(y, table, Floors(recall=0.99, precision=0.99, abstain=True))
    assert "abstain" not in str(raised.value)


def test_the_confidence_of_precisions_needs_abstaining_where_classes_overlap():
    y, table = eta(4000, seed=3)
    with pytest.raises(UnattainableError, match="With abstain=True they do show them"):
        tune_weights(y, table, PrecisionFloors(0.9, confidence=0.9))
    tuned = tune_weights(y, table, PrecisionFloors(0.9, confidence=0.9, abstain=True))
    y_new, table_new = eta(20_000, seed=1)
    assert tuned.may_abstain
    assert min(precisions(y_new, tuned.decide(table_new), range(3))) >= 0.9


def test_a_confidence_of_abstaining_rules_holds_over_redraws():
    """Two classes with scores around 0 and 1.5: both precisions are known exactly."""
    # The seed is not that of the halves, which would be drawn as the labels of the first redraw.
    rng, prior, redraws, confidence = np.random.default_rng(1), np.array([0.7, 0.3]), 100, 0.8
    broken = found = 0
    for _ in range(redraws):
        y = rng.choice(2, 2000, p=prior)
        scores = 1.5 * y + rng.normal(size=2000)
        odds = prior[1] / prior[0] * np.exp(1.5 * (scores - 0.75))
        part = Predictions(np.column_stack([1 / (1 + odds), odds / (1 + odds)]), y, np.ones(2000))
        goal = PrecisionFloors({0: 0.9, 1: 0.8}, confidence=confidence, abstain=True)
        criterion = goal.resolve(np.bincount(y) / 2000)
        try:
            rule = criterion.tune(part, [np.ones(2000, dtype=bool)], pooling=0.0, seed=0)[0]
        except UnattainableError:
            continue
        found += 1
        # The odds at the cuts: where a class's weighted probability is the largest and reaches 1.
        w = rule / rule[2]
        to_one = max(1 / (w[1] - 1) if w[1] > 1 else np.inf, w[0] / w[1])
        to_zero = min(w[0] - 1, w[0] / w[1])
        high, low = (0.75 + np.log(each * prior[0] / prior[1]) / 1.5 for each in (to_one, to_zero))
        one = prior * norm.sf(high - np.array([0, 1.5]))
        zero = prior * norm.cdf(low - np.array([0, 1.5]))
        broken += one[1] < 0.8 * one.sum() or zero[0] < 0.9 * zero.sum()
    assert found > redraws / 2
    assert broken <= binom.ppf(0.999, found, 1 - confidence)


@pytest.mark.parametrize("abstain", ["yes", 1, None])
def test_abstain_is_a_truth_value(abstain):
    for goal in (PrecisionFloors(0.5, abstain=abstain), Floors(recall=0.5, abstain=abstain)):
        with pytest.raises(InvalidParameterError, match="abstain must be True or False, got"):
            goal.resolve([0.5, 0.5])


def test_goals_that_abstain_are_read_and_written_as_text():
    for goal in (GOAL, Floors(precision={"a": 0.9}, abstain=True)):
        again = parse_goal(format_goal(goal))
        assert again.get_params() == goal.get_params()


def test_a_report_and_a_module_of_logits_refuse_to_abstain():
    X, y = rows(300)
    with pytest.raises(InvalidParameterError, match="goals must give every row a class"):
        compare(X, y, goals=GOAL)
    torch = pytest.importorskip("torch")
    from equipoise.torch import tune_decisions

    X, y = rows(2000)
    batch = torch.as_tensor(X, dtype=torch.float32), torch.as_tensor(y)
    with pytest.raises(InvalidParameterError, match="goal must give every row a class"):
        tune_decisions(torch.nn.Linear(3, 3), [batch], PrecisionFloors(0.5, abstain=True))


def test_the_command_line_predicts_no_class_as_an_empty_cell(tmp_path):
    pandas, testing = pytest.importorskip("pandas"), pytest.importorskip("click.testing")
    main = pytest.importorskip("equipoise.cli.main").main
    X, y = rows(2000)
    frame = pandas.DataFrame(X, columns=["u", "v", "w"]).assign(kind=NAMES["texts"][y])
    table, model = str(tmp_path / "rows.csv"), str(tmp_path / "model.equipoise")
    frame.to_csv(table, index=False)

    def run(*words):
        result = testing.CliRunner().invoke(main, [str(each) for each in words])
        assert result.exit_code == 0, result.output
        return result.output

    run("fit", table, "--target", "kind", "--goal", format_goal(GOAL), "--out", model)
    run("predict", model, table, "--out", tmp_path / "predicted.csv")
    predicted = pandas.read_csv(tmp_path / "predicted.csv")["prediction"]
    wanted = load_model(model).predict(frame)
    assert predicted.isna().tolist() == [each is None for each in wanted]
    share = float(predicted.isna().mean())
    assert 0 < share < 1
    text = run("evaluate", model, table)
    assert f"No class: {100 * share:.1f}% of the rows, which count as errors." in text
    report = json.loads(run("evaluate", model, table, "--json"))
    assert report["abstained"] == share
    assert report["standard_risk"] == pytest.approx(np.mean(predicted != frame["kind"]))
