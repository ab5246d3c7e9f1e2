"""Displays: what is drawn is what ``to_frame()`` says, and both are the library's own numbers."""

import subprocess
import sys
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

matplotlib = pytest.importorskip("matplotlib")
pytest.importorskip("pandas")
matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402
from sklearn.calibration import calibration_curve  # noqa: E402
from sklearn.frozen import FrozenEstimator  # noqa: E402
from sklearn.linear_model import LogisticRegression  # noqa: E402
from sklearn.model_selection import GridSearchCV  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402
from sklearn.svm import LinearSVC  # noqa: E402
from sklearn.tree import DecisionTreeClassifier  # noqa: E402

from equipoise import (  # noqa: E402
    FixedWeights,
    LabelCVaR,
    PredictionSets,
    RobustClassifier,
    RobustLogisticRegression,
    RobustnessCV,
    TunedDecisionClassifier,
    WorstClass,
    class_risk_intervals,
    class_risks,
    display,
    population_proba,
    robust_path,
)
from equipoise.analysis import weight_tradeoff  # noqa: E402
from equipoise.display import style  # noqa: E402
from equipoise.display.base import Display  # noqa: E402
from equipoise.exceptions import (  # noqa: E402
    ClassMismatchError,
    InvalidInputError,
    InvalidParameterError,
    MissingExtraError,
)
from equipoise.risks import ClassRisks  # noqa: E402
from equipoise.shift import PriorMonitor, calibrate, estimate_prior  # noqa: E402
from equipoise.theory import ClassExcess, excess_risk  # noqa: E402
from equipoise.weights import ByClass  # noqa: E402

NAMES = np.array(["common", "less common", "rare"])
HOSTILE = [
    "<script>alert(1)</script>",
    "costs $5 or $x_",
    "_hidden",
    'two\nlines, "quoted"',
    "x" * 200,
    "x" * 199 + "y",
    "مرحبا",
    "",
]


def draw(n=600, d=4, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.choice(3, size=n, p=[0.7, 0.2, 0.1])
    return rng.normal(size=(3, d))[y] + 1.5 * rng.normal(size=(n, d)), NAMES[y]


X, Y = draw()
ROWS, LABELS = draw(seed=1)
FITS = {
    "standard": RobustLogisticRegression("standard").fit(X, Y),
    "robust": make_pipeline(StandardScaler(), RobustLogisticRegression(LabelCVaR(0.3))).fit(X, Y),
}
TREE = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, Y)
PLUG_INS = {
    "plug-in": TunedDecisionClassifier(TREE, LabelCVaR(0.3), cv=3).fit(X, Y),
    "at the end of a pipeline": make_pipeline(
        StandardScaler(), TunedDecisionClassifier(TREE, LabelCVaR(0.3), cv=3)
    ).fit(X, Y),
    "plug-in of a robust fit": TunedDecisionClassifier(FITS["standard"], "worst_class", cv=3).fit(
        X, Y
    ),
    "level chosen": TunedDecisionClassifier(TREE, LabelCVaR("auto"), cv=3).fit(X, Y),
    "known weights": TunedDecisionClassifier(TREE, "balanced", cv=3).fit(X, Y),
    "trained and decided": RobustClassifier(TREE, "worst_class", cv=3).fit(X, Y),
    "level of a plug-in": RobustnessCV(TunedDecisionClassifier(TREE), alphas=[1.0, 0.3], cv=3).fit(
        X, Y
    ),
    "found by a search": GridSearchCV(
        TunedDecisionClassifier(TREE, LabelCVaR(0.3), cv=3), {"pooling": [0, 1]}, cv=2
    ).fit(X, Y),
}
PREDICTED = {name: fit.predict(ROWS) for name, fit in FITS.items()}


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def class_risks_display(**options):
    return display.ClassRisksDisplay.from_predictions(LABELS, PREDICTED, **options)


def tradeoff_display(**options):
    return display.TradeoffDisplay.from_predictions(LABELS, PREDICTED, **options)


def path_display(**options):
    path = robust_path(X, Y, values=[1.0, 0.5, 0.2, 0.05])
    return display.RobustPathDisplay.from_path(path, chosen=0.2, **options)


CHOSEN = RobustnessCV(
    RobustLogisticRegression(), rule="price", price=3, alphas=[1.0, 0.5, 0.2, 0.1], cv=3
).fit(X, Y)


def chosen_display(**options):
    return display.PathDisplay.from_estimator(CHOSEN, **options)


SETS = PredictionSets(FrozenEstimator(FITS["robust"])).fit(ROWS[::2], LABELS[::2])


def sets_display(**options):
    path = SETS.coverage_path(ROWS[1::2], LABELS[1::2], [1.0, 0.3, 0.05])
    return display.CoveragePathDisplay.from_path(path, wanted=0.9, **options)


def frontier_display(**options):
    return display.FrontierDisplay.from_predictions(LABELS, PREDICTED, **options)


def worst_case_display(**options):
    return display.WorstCaseWeightsDisplay.from_estimator(FITS["robust"], **options)


def convergence_display(**options):
    return display.ConvergenceDisplay.from_estimator(FITS["robust"], **options)


def reliability_display(**options):
    return display.ReliabilityDisplay.from_estimator(FITS["robust"], ROWS, LABELS, **options)


