"""Records, the flat dictionaries that units of work yield, and their means over seeds."""

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
    words = [str(record[field]) for record in select(records, **wanted)]
    kinds = list(dict.fromkeys(words))
    if len(kinds) == 1:
        return kinds[0]
    return ", ".join(f"{word} in {words.count(word)}" for word in kinds)


def distinct(records: Sequence[Record], field: str) -> list[Any]:
    """The values of a field, in the order of their first record."""
    return list(dict.fromkeys(record[field] for record in records if field in record))
