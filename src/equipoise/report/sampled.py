"""Candidates for out-of-core data: fitted to a sample, and counted on all rows outside of it.

Rows of a class that all candidates predict alike are alike. They are counted as one row that stands
for many, so that what a page is made from does not grow with the table.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.frozen import FrozenEstimator

from equipoise.arrays import Indices, Matrix, Vector
from equipoise.blocks.base import Block, Blocks, Stream
from equipoise.decisions import Evaluated, Folds, decide
from equipoise.decisions.held_out import rescaled
from equipoise.decisions.trained import class_probabilities, weight_argument
from equipoise.estimators import RobustClassifier
from equipoise.estimators.own_weights import is_robust
from equipoise.estimators.sampled_rows import DrawnRows, Sample, draw_sample, stream_of
from equipoise.exceptions import InvalidInputError, InvalidParameterError
from equipoise.extras import require
from equipoise.report.design import Design, design_of_sample
from equipoise.report.evaluations import EvaluatedCandidate
from equipoise.tables import LabelledTable
from equipoise.tables.features import HELD_OUT


@dataclass(frozen=True, eq=False)
class JointPredictions:
    """What all candidates predict for rows outside of a sample, and how often each combination is.

    ``rules`` are pairs of decision rules and factors of the probabilities, model by model.
    """

    drawn: DrawnRows
    classes: NDArray[Any]
    rules: Sequence[tuple[Any, Sequence[tuple[Vector | Matrix, Vector]]]]

    def __call__(self, index: int, block: Block) -> tuple[NDArray[np.uint16], Indices] | None:
        rows = self.drawn.rows(index, block, drawn=False)
        if rows is None:
            return None
        columns = [rows.labels]
        for model, rules in self.rules:
            table = class_probabilities(model, rows.X, self.classes)
            columns += [decide(rescaled(table, factors), rule) for rule, factors in rules]
        # A line for each row, the class that it has first.
        return np.unique(np.array(columns, dtype=np.uint16).T, axis=0, return_counts=True)


@dataclass(frozen=True, eq=False)
class SampledBlocks:
    """A sample of rows in blocks, and a stream that all others come in."""

    sample: Sample
    stream: Stream

    @classmethod
    def draw(
        cls,
        blocks: Blocks,
        models: Mapping[str, Any],
        seed: int,
        memory: int | str,
        sample_rows: int | None = None,
    ) -> "SampledBlocks":
        """The sample that candidates are fitted to; all must take weights that make up for it."""
        for name, each in models.items():
            frozen = isinstance(each, FrozenEstimator)
            if not frozen and (weight_argument(each) is None or is_robust(each)):
                raise InvalidParameterError(
                    f"models must take sample_weight where rows come in blocks, which {name!r} "
                    "does not: a sample has other shares of the classes than all rows. Compare on "
                    "rows in memory."
                )
        learner = next(iter(models.values()))
        like = RobustClassifier(
            learner.estimator if isinstance(learner, FrozenEstimator) else learner,
            cv=HELD_OUT,
            random_state=seed,
            memory=memory,
            sample_rows=sample_rows,
        )
        stream = stream_of(blocks, memory)
        sample = draw_sample(like, stream)
        if not np.all(sample.rows.weights == 1):
            raise InvalidInputError("Rows in blocks are compared without weights: give (X, y).")
        return cls(sample, stream)

    def design(self, table: LabelledTable, X: Any, seed: int) -> Design:
        """The rows to tune on are held out of the sample."""
        return design_of_sample(table, X, self.sample.parts, self.sample.counts, seed)

    def counted(
        self, design: Design, evaluations: Sequence[EvaluatedCandidate]
    ) -> tuple[Design, list[EvaluatedCandidate]]:
        """All rows, and what candidates predict for those that were not trained on: one pass."""
        table, order = design.table, dict[int, list[int]]()
        for position, each in enumerate(evaluations):
            order.setdefault(id(each.held_out.model), []).append(position)
        rules = [
            (
                evaluations[positions[0]].held_out.model,
                [(evaluations[p].rule, evaluations[p].factors) for p in positions],
            )
            for positions in order.values()
        ]
        joint, counts = JointPredictions(self.sample.drawn, table.classes, rules), Counter[bytes]()
        for tally in self.stream.map(joint):
            for line, count in () if tally is None else zip(*tally, strict=True):
                counts[line.tobytes()] += int(count)
        lines = np.array([np.frombuffer(key, np.uint16) for key in counts], dtype=np.intp)
        often = np.array(list(counts.values()), dtype=np.intp)
        times = np.concatenate([np.ones(len(table.labels), int), often])
        labels = np.concatenate([table.labels, lines[:, 0]])
        numbers = require("pandas", extra="report").DataFrame({"row": np.arange(len(labels))})
        every = replace(table, X=numbers, labels=labels, weights=None, times=times.astype(np.intp))
        train, tune = design.folds.parts[0]
        rest = np.arange(len(table.labels), len(labels))
        parts = [(train, np.concatenate([tune, rest]))]
        fold = np.zeros(len(parts[0][1]), dtype=np.intp)
        whole = replace(design, table=every, folds=Folds(parts, design.folds.few, fold))
        predicted = dict(
            zip([p for positions in order.values() for p in positions], lines.T[1:], strict=True)
        )
        return whole, [
            replace(
                each,
                few=~whole.counts,
                evaluated=_with_rest(each.evaluated, predicted[position], lines[:, 0], often),
            )
            for position, each in enumerate(evaluations)
        ]

    @property
    def rows_seen(self) -> dict[str, int]:
        """How many rows were trained on, tuned on, and evaluated: all that were not trained on."""
        train, tune = map(len, self.sample.parts)
        return {"trained": train, "tuned": tune, "evaluated": int(self.sample.counts.sum()) - train}


def _with_rest(own: Evaluated, predicted: Indices, labels: Indices, times: Indices) -> Evaluated:
    """Held-out rows of a sample, and all rows outside of it, each of the weight one."""
    fold, weights = np.zeros(len(labels), dtype=np.intp), times.astype(np.float64)
    rest = Evaluated(
        labels,
        predicted,
        predicted,
        fold,
        weights,
        own.few,
        own.prior,
        times=times,
        squares=weights,
    )
    few = own.few & ~np.isin(np.arange(len(own.few)), labels)
    # Rows of the sample count as they are among all rows: one each.
    ones = np.ones(len(own.labels))
    return replace(own, few=few, fold=0 * own.fold, weights=ones).and_also(rest)