def decomposition_display(ax=None):
    found = {
        "fitted for balanced": ClassExcess(0.02, -0.01, 0.03),
        "fitted for standard": ClassExcess(0.24, 0.04, 0.2),
    }
    return display.ErrorDecompositionDisplay(decompositions=found).plot(ax)


def _truth(labels, seed):
    """Probabilities of two Gaussian classes at equal frequencies."""
    rng = np.random.default_rng(seed)
    second = 1 / (1 + np.exp(-2 * (2 * labels - 1 + rng.normal(size=len(labels)))))
    return np.column_stack([1 - second, second])


HELD_OUT = np.repeat([0, 1], 500)
KNOWN = calibrate(np.array(["well", "ill"])[HELD_OUT], _truth(HELD_OUT, 0), classes=["well", "ill"])


def frequencies_display(**options):
    estimate = estimate_prior(_truth(np.repeat([0, 1], [30, 120]), 1), calibration=KNOWN)
    return display.ClassFrequenciesDisplay.from_estimate(estimate, **options)


def changing_monitor():
    monitor = PriorMonitor(KNOWN, window=3)
    for batch in range(30):
        labels = np.repeat([0, 1], [50, 50] if batch < 10 else [15, 85])
        monitor.update(_truth(labels, (2, batch)))
    return monitor


MONITOR = changing_monitor()


def monitor_display(**options):
    return display.PriorMonitorDisplay.from_monitor(MONITOR, **options)


def evidence_display(**options):
    return display.PriorMonitorDisplay.from_monitor(MONITOR, shown="evidence", **options)


DISPLAYS = [
    class_risks_display,
    tradeoff_display,
    path_display,
    chosen_display,
    sets_display,
    frontier_display,
    worst_case_display,
    convergence_display,
    reliability_display,
    decomposition_display,
    frequencies_display,
    monitor_display,
    evidence_display,
]
each_display = pytest.mark.parametrize("make", DISPLAYS)


@each_display
def test_a_display_draws_on_the_axes_it_is_given_or_on_its_own(make):
    own = make()
    assert own.figure_ is own.ax_.figure
    figure, axes = plt.subplots(1, 2, figsize=(7, 3), layout="constrained")
    given = make(ax=axes[1])
    assert given.ax_ is axes[1] and given.figure_ is figure and not axes[0].has_data()
    again = given.plot()
    assert again is given and given.ax_ is not axes[1]
    figure.canvas.draw()


@each_display
def test_axes_are_labelled_and_drawing_leaves_global_settings_alone(make):
    before = dict(matplotlib.rcParams)
    made = make()
    made.figure_.canvas.draw()
    assert made.ax_.get_xlabel() and len(made.to_frame()) > 0
    assert dict(matplotlib.rcParams) == before


@each_display
def test_nothing_written_leaves_a_small_figure(make):
    figure, ax = plt.subplots(figsize=(3.5, 3.5), layout="constrained")
    made = make(ax=ax)
    figure.canvas.draw()
    frame = figure.bbox
    texts = [
        *ax.get_xticklabels(),
        *ax.get_yticklabels(),
        ax.xaxis.label,
        ax.yaxis.label,
        *ax.texts,
    ]
    legend = made.ax_.get_legend()
    texts += legend.get_texts() if legend else []
    for text in texts:
        box = text.get_window_extent()
        if text.get_text() and ax.get_xlim()[0] <= text.get_position()[0] <= ax.get_xlim()[1]:
            assert box.x0 >= -1 and box.x1 <= frame.x1 + 1, text.get_text()


@each_display
def test_a_figure_of_its_own_has_a_title_and_axes_given_keep_theirs(make):
    own = make()
    own.figure_.canvas.draw()
    assert len(own.figure_.get_suptitle()) > 15
    box, highest = own.figure_._suptitle.get_window_extent(), own.ax_.get_window_extent().y1
    legend = own.ax_.get_legend()
    highest = max(highest, legend.get_window_extent().y1 if legend else 0)
    assert highest <= box.y0 + 1 and box.x1 <= own.figure_.bbox.x1
    figure, ax = plt.subplots(layout="constrained")
    ax.set_title("mine")
    make(ax=ax)
    assert ax.get_title() == "mine" and figure.get_suptitle() == ""


SHARES = {
    class_risks_display: "x",
    path_display: "xy",
    chosen_display: "y",
    sets_display: "y",
    frontier_display: "xy",
    worst_case_display: "x",
    reliability_display: "xy",
    decomposition_display: "x",
    frequencies_display: "x",
    monitor_display: "y",
}


@pytest.mark.parametrize("make", SHARES)
def test_shares_are_percentages(make):
    ax = make().ax_
    ax.figure.canvas.draw()
    for axis in SHARES[make]:
        places = getattr(ax, f"get_{axis}ticks")()
        texts = [label.get_text() for label in getattr(ax, f"get_{axis}ticklabels")()]
        for place, text in zip(places, texts, strict=True):
            assert (
                text == "" if place > 1 + 1e-9 else float(text[:-1]) == pytest.approx(100 * place)
            )
            assert text == "" or text.endswith("%")


