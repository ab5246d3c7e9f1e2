"""Tables as people have them: read, checked, and turned into features by an ordinary pipeline."""

from equipoise.tables.columns import COLUMN_KINDS, Column, columns_of, conform, find_column
from equipoise.tables.features import (
    MODEL_KINDS,
    AsTable,
    OrderedForest,
    booster_for,
    folds_for,
    learner_for,
    model_for,
    plain_pipeline,
    preprocessor,
    tuned_for,
)
from equipoise.tables.labelled import (
    LabelledTable,
    hold_out,
    labelled_table,
    labels_like,
    read_labelled,
    split_target,
    unseen_rows,
)
from equipoise.tables.read import read_chunks, read_table
from equipoise.tables.streamed import StreamedTable, size_in_memory, streamed_table

__all__ = [
    "COLUMN_KINDS",
    "MODEL_KINDS",
    "AsTable",
    "Column",
    "LabelledTable",
    "OrderedForest",
    "StreamedTable",
    "booster_for",
    "columns_of",
    "conform",
    "find_column",
    "folds_for",
    "hold_out",
    "labelled_table",
    "labels_like",
    "learner_for",
    "model_for",
    "plain_pipeline",
    "preprocessor",
    "read_chunks",
    "read_labelled",
    "read_table",
    "size_in_memory",
    "split_target",
    "streamed_table",
    "tuned_for",
    "unseen_rows",
]
