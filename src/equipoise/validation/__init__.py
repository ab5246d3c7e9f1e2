"""Checks of what users give, one of each kind: numbers, labels, predictions, weights of rows."""

from equipoise.validation.labels import (
    as_labels,
    check_classes,
    check_length,
    class_names,
    classes_of,
    encode_labels,
    known_labels,
    positions,
)
from equipoise.validation.numbers import (
    check_count,
    check_flag,
    check_interval,
    check_number,
    check_numbers,
    check_seed,
    check_verbosity,
    check_word,
)
from equipoise.validation.predictions import as_probabilities, as_scores, check_true
from equipoise.validation.row_weights import check_sample_weight, class_totals, row_shares

__all__ = [
    "as_labels",
    "as_probabilities",
    "as_scores",
    "check_classes",
    "check_count",
    "check_flag",
    "check_interval",
    "check_length",
    "check_number",
    "check_numbers",
    "check_sample_weight",
    "check_seed",
    "check_true",
    "check_verbosity",
    "check_word",
    "class_names",
    "class_totals",
    "classes_of",
    "encode_labels",
    "known_labels",
    "positions",
    "row_shares",
]
