"""Covertype, split and fitted: what the studies on it share."""

from dataclasses import dataclass
from typing import Any

from equipoise.paper.fits import exact_records, trained_records
from equipoise.paper.methods import Method, specs
from equipoise.paper.sources import Sources
from equipoise.paper.study import Plan, Record, Unit

# So weak a penalty moves no risk by more than about 0.0002 on the paper's split.
WEAK_C = 100.0


@dataclass(frozen=True)
class Scale:
    """How much a study on Covertype computes."""

    penalties: tuple[float, ...]
    n_starts: int
    epochs: int
    n_splits: int
    n_random: int
    test_step: int


# 11,620 rows are 2% of all.
FULL = Scale((0.1, 1.0, 10.0, 100.0, 1000.0), 5, 2000, 10, 11_620, 1)
QUICK = Scale((1.0, 100.0), 2, 50, 1, 3_000, 20)


def scale_of(plan: Plan) -> Scale:
    """The size of a run."""
    return QUICK if plan.quick else FULL


def paper_exact_units(kind: str, plan: Plan, methods: list[Method], C: float) -> list[Unit]:
    """Exact fits on the paper's split."""
    settings = {"C": C, "methods": specs(methods), "test_step": scale_of(plan).test_step}
    return [Unit(kind, paper_exact, settings, needs_covertype=True)]


def paper_trained_units(kind: str, plan: Plan, methods: list[Method], training: str) -> list[Unit]:
    """Trained fits on the paper's split, all starts together."""
    scale = scale_of(plan)
    settings = {
        "methods": specs(methods),
        "training": training,
        "epochs": scale.epochs,
        "seeds": plan.seeds(scale.n_starts),
        "test_step": scale.test_step,
    }
    return [Unit(kind, paper_trained, settings, needs_covertype=True)]


def random_units(
    kind: str, plan: Plan, methods: list[Method], training: str | None = None
) -> list[Unit]:
    """Fits on random splits, exact or trained, a unit per split."""
    scale = scale_of(plan)
    shared: dict[str, Any] = {
        "n_train": scale.n_random,
        "methods": specs(methods),
        "test_step": scale.test_step,
    }
    if training is not None:
        shared |= {"epochs": scale.epochs, "training": training}
    compute = random_exact if training is None else random_trained
    return [
        Unit(kind, compute, {"seed": seed, **shared}, needs_covertype=True)
        for seed in plan.seeds(scale.n_splits)
    ]


def paper_exact(
    sources: Sources, *, C: float, methods: list[dict[str, Any]], test_step: int
) -> list[Record]:
    """Exact fits on the paper's split."""
    split = sources.paper_split(test_step)
    return exact_records([Method(**spec) for spec in methods], split, C=C)


def paper_trained(
    sources: Sources,
    *,
    methods: list[dict[str, Any]],
    training: str,
    epochs: int,
    seeds: list[int],
    test_step: int,
) -> list[Record]:
    """Trained fits on the paper's split; a seed decides the start."""
    chosen = [Method(**spec) for spec in methods]
    options: dict[str, Any] = {"training": training, "epochs": epochs, "C": WEAK_C}
    return trained_records(chosen, sources.paper_split(test_step), seeds=seeds, **options)


def random_exact(
    sources: Sources, *, seed: int, n_train: int, methods: list[dict[str, Any]], test_step: int
) -> list[Record]:
    """Exact fits on random training rows."""
    split = sources.random_split(n_train, seed, test_step)
    records = exact_records([Method(**spec) for spec in methods], split, C=WEAK_C)
    return [{"seed": seed, **record} for record in records]


def random_trained(
    sources: Sources,
    *,
    seed: int,
    n_train: int,
    methods: list[dict[str, Any]],
    training: str,
    epochs: int,
    test_step: int,
) -> list[Record]:
    """Trained fits on random training rows; the seed decides rows and start."""
    split = sources.random_split(n_train, seed, test_step)
    chosen = [Method(**spec) for spec in methods]
    options: dict[str, Any] = {"training": training, "epochs": epochs, "C": WEAK_C}
    return trained_records(chosen, split, seeds=[seed], **options)