def test_other_losses_are_no_percentages():
    entropy = display.ClassRisksDisplay.from_estimator(FITS, ROWS, LABELS, loss="cross_entropy")
    path = robust_path(X, Y, values=[1.0, 0.2], loss="cross_entropy")
    for made in (entropy, display.RobustPathDisplay.from_path(path)):
        made.figure_.canvas.draw()
        assert not any("%" in text.get_text() for text in made.ax_.get_xticklabels())


LONG = np.array([f"a rather long name of {a} {b}" for a in "abcde" for b in range(6)])


def many_risks(ax=None, n=30):
    y = np.repeat(LONG[:n], 8)
    return display.ClassRisksDisplay.from_predictions(y, np.roll(y, 3), ax=ax)


def many_weights(ax=None, n=30):
    y = np.repeat(LONG[:n], np.arange(n) + 5)
    return display.WorstCaseWeightsDisplay.from_predictions(y, np.roll(y, 9), ax=ax)


def many_weightings(ax=None, n=30):
    worlds = dict.fromkeys(LONG[: n // 3], "standard")
    return display.TradeoffDisplay.from_predictions([0, 1], [0, 0], weightings=worlds, ax=ax)


@pytest.mark.parametrize("n", [3, 10, 30])
@pytest.mark.parametrize("size", [None, (4, 4), (8, 3)])
@pytest.mark.parametrize("make", [many_risks, many_weights, many_weightings])
def test_labels_do_not_collide(make, size, n):
    ax = None if size is None else plt.subplots(figsize=size, layout="constrained")[1]
    made = make(ax=ax, n=n)
    made.figure_.canvas.draw()
    for labels in (made.ax_.get_xticklabels(), made.ax_.get_yticklabels()):
        shown = [label for label in labels if label.get_text()]
        assert len({label.get_text() for label in shown}) == len(shown) > 0
        # Turned labels lie side by side although the boxes around them overlap.
        turned = [label for label in shown if label.get_rotation()]
        boxes = [label.get_window_extent() for label in shown if label not in turned]
        assert not any(a.overlaps(b) for a, b in pairwise(boxes))
        for one, other in pairwise(turned):
            apart = other.get_window_extent().x1 - one.get_window_extent().x1
            assert apart * np.sin(np.radians(one.get_rotation())) >= one.get_size()
    assert made.ax_.bbox.width > 0.3 * made.figure_.bbox.width


def test_class_risks_are_drawn_with_their_intervals():
    made = class_risks_display(confidence=0.9, simultaneous=True)
    frame = made.to_frame()
    assert frame["class"].tolist() == [*NAMES, *NAMES]
    assert frame["rows"].tolist() == 2 * [np.count_nonzero(name == LABELS) for name in NAMES]
    for place, (name, predicted) in enumerate(PREDICTED.items()):
        expected = class_risk_intervals(LABELS, predicted, confidence=0.9, simultaneous=True)
        lines = frame[frame["classifier"] == name]
        for column, values in (
            ("risk", expected.risks),
            ("lower", expected.lower),
            ("upper", expected.upper),
        ):
            np.testing.assert_array_equal(lines[column], np.asarray(values))
        points, _, (bars,) = made.points_[place]
        np.testing.assert_array_equal(points.get_xdata(), lines["risk"])
        ends = np.array(bars.get_segments())[:, :, 0]
        np.testing.assert_allclose(ends, lines[["lower", "upper"]], atol=1e-12)
        np.testing.assert_allclose(np.round(points.get_ydata()), [0, 1, 2])


def test_class_risks_of_estimators_are_those_of_their_predictions():
    made = display.ClassRisksDisplay.from_estimator(FITS, ROWS, LABELS)
    assert made.to_frame().equals(class_risks_display().to_frame())
    single = display.ClassRisksDisplay.from_estimator(FITS["robust"], ROWS, LABELS)
    assert set(single.to_frame()["classifier"]) == {"RobustLogisticRegression"}
    entropy = display.ClassRisksDisplay.from_estimator(FITS, ROWS, LABELS, loss="cross_entropy")
    expected = class_risks(LABELS, FITS["robust"].predict_proba(ROWS), loss="cross_entropy")
    np.testing.assert_allclose(entropy.to_frame()["risk"][3:], list(expected.values()))


def test_an_interval_without_an_end_is_drawn_without_one():
    proba = np.array([[0.5, 0.5], [0.4, 0.6], [0.2, 0.8]])
    made = display.ClassRisksDisplay.from_predictions(
        ["a", "a", "b"], {"one row": proba}, loss="cross_entropy"
    )
    assert np.isinf(made.to_frame()["upper"].iloc[1])
    made.figure_.canvas.draw()


def test_the_matrix_of_weightings_holds_the_robust_risks():
    worlds = {
        "plain": "standard",
        "costs": FixedWeights({"common": 1, "less common": 2, "rare": 5}),
    }
    made = tradeoff_display(weightings=worlds)
    for row, predicted in enumerate(PREDICTED.values()):
        risks = class_risks(LABELS, predicted)
        expected = [risks.standard(), risks.weighted({"common": 1, "less common": 2, "rare": 5})]
        np.testing.assert_allclose(made.risks[row], expected)
    frame = made.to_frame()
    np.testing.assert_array_equal(made.im_.get_array().ravel(), frame["risk"])
    assert [text.get_text() for text in made.text_.ravel()] == [f"{r:.3f}" for r in frame["risk"]]
    assert frame.groupby("evaluated_under")["regret"].min().tolist() == [0.0, 0.0]
    shown = made.plot(value="regret").im_.get_array().ravel()
    np.testing.assert_array_equal(shown, frame["regret"])
    fitted = display.TradeoffDisplay.from_estimator(FITS, ROWS, LABELS, weightings=worlds)
    assert fitted.to_frame().equals(frame)


def test_the_path_marks_the_point_chosen():
    made = path_display()
    frame = made.to_frame()
    np.testing.assert_array_equal(made.line_.get_xdata(), frame["standard_risk"])
    np.testing.assert_array_equal(made.line_.get_ydata(), frame["worst_class_risk"])
    chosen = frame[frame["chosen"]]
    assert chosen["alpha"].tolist() == [0.2]
    assert made.chosen_.get_xdata().tolist() == chosen["standard_risk"].tolist()
    assert made.chosen_.get_ydata().tolist() == chosen["worst_class_risk"].tolist()


@pytest.mark.parametrize("alpha", [1.0, 0.37])
def test_the_path_of_an_estimator_passes_through_its_own_set(alpha):
    model = RobustLogisticRegression(LabelCVaR(alpha), C=0.1)
    made = display.RobustPathDisplay.from_estimator(model, X, Y, values=[1.0, 0.5, 0.2])
    frame = made.to_frame()
    assert frame.loc[frame["chosen"], "alpha"].tolist() == [alpha]
    assert frame["alpha"].is_monotonic_decreasing
    alone = RobustLogisticRegression(LabelCVaR(alpha), C=0.1).fit(X, Y)
    assert frame.loc[frame["chosen"], "objective"].item() == pytest.approx(alone.objective_, 2e-6)
    assert not hasattr(model, "coef_")


def test_the_path_of_a_choice_is_that_of_the_fit():
    shown, path = chosen_display(), CHOSEN.path_
    frame = shown.to_frame()
    np.testing.assert_array_equal(frame["alpha"], [1.0, 0.5, 0.2, 0.1])
    assert frame["chosen"].tolist() == [place == CHOSEN.best_index_ for place in range(4)]
    np.testing.assert_array_equal(frame["risk[rare]_upper"], path["class_risks_upper"][:, 2])
    for place, name in enumerate(("standard_risk", "worst_class_risk")):
        np.testing.assert_allclose(shown.lines_[place].get_ydata(), path[name])
        band = shown.bands_[place].get_paths()[0].vertices
        for end in ("lower", "upper"):
            for alpha, risk in zip(path["alpha"], path[f"{name}_{end}"], strict=True):
                assert np.isclose(band, [alpha, risk]).all(axis=1).any()
    # What the price allows, above which the standard risk of the level chosen is not.
    limit = path["standard_risk"].min() + 0.03
    assert shown.allowed_.get_ydata()[0] == pytest.approx(limit)
    assert path["standard_risk"][CHOSEN.best_index_] <= limit
    assert f"chosen: {CHOSEN.alpha_:.3g}" == shown.chosen_.get_label()
    left, right = shown.ax_.get_xlim()
    assert left > 1.0 and right < 0.1


def test_the_path_of_a_choice_without_a_limit_or_by_a_recall():
    auto = make_pipeline(StandardScaler(), RobustLogisticRegression(LabelCVaR("auto"))).fit(X, Y)
    shown = display.PathDisplay.from_estimator(auto)
    assert shown.allowed_ is None and len(shown.to_frame()) == len(auto[-1].path_["alpha"])
    base = RobustLogisticRegression()
    clf = RobustnessCV(base, rule="recall", recall=0.3, alphas=[1.0, 0.3], cv=3).fit(X, Y)
    assert display.PathDisplay.from_estimator(clf).allowed_.get_ydata()[0] == pytest.approx(0.7)


def test_the_worst_case_is_that_of_the_fit():
    fit = FITS["robust"][-1]
    made = worst_case_display()
    frame = made.to_frame()
    np.testing.assert_allclose(frame["mass"], np.asarray(fit.worst_case_masses_))
    np.testing.assert_allclose(frame["weight"], np.asarray(fit.worst_case_weights_))
    rows, share = made.bars_
    np.testing.assert_allclose([bar.get_width() for bar in rows], frame["prior"])
    np.testing.assert_allclose([bar.get_width() for bar in share], frame["mass"])
    assert [text.get_text() for text in made.ax_.texts] == [
        f"\N{MULTIPLICATION SIGN}{w:.3g}" for w in frame["weight"]
    ]


@pytest.mark.parametrize("who", PLUG_INS)
def test_the_worst_case_of_decisions_is_that_of_their_risks_on_rows_left_out(who):
    fit = PLUG_INS[who]
    shown = display.WorstCaseWeightsDisplay.from_estimator(fit).to_frame().set_index("class")
    fit = fit[-1] if who == "at the end of a pipeline" else fit
    fit = getattr(fit, "best_estimator_", fit)
    goal = LabelCVaR(fit.alpha_) if hasattr(fit, "alpha_") else getattr(fit, "goal", None)
    fit = fit.estimator_ if who == "level of a plug-in" else fit
    # Balanced weights are the same whatever the risks.
    risks = getattr(fit, "class_risks_", [0.0, 0.0, 0.0])
    expected = ClassRisks(ByClass(np.asarray(risks), NAMES), fit.class_prior_)
    np.testing.assert_allclose(shown["mass"], list(expected.worst_case_masses(goal).values()))
    np.testing.assert_allclose(shown["prior"], np.asarray(fit.class_prior_))
    assert shown["mass"].sum() == pytest.approx(1)


@pytest.mark.parametrize("fit", [TREE, *PLUG_INS.values()], ids=["tree", *PLUG_INS])
def test_any_classifier_is_judged_on_rows(fit):
    predicted = fit.predict(ROWS)
    worst = display.WorstCaseWeightsDisplay
    shown = worst.from_estimator(fit, ROWS, LABELS, goal=LabelCVaR(0.4)).to_frame()
    expected = worst.from_predictions(LABELS, predicted, goal=LabelCVaR(0.4)).to_frame()
    assert shown.equals(expected)
    curves = display.ReliabilityDisplay.from_estimator(fit, ROWS, LABELS).curves
    alone = display.ReliabilityDisplay.from_predictions(LABELS, fit.predict_proba(ROWS)).curves
    for name, values in alone["probabilities"].items():
        np.testing.assert_array_equal(curves["as fitted"][name], values)
    risks = display.ClassRisksDisplay.from_estimator(fit, ROWS, LABELS).to_frame()["risk"]
    np.testing.assert_array_equal(risks, list(class_risks(LABELS, predicted).values()))


@pytest.mark.parametrize("who", ["standard", "robust", "trained and decided", "level of a plug-in"])
def test_reliability_on_the_scale_of_a_stated_population(who):
    fit = (FITS | PLUG_INS)[who]
    prior = dict(zip(NAMES.tolist(), [0.5, 0.3, 0.2], strict=True))
    made = display.ReliabilityDisplay.from_estimator(fit, ROWS, LABELS, class_prior=prior)
    rows, last = (fit[:-1].transform(ROWS), fit[-1]) if hasattr(fit, "steps") else (ROWS, fit)
    own = getattr(last, "class_prior_", None) or last.estimator_.class_prior_
    odds = population_proba(last, rows) * [prior[n] / own[n] for n in NAMES.tolist()]
    moved = odds / odds.sum(axis=1, keepdims=True)
    shares = {name: np.mean(name == LABELS) for name in prior}
    weights = [prior[name] / shares[name] for name in LABELS.tolist()]
    expected = display.ReliabilityDisplay.from_predictions(LABELS, moved, sample_weight=weights)
    for name, values in expected.curves["probabilities"].items():
        np.testing.assert_allclose(made.curves["population scale"][name], values, rtol=1e-9)


def test_the_way_to_the_optimum_is_found_inside_of_a_search():
    fit = GridSearchCV(RobustLogisticRegression("standard"), {"C": [0.1, 1.0]}, cv=2).fit(X, Y)
    for outer, inner in ((fit, fit.best_estimator_), (CHOSEN, CHOSEN.estimator_)):
        made = display.ConvergenceDisplay.from_estimator(outer)
        assert made.certified_gap == inner.duality_gap_


def test_the_worst_case_of_predictions_is_that_of_their_risks():
    made = display.WorstCaseWeightsDisplay.from_predictions(
        LABELS, PREDICTED["standard"], goal=WorstClass()
    )
    risks = class_risks(LABELS, PREDICTED["standard"])
    worst = made.to_frame().set_index("class")["mass"]
    assert worst[risks.worst_class()] == 1.0 and worst.sum() == 1.0


@pytest.mark.parametrize("along", ["evaluations", "seconds", "iteration"])
def test_the_gaps_on_the_way_are_estimates_and_the_last_one_is_certified(along):
    fit = FITS["robust"][-1]
    made = display.ConvergenceDisplay.from_estimator(fit, along=along)
    frame = made.to_frame()
    assert frame["certified"].tolist() == [False] * (len(frame) - 1) + [True]
    assert frame["gap"].iloc[-1] == fit.duality_gap_
    drawn = np.asarray(made.line_.get_ydata())
    kept = np.isfinite(drawn)
    np.testing.assert_array_equal(drawn[kept], frame["gap"][:-1][kept])
    np.testing.assert_array_equal(made.line_.get_xdata(), frame[along][:-1])
    assert made.certificate_.get_ydata()[0] == pytest.approx(fit.duality_gap_, abs=1e-15)
    assert made.ax_.get_yscale() == "log"


def test_without_a_penalty_nothing_is_certified():
    fit = RobustLogisticRegression(WorstClass(), C=np.inf).fit(X, Y)
    made = display.ConvergenceDisplay.from_estimator(fit)
    assert made.certificate_ is None and not made.to_frame()["certified"].any()
    assert "no bound" in made.ax_.get_title(loc="right")
    made.figure_.canvas.draw()


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
def test_reliability_agrees_with_scikit_learn(strategy):
    proba = LogisticRegression().fit(X, Y).predict_proba(ROWS)
    made = display.ReliabilityDisplay.from_predictions(
        LABELS, proba, pos_label="less common", n_bins=6, strategy=strategy
    )
    observed, predicted = calibration_curve(
        LABELS == "less common", proba[:, 1], n_bins=6, strategy=strategy
    )
    frame = made.to_frame()
    np.testing.assert_allclose(frame["observed"], observed)
    np.testing.assert_allclose(frame["predicted"], predicted)
    assert frame["rows"].sum() == len(LABELS)
    assert np.all(frame["lower"] <= frame["observed"]) and np.all(
        frame["observed"] <= frame["upper"]
    )
    points, _, (bars,) = made.points_[0]
    np.testing.assert_array_equal(points.get_ydata(), frame["observed"])
    ends = np.array(bars.get_segments())[:, :, 1]
    np.testing.assert_allclose(ends, frame[["lower", "upper"]], atol=1e-12)


def test_a_curve_of_rows_that_all_are_of_the_class_lies_on_top():
    y, proba = ["yes"] * 4 + ["no"], [0.6, 0.7, 0.9, 0.9, 0.8]
    weights = [1, 1, 1, 1, 0]
    curve = display.ReliabilityDisplay.from_predictions(y, proba, n_bins=2, sample_weight=weights)
    assert curve.to_dict()["observed"].tolist() == [1.0]


def test_probabilities_are_judged_before_and_after_they_are_put_back():
    model = make_pipeline(StandardScaler(), RobustLogisticRegression("balanced")).fit(X, Y)
    frame = display.ReliabilityDisplay.from_estimator(model, ROWS, LABELS).to_frame()
    off = (frame["predicted"] - frame["observed"]) * frame["rows"] / len(LABELS)
    bias = off.groupby(frame["curve"]).sum().abs()
    # Balanced weights make the rare class look common; the population's scale undoes it.
    assert bias["population scale"] < 0.3 * bias["as fitted"]
    made = display.ReliabilityDisplay.from_estimator(model, ROWS, LABELS)
    assert made.pos_label == "rare"


def test_a_single_column_is_about_the_last_class():
    column = np.linspace(0, 1, 40)
    made = display.ReliabilityDisplay.from_predictions(np.arange(40) >= 20, column)
    assert made.pos_label == np.True_ and made.to_frame()["rows"].sum() == 40


def test_the_parts_of_the_excess_risk_add_up():
    made = decomposition_display()
    frame = made.to_frame()
    assert frame["excess"].tolist() == pytest.approx([0.02, 0.24])
    widths = [[bar.get_width() for bar in bars] for bars in made.bars_]
    np.testing.assert_allclose(widths, frame[["irreducible", "estimation"]].T)
    np.testing.assert_array_equal(made.total_.get_xdata(), frame["excess"])


def test_two_weightings_are_judged_under_each_other_with_intervals():
    eta = np.linspace(0, 1, 200)
    guess = np.clip(eta + 0.1 * np.sin(20 * eta), 0, 1)
    made = display.ErrorDecompositionDisplay.from_predictions(
        eta, guess, n_resamples=50, random_state=0
    )
    frame = made.to_frame().set_index("name")
    assert len(frame) == 4
    alone = frame.loc["fitted for balanced, evaluated under balanced"]
    assert alone["irreducible"] == 0 and alone["estimation"] > 0
    found = excess_risk(eta, guess, "standard", "balanced", n_resamples=50)
    crossed = frame.loc["fitted for standard, evaluated under balanced"]
    assert crossed["excess"] == pytest.approx(found.excess)
    assert np.all(frame["excess_lower"] <= frame["excess"] + 1e-12)
    np.testing.assert_allclose(frame["excess"], frame["irreducible"] + frame["estimation"])
    widths = [bar.get_width() for bar in made.bars_[0]]
    np.testing.assert_array_equal(widths, frame["irreducible"])
    made.figure_.canvas.draw()


def test_the_tradeoff_of_the_analysis_is_drawn_as_it_is():
    proba = FITS["standard"].predict_proba(ROWS)
    found = weight_tradeoff(LABELS, proba, ["standard", "balanced"])
    made = display.TradeoffDisplay.from_tradeoff(found)
    np.testing.assert_array_equal(made.im_.get_array(), found.risks)
    frame = made.to_frame()
    np.testing.assert_array_equal(frame["regret"], found.regret.ravel())
    assert frame["fitted_for"].tolist() == ["standard", "standard", "balanced", "balanced"]


def test_the_frontier_joins_what_nothing_beats():
    y = np.repeat([0, 1], [80, 20])
    rng = np.random.default_rng(0)
    made = {
        f"{p}, {q}": np.where(rng.random(100) < np.where(y == 1, p, q), 1, 0)
        for p, q in ((0.2, 0.02), (0.6, 0.1), (0.9, 0.3), (0.5, 0.3))
    }
    frame = display.FrontierDisplay.from_predictions(y, made).to_frame()
    for _, own in frame.iterrows():
        wrong = made[own["candidate"]] != y
        assert own["overall"] == pytest.approx(wrong.mean())
        assert own["worst"] == pytest.approx(max(wrong[y == 0].mean(), wrong[y == 1].mean()))
        beaten = (frame["overall"] <= own["overall"]) & (frame["worst"] <= own["worst"])
        assert own["frontier"] == (beaten.sum() == 1)
        assert own["overall_lower"] <= own["overall"] <= own["overall_upper"]


def test_the_advised_candidate_is_named_where_others_beat_it():
    ends = {f"{name}_{end}": 0.5 for name in ("overall", "worst") for end in ("lower", "upper")}
    every = {"good": {"overall": 0.1, "worst": 0.2}, "mine": {"overall": 0.2, "worst": 0.3}}
    candidates = {name: each | ends for name, each in every.items()}
    drawn = display.FrontierDisplay(candidates=candidates, advised="mine").plot()
    assert [each.get_label() for each in drawn.points_] == ["good", "mine (advised)"]


def test_the_scale_of_a_tradeoff_separates_near_values():
    made = display.TradeoffDisplay(
        risks=[[0.41, 0.43], [0.42, 0.44]], fitted_for=["a", "b"], evaluated_under=["c", "d"]
    ).plot()
    assert made.im_.get_clim() == (0.41, 0.44)
    colors = made.im_.cmap(made.im_.norm(made.im_.get_array())).reshape(-1, 4)
    assert len(np.unique(colors, axis=0)) == 4


def test_names_are_text_whatever_they_hold():
    y = np.repeat(HOSTILE, 4)
    # The fonts of Matplotlib have these scripts; nothing else is asked of them.
    predicted = {name: np.roll(y, place) for place, name in enumerate(HOSTILE[:6])}
    made = display.ClassRisksDisplay.from_predictions(y, predicted)
    made.figure_.canvas.draw()
    assert set(made.to_frame()["class"]) == set(HOSTILE)
    ticks = [label.get_text() for label in made.ax_.get_yticklabels()]
    assert len(set(ticks)) == len(HOSTILE) and max(map(len, ticks)) < 70
    assert len(made.ax_.get_legend().get_texts()) == 6
    shown = display.TradeoffDisplay.from_predictions(y, predicted)
    shown.figure_.canvas.draw()
    display.WorstCaseWeightsDisplay.from_predictions(y, predicted[HOSTILE[5]]).figure_.canvas.draw()


@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_that_fits_is_kept_and_a_long_one_keeps_its_ends(name):
    text = style.shown(name, width=12, lines=2)
    assert all(len(line) <= 13 for line in text.replace(r"\$", "$").split("\n"))
    flat = " ".join(name.split())
    plain = text.replace(r"\$", "$").replace("\u200b", "")
    if len(flat) <= 12:
        assert plain == (flat or "(no name)")
    elif "…" in plain:
        head, tail = plain.replace("\n", "").split("…")
        assert flat.replace(" ", "").startswith(head.replace(" ", "")) and flat.endswith(tail)


BAD = {
    "no classifier": (lambda: display.ClassRisksDisplay.from_predictions(LABELS, {}), "at least"),
    "other classes": (
        lambda: display.ClassRisksDisplay(
            intervals={
                "a": class_risk_intervals([0, 1], [0, 1]),
                "b": class_risk_intervals([0, 2], [0, 2]),
            },
            rows=np.array([1, 1]),
        ),
        "same classes",
    ),
    "no scores": (
        lambda: display.ClassRisksDisplay.from_estimator(
            SimpleNamespace(predict=None), ROWS, LABELS, loss="cross_entropy"
        ),
        "predict_proba",
    ),
    "shape of a matrix": (
        lambda: display.TradeoffDisplay(
            risks=[[1.0]], fitted_for=["a"], evaluated_under=["a", "b"]
        ),
        r"got shape \(1, 1\)",
    ),
    "unknown value": (lambda: tradeoff_display().plot(value="cost"), "'risk', 'regret'"),
    "not on the path": (
        lambda: display.RobustPathDisplay.from_path(robust_path(X, Y, values=[0.5]), chosen=0.1),
        "chosen must be one of",
    ),
    "path of a pipeline": (
        lambda: display.RobustPathDisplay.from_estimator(FITS["robust"], X, Y),
        "transform the rows first",
    ),
    "path of a forest": (
        lambda: display.RobustPathDisplay.from_estimator(TREE, X, Y),
        "robust path of DecisionTreeClassifier cannot be shown",
    ),
    "path of a tree": (
        lambda: display.CoveragePathDisplay.from_estimator(TREE, ROWS, LABELS),
        "must be fitted PredictionSets, got DecisionTreeClassifier",
    ),
    "no path": (
        lambda: display.PathDisplay.from_estimator(FITS["robust"]),
        "of RobustLogisticRegression cannot be shown: it has no path_, as a fitted RobustnessCV",
    ),
    "not robust": (
        lambda: display.WorstCaseWeightsDisplay.from_estimator(TREE),
        "of DecisionTreeClassifier cannot be shown: it has no worst_case_masses_, .* X and y show",
    ),
    "no set": (
        lambda: display.WorstCaseWeightsDisplay.from_estimator(
            TunedDecisionClassifier(TREE, "f1_macro", cv=3).fit(X, Y)
        ),
        "its goal, MetricGoal.*, is not a set of weightings. Give X, y",
    ),
    "a set without rows": (
        lambda: display.WorstCaseWeightsDisplay.from_estimator(FITS["robust"], goal=WorstClass()),
        "needs X and y",
    ),
    "no optimum": (
        lambda: display.ConvergenceDisplay.from_estimator(PLUG_INS["plug-in of a robust fit"]),
        "of TunedDecisionClassifier cannot be shown: it has no history_, .* as its estimator_ has",
    ),
    "not fitted": (
        lambda: display.ConvergenceDisplay.from_estimator(RobustLogisticRegression()),
        "history_",
    ),
    "unknown axis": (lambda: convergence_display(along="hours"), "along must be one of"),
    "unknown class": (lambda: reliability_display(pos_label="absent"), "pos_label must be one of"),
    "no probabilities": (
        lambda: display.ReliabilityDisplay.from_estimator(LinearSVC().fit(X, Y), X, Y),
        "reliability of LinearSVC cannot be shown: it has no predict_proba",
    ),
    "not probabilities": (
        lambda: display.ReliabilityDisplay.from_predictions([0, 1], [0.5, 1.5]),
        "at least 0, got .*1.5",
    ),
    "columns": (
        lambda: display.ReliabilityDisplay.from_predictions([0, 1], [[0.2, 0.3, 0.5]] * 2),
        "one column for each of the 2",
    ),
    "lengths": (
        lambda: display.ReliabilityDisplay.from_predictions([0, 1], [0.5]),
        "one entry for each of the 2",
    ),
    "no bins": (lambda: reliability_display(n_bins=0), "n_bins must be"),
    "bins by what": (lambda: reliability_display(strategy="log"), "strategy must be"),
    "no parts": (lambda: display.ErrorDecompositionDisplay(decompositions={}), "at least one"),
    "shape of regrets": (
        lambda: display.TradeoffDisplay(
            risks=[[1.0]], fitted_for=["a"], evaluated_under=["a"], regrets=[1.0]
        ),
        "regrets must have a row for each of 1 classifiers",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_gets_a_sentence(case):
    make, match = BAD[case]
    with pytest.raises((InvalidInputError, InvalidParameterError, ClassMismatchError), match=match):
        make()


def test_the_listing_is_complete_and_importing_it_loads_no_matplotlib():
    assert display.__all__ == sorted(each.__name__ for each in Display.__subclasses__())
    with pytest.raises(AttributeError, match="nonsense"):
        display.nonsense  # noqa: B018
    code = "import sys\nfrom equipoise.display import *\nprint('matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_without_matplotlib_the_error_holds_the_command_that_installs_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'equipoise\[plot\]'"):
        class_risks_display()


def test_a_title_breaks_no_name():
    who, what = "RobustLogisticRegression", "compensated_hypothyroidism_of_adults"
    risks = display.ClassRisksDisplay.from_predictions([0, 0, 1], {who: [0, 0, 1]})
    assert who in risks.figure_.get_suptitle()
    curve = display.ReliabilityDisplay.from_predictions(
        ["a", "a", what], [0.1, 0.2, 0.9], pos_label=what
    )
    assert what in curve.figure_.get_suptitle()


def test_the_style_for_figures_of_ones_own_has_the_colours_of_the_displays():
    with plt.style.context("equipoise.display.quiet"):
        cycle = plt.rcParams["axes.prop_cycle"].by_key()
        assert tuple(f"#{color.lstrip('#')}" for color in cycle["color"]) == style.COLORS
        assert f"#{plt.rcParams['grid.color'].lstrip('#')}" == style.GRID
        assert not plt.rcParams["axes.spines.top"]


def test_frequencies_are_those_of_the_estimate():
    made = frequencies_display()
    frame, estimate = made.to_frame(), made.estimate
    np.testing.assert_array_equal(frame["frequency"], np.asarray(estimate.mean))
    np.testing.assert_allclose(made.points_[0].get_xdata(), frame["frequency"])
    np.testing.assert_allclose(made.held_out_.get_xdata(), [0.5, 0.5])
    assert (frame["lower"] <= [0.2, 0.8]).all() and (frame["upper"] >= [0.2, 0.8]).all()


def test_a_monitor_is_drawn_with_its_alarm():
    made = monitor_display()
    assert MONITOR.alarm and made.alarm_.get_xdata()[0] == MONITOR.alarm_at
    np.testing.assert_array_equal(made.lines_[0].get_xdata(), made.to_frame()["rows"])
    np.testing.assert_array_equal(made.lines_[1].get_ydata(), made.to_frame()["frequency[ill]"])
    evidence, limit = evidence_display().lines_
    above = evidence.get_ydata() >= limit.get_ydata()[0]
    assert made.to_frame()["rows"][np.argmax(above)] == MONITOR.alarm_at


def test_a_monitor_of_many_classes_draws_those_that_changed_most():
    k = 10
    labels = np.repeat(np.arange(k), 30)
    known = calibrate(labels, np.eye(k)[labels] * 0.9 + 0.01)
    new = np.eye(k)[np.repeat([3, 7], 50)] * 0.9 + 0.01
    made = display.PriorMonitorDisplay.from_monitor(PriorMonitor(known).update(new))
    assert {"3", "7"} <= {line.get_label() for line in made.lines_} and len(made.lines_) == 6


def test_a_monitor_without_a_batch_is_refused():
    with pytest.raises(InvalidInputError, match="must have seen a batch"):
        display.PriorMonitorDisplay.from_monitor(PriorMonitor(KNOWN))
    with pytest.raises(InvalidParameterError, match="shown must be"):
        display.PriorMonitorDisplay.from_monitor(MONITOR, shown="x")
