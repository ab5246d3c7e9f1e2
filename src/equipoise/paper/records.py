"""Records, the flat dictionaries that units of work yield: as CSV, and their means over seeds."""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from equipoise.arrays import Vector

Record = dict[str, Any]
# Records by kind of unit; a kind whose data are missing has none.
RecordsByKind = Mapping[str, Sequence[Record]]


@dataclass(frozen=True)
class Spread:
    """Mean and standard deviation over seeds; no deviation for a single one."""

    mean: float
    sd: float
    count: int

    def __format__(self, spec: str) -> str:
        digits = spec or ".4f"
        if self.count < 2:
            return format(self.mean, digits)
        return f"{self.mean:{digits}} ± {self.sd:{digits}}"


def spread(values: Sequence[float]) -> Spread:
    """Mean and standard deviation (n - 1) of numbers."""
    array = np.asarray(values, dtype=np.float64)
    sd = float(array.std(ddof=1)) if len(array) > 1 else 0.0
    return Spread(float(array.mean()), sd, len(array))


def select(records: Sequence[Record], **wanted: object) -> list[Record]:
    """The records that have these values."""
    return [
        record
        for record in records
        if all(record.get(name) == value for name, value in wanted.items())
    ]


def mean_of(records: Sequence[Record], field: str, **wanted: object) -> Spread:
    """Mean and spread of one field of the records that have these values."""
    return spread([float(record[field]) for record in select(records, **wanted)])


def means_over(by: str, records: Sequence[Record], field: str, **wanted: object) -> Vector:
    """Means of one field, one for each value of the field ``by``, growing."""
    values = sorted(distinct(records, by))
    return np.array([mean_of(records, field, **{by: value, **wanted}).mean for value in values])


def counted(records: Sequence[Record], field: str, **wanted: object) -> str:
    """The words in a field: the word, or how many records have each."""
    words = [str(record.get(field, "")) for record in select(records, **wanted)]
    kinds = list(dict.fromkeys(words))
    if len(kinds) == 1:
        return kinds[0]
    return ", ".join(f"{word} in {words.count(word)}" for word in kinds)


def distinct(records: Sequence[Record], field: str) -> list[Any]:
    """The values of a field, in the order of their first record."""
    return list(dict.fromkeys(record[field] for record in records if field in record))


def rounded(records: Sequence[Record]) -> list[Record]:
    """The records with numbers of eight digits, as CSV files hold them.

    That is more than any seed leaves unchanged, and pages say the same whether they are made from
    a run or from its files.
    """
    return [
        {
            name: float(f"{value:.8g}") if isinstance(value, float) else value
            for name, value in record.items()
        }
        for record in records
    ]


def to_csv(records: Sequence[Record]) -> str:
    """The records, a line each; what a record lacks stays empty."""
    columns = list(dict.fromkeys(name for record in records for name in record))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    for record in records:
        writer.writerow({n: f"{v:.8g}" if isinstance(v, float) else v for n, v in record.items()})
    return text.getvalue()


def from_csv(text: str) -> list[Record]:
    """The records of :func:`to_csv`, without what is empty."""
    return [
        {name: _value(word) for name, word in line.items() if word}
        for line in csv.DictReader(io.StringIO(text))
    ]


def _value(word: str) -> Any:
    """A number where the word is one."""
    for kind in (int, float):
        try:
            return kind(word)
        except ValueError:
            continue
    return word
