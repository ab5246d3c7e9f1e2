"""Classifiers compared on held-out rows, and one page about the trade-off between classes.

Candidates (:mod:`~equipoise.report.candidates`) go through the stages of
:mod:`equipoise.decisions` (:mod:`~equipoise.report.evaluations`); the frontier and the cards along
it are an answer (:mod:`~equipoise.report.answer`), which becomes a summary of plain numbers and
sentences (:mod:`~equipoise.report.summarize`), and that a page (:mod:`~equipoise.report.page`).
"""

from equipoise.report.compare import compare, compare_file
from equipoise.report.comparison import Comparison
from equipoise.report.predicted_elsewhere import compare_predictions, compare_predictions_file

__all__ = [
    "Comparison",
    "compare",
    "compare_file",
    "compare_predictions",
    "compare_predictions_file",
]
