"""The ways in which studies fit the same model, how each fit is recorded, and units of such fits.

``exact``
    :class:`~equipoise.RobustLogisticRegression` to its certificate.
``text``
    Gradient descent as the paper's text says: rates from 0.01 down to 0.0001 over 2,000 epochs,
    the worst case in closed form. The text says nothing about the start; it is that of the
    scripts.
``scripts``
    Gradient descent as the authors' published scripts do: the level of the dual trained beside
    the model, and schedules of their own.
"""

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from equipoise.arrays import Matrix
from equipoise.estimators import RobustLogisticRegression
from equipoise.exceptions import FewRowsWarning, InactiveCapsWarning
from equipoise.paper.methods import Method
from equipoise.paper.records import Record
from equipoise.paper.splits import Sources, Split, synthetic_split
from equipoise.paper.study import StudyPlan, Unit
from equipoise.paper.training import TRAININGS, BlockedRows, predict
from equipoise.risks import ClassRisks, class_risks

# Penalties so weak that they move no risk in its fourth digit (synthetic), or none by more than
# about 0.0002 (Covertype, the paper's split); and there is still a certificate.
SYNTHETIC_C = 1e4
COVERTYPE_C = 100.0
# The scripts draw ten dimensions, of which the first alone matters.
_SCRIPT_NOISE = 9

# A cap within this of one is none.
_WHOLE = 1e-12
_MAX_ITER = 5000

Made = TypeVar("Made")


def exact_fit(method: Method, X: Matrix, y: NDArray[Any], *, C: float) -> RobustLogisticRegression:
    """The optimum, with its certificate."""
    with warnings.catch_warnings():
        # Studies say themselves where caps bind, and repeat what rests on few rows over seeds.
        warnings.simplefilter("ignore", InactiveCapsWarning)
        warnings.simplefilter("ignore", FewRowsWarning)
        fit = RobustLogisticRegression(method.uncertainty(), C=C, max_iter=_MAX_ITER)
        return fit.fit(X, y)


def exact_records(methods: Sequence[Method], split: Split, *, C: float) -> list[Record]:
    """One record per method: the exact fit, its certificate and its test risks."""
    fits = _per_set(methods, split.y, lambda method: exact_fit(method, split.X, split.y, C=C))
    return [
        {
            "method": method.label,
            "way": "exact",
            "C": C,
            "caps": caps_state(fit, method),
            "train_risk": fit.robust_risk_,
            "objective": fit.objective_,
            "gap": fit.duality_gap_,
            **risk_fields(class_risks(split.y_test, fit.predict(split.X_test))),
        }
        for method, fit in fits
    ]


def trained_records(
    methods: Sequence[Method],
    split: Split,
    *,
    training: str,
    epochs: int,
    seeds: list[int],
    C: float,
) -> list[Record]:
    """One record per method and seed: where training ends, and the optimum it should reach.

    The optimum is the training risk of the exact fit with penalty ``C``. It lies above that of the
    problem without a penalty, which training pursues: the distance shown is at least so large.
    """
    rows = BlockedRows(split.X.astype(np.float32), split.y)
    recipe = TRAININGS[training]

    def run(method: Method) -> NDArray[Any]:
        return recipe.train(method, rows, epochs, seeds)

    def optimum(method: Method) -> float:
        return exact_fit(method, split.X, split.y, C=C).robust_risk_

    # With a trained level the steps depend on how far the caps lie above one.
    runs = zip(methods, map(run, methods), strict=True)
    ends = runs if recipe.trained_level else _per_set(methods, split.y, run)
    optima = _per_set(methods, split.y, optimum)
    return [
        {"method": method.label, "way": recipe.way, "seed": seed, "optimum": lowest, **risks}
        for (method, W), (_, lowest) in zip(ends, optima, strict=True)
        for seed, risks in zip(seeds, _end_risks(method, W, rows, split), strict=True)
    ]


def _end_risks(
    method: Method, W: NDArray[Any], rows: BlockedRows, split: Split
) -> Iterator[Record]:
    """Training risk and test risks of every start."""
    masses = method.uncertainty().resolve(rows.prior)
    at_end, _ = rows.risks(W)
    for weights, risks in zip(W, at_end.astype(np.float64), strict=True):
        predicted = predict(weights, split.X_test, rows.classes)
        fields = risk_fields(class_risks(split.y_test, predicted))
        yield {"train_risk": float(masses.support(risks)), **fields}


def caps_state(fit: RobustLogisticRegression, method: Method) -> str:
    """What the caps of the set do at the optimum.

    ``none``: the set is the whole simplex; ``idle``: there are caps, but the optimum reaches none
    of them, so that it is the optimum of the worst-class problem as well; ``active``: it does
    reach one. Empty for the standard and the balanced risk.
    """
    if method.is_fixed:
        return ""
    if np.all(method.caps(fit.class_prior_) >= 1 - _WHOLE):
        return "none"
    return "active" if fit.caps_active_ else "idle"


def risk_fields(risks: ClassRisks) -> Record:
    """Class risks and their summaries, as fields of a record."""
    return {
        "standard_risk": risks.standard(),
        "worst_class_risk": risks.worst(),
        "worst_class": risks.worst_class(),
        **{f"risk[{name}]": risk for name, risk in risks.items()},
    }


