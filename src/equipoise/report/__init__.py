"""Which class weights? Classifiers compared on rows they have not seen, and one page about it.

Three stages, each with one thing that it hands on: a labelled table becomes findings
(:mod:`~equipoise.report.findings`), these a summary of plain numbers and sentences
(:mod:`~equipoise.report.summarize`), and that a page (:mod:`~equipoise.report.page`).
"""

from equipoise.report.compare import Comparison, compare, compare_file
from equipoise.report.predicted_elsewhere import compare_predictions, compare_predictions_file

__all__ = [
    "Comparison",
    "compare",
    "compare_file",
    "compare_predictions",
    "compare_predictions_file",
]
