"""The synthetic model, sampled and fitted: what the studies on it share."""

from dataclasses import dataclass
from typing import Any

from equipoise.datasets import make_power_imbalance
from equipoise.paper.fits import exact_records, trained_records
from equipoise.paper.methods import Method, specs
from equipoise.paper.sources import Split
from equipoise.paper.study import Plan, Record, Unit

# So weak a penalty moves no risk in its fourth digit, and there is still a certificate.
WEAK_C = 1e4
# The scripts draw ten dimensions, of which the first alone matters.
_SCRIPT_NOISE = 9


@dataclass(frozen=True)
class Scale:
    """How much a study on the synthetic model computes."""

    p_values: tuple[float, ...]
    n_rows: int
    n_seeds: int
    text_epochs: int
    script_rows: int
    script_epochs: int


FULL = Scale(
    (0.80, 0.82, 0.84, 0.86, 0.88, 0.90, 0.92, 0.94, 0.96, 0.98), 100_000, 5, 2000, 10_000, 600
)
QUICK = Scale((0.80, 0.90, 0.98), 20_000, 2, 150, 2_000, 100)


def scale_of(plan: Plan) -> Scale:
    """The size of a run."""
    return QUICK if plan.quick else FULL


def exact_units(kind: str, plan: Plan, methods: list[Method]) -> list[Unit]:
    """The exact fits of every p, all seeds together."""
    scale = scale_of(plan)
    shared = {"n_rows": scale.n_rows, "seeds": plan.seeds(scale.n_seeds), "methods": specs(methods)}
    return [Unit(kind, synthetic_exact, {"p": p, **shared}) for p in scale.p_values]


def trained_units(kind: str, plan: Plan, methods: list[Method], training: str) -> list[Unit]:
    """The trained fits of every p, all seeds together."""
    scale = scale_of(plan)
    scripts = training == "synthetic-scripts"
    shared = {
        "n_rows": scale.script_rows if scripts else scale.n_rows,
        "n_test": scale.n_rows,
        "noise": _SCRIPT_NOISE if scripts else 0,
        "epochs": scale.script_epochs if scripts else scale.text_epochs,
        "seeds": plan.seeds(scale.n_seeds),
        "methods": specs(methods),
        "training": training,
    }
    return [Unit(kind, synthetic_trained, {"p": p, **shared}) for p in scale.p_values]


def synthetic_split(p: float, n_train: int, n_test: int, seed: int, noise: int = 0) -> Split:
    """Training and test rows; the same seed draws the same points for every p."""
    options: dict[str, Any] = {"p": p, "n_noise_features": noise}
    X, y = make_power_imbalance(n_train, random_state=2 * seed, **options)
    X_test, y_test = make_power_imbalance(n_test, random_state=2 * seed + 1, **options)
    return Split(X, y, X_test, y_test)


def synthetic_exact(
    *, p: float, n_rows: int, seeds: list[int], methods: list[dict[str, Any]]
) -> list[Record]:
    """Exact fits at one p."""
    chosen = [Method(**spec) for spec in methods]
    return [
        {"p": p, "seed": seed, **record}
        for seed in seeds
        for record in exact_records(chosen, synthetic_split(p, n_rows, n_rows, seed), C=WEAK_C)
    ]


def synthetic_trained(  # noqa: PLR0913  the settings of a unit
    *,
    p: float,
    n_rows: int,
    n_test: int,
    noise: int,
    epochs: int,
    seeds: list[int],
    methods: list[dict[str, Any]],
    training: str,
) -> list[Record]:
    """Trained fits at one p; a seed decides the rows and the start."""
    chosen = [Method(**spec) for spec in methods]
    options: dict[str, Any] = {"training": training, "epochs": epochs, "C": WEAK_C}
    return [
        {"p": p, **record}
        for seed in seeds
        for record in trained_records(
            chosen, synthetic_split(p, n_rows, n_test, seed, noise), seeds=[seed], **options
        )
    ]