def _per_set(
    methods: Sequence[Method], y: NDArray[Any], run: Callable[[Method], Made]
) -> Iterator[tuple[Method, Made]]:
    """Each method with what ``run`` makes of it, made once for methods with the same set."""
    prior = np.unique(y, return_counts=True)[1] / len(y)
    made: dict[tuple[float, ...], Made] = {}
    for method in methods:
        masses = method.uncertainty().resolve(prior)
        # The largest mass of every class tells points and capped simplices apart.
        key = tuple(round(float(masses.support(row)), 12) for row in np.eye(len(prior)))
        if key not in made:
            made[key] = run(method)
        yield method, made[key]


@dataclass(frozen=True)
class SyntheticSize:
    """How much a study on the synthetic model computes."""

    p_values: tuple[float, ...]
    n_rows: int
    n_seeds: int
    text_epochs: int
    script_rows: int
    script_epochs: int

    @classmethod
    def of(cls, plan: StudyPlan) -> Self:
        """The size of a run."""
        if plan.quick:
            return cls((0.80, 0.90, 0.98), 20_000, 2, 150, 2_000, 100)
        p_values = (0.80, 0.82, 0.84, 0.86, 0.88, 0.90, 0.92, 0.94, 0.96, 0.98)
        return cls(p_values, 100_000, 5, 2000, 10_000, 600)


@dataclass(frozen=True)
class CovertypeSize:
    """How much a study on Covertype computes."""

    penalties: tuple[float, ...]
    n_starts: int
    epochs: int
    n_splits: int
    n_random: int
    test_step: int

    @classmethod
    def of(cls, plan: StudyPlan) -> Self:
        """The size of a run; 11,620 rows are 2% of all."""
        if plan.quick:
            return cls((1.0, 100.0), 2, 50, 1, 3_000, 20)
        return cls((0.1, 1.0, 10.0, 100.0, 1000.0), 5, 2000, 10, 11_620, 1)

    @property
    def kept_rows(self) -> str:
        """Which test rows are kept, for the text of a page; empty if all are."""
        return f" (here every {self.test_step}th of them)" if self.test_step > 1 else ""


def synthetic_units(
    kind: str, plan: StudyPlan, methods: Sequence[Method], training: str | None = None
) -> list[Unit]:
    """Fits of every p, all seeds together: exact ones, or those of a training."""
    size = SyntheticSize.of(plan)
    scripts = training == "synthetic-scripts"
    epochs = size.script_epochs if scripts else size.text_epochs
    settings = {
        "n_train": size.script_rows if scripts else size.n_rows,
        "n_test": size.n_rows,
        "noise": _SCRIPT_NOISE if scripts else 0,
        "seeds": plan.seeds(size.n_seeds),
        **_settings(methods, training, epochs),
    }
    return [Unit(kind, synthetic_fits, {"p": p, **settings}) for p in size.p_values]


def paper_units(
    kind: str,
    plan: StudyPlan,
    methods: Sequence[Method],
    training: str | None = None,
    *,
    C: float = COVERTYPE_C,
) -> list[Unit]:
    """Fits on the paper's split of Covertype: exact ones, or those of a training."""
    size = CovertypeSize.of(plan)
    settings = {"C": C, "test_step": size.test_step, **_settings(methods, training, size.epochs)}
    if training is not None:
        settings["seeds"] = plan.seeds(size.n_starts)
    return [Unit(kind, paper_fits, settings, needs="covertype")]


def random_units(
    kind: str, plan: StudyPlan, methods: Sequence[Method], training: str | None = None
) -> list[Unit]:
    """Fits on random splits of Covertype, a unit per split."""
    size = CovertypeSize.of(plan)
    settings = {"n_train": size.n_random, "test_step": size.test_step}
    settings |= _settings(methods, training, size.epochs)
    return [
        Unit(kind, random_fits, {"seed": seed, **settings}, needs="covertype")
        for seed in plan.seeds(size.n_splits)
    ]


def _settings(methods: Sequence[Method], training: str | None, epochs: int) -> dict[str, Any]:
    """How to fit, as settings of a unit: exactly, or by a training."""
    specs = {"methods": [method.spec() for method in methods]}
    return specs if training is None else {**specs, "training": training, "epochs": epochs}


def synthetic_fits(
    *, p: float, n_train: int, n_test: int, noise: int, seeds: list[int], **how: Any
) -> list[Record]:
    """Fits at one p; a seed decides the rows and the start."""
    return [
        {"p": p, "seed": seed, **record}
        for seed in seeds
        for record in _records(
            synthetic_split(p, n_train, n_test, seed, noise), seeds=[seed], C=SYNTHETIC_C, **how
        )
    ]


def paper_fits(sources: Sources, *, test_step: int, **how: Any) -> list[Record]:
    """Fits on the paper's split; a seed decides the start."""
    return _records(sources.paper_split(test_step), **how)


def random_fits(
    sources: Sources, *, n_train: int, seed: int, test_step: int, **how: Any
) -> list[Record]:
    """Fits on random training rows; the seed decides rows and start."""
    split = sources.random_split(n_train, seed, test_step)
    records = _records(split, seeds=[seed], C=COVERTYPE_C, **how)
    return [{"seed": seed, **record} for record in records]


def _records(
    split: Split,
    *,
    methods: list[dict[str, Any]],
    C: float,
    seeds: Sequence[int] = (),
    training: str | None = None,
    epochs: int = 0,
) -> list[Record]:
    """Records of exact fits, or of a training from every seed."""
    chosen = [Method(**spec) for spec in methods]
    if training is None:
        return exact_records(chosen, split, C=C)
    return trained_records(chosen, split, training=training, epochs=epochs, seeds=list(seeds), C=C)
