"""Tables as people have them: read, checked, and turned into features by an ordinary pipeline."""

from equipoise.tables.columns import Column, columns_of, conform, without_columns
from equipoise.tables.facts import TableFacts, table_facts
from equipoise.tables.features import boosting_categories, features_for, preprocessor
from equipoise.tables.models import MODEL_KINDS, model_for
from equipoise.tables.read import read_chunks, read_table
from equipoise.tables.split import hold_out, row_groups
from equipoise.tables.target import labels_like, split_target

__all__ = [
    "MODEL_KINDS",
    "Column",
    "TableFacts",
    "boosting_categories",
    "columns_of",
    "conform",
    "features_for",
    "hold_out",
    "labels_like",
    "model_for",
    "preprocessor",
    "read_chunks",
    "read_table",
    "row_groups",
    "split_target",
    "table_facts",
    "without_columns",
]
