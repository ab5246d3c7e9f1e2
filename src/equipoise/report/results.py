"""What a comparison has found, before it is put into words."""

from dataclasses import dataclass
from typing import Any

from equipoise.arrays import Matrix
from equipoise.report.choices import Choice
from equipoise.report.judge import Court, Verdict
from equipoise.report.linear import AlphaPath
from equipoise.report.recommend import Recommendation


@dataclass(frozen=True, eq=False)
class Results:
    """All numbers of a comparison.

    Attributes
    ----------
    title : str
    court : Court
        The rows judged.
    choices : tuple of Choice
    verdicts : tuple of Verdict, one for each choice
    worlds : tuple of str
        Names of the sets of weightings.
    costs : ndarray of shape (n_choices, n_worlds)
    path : AlphaPath or None
    recommendation : Recommendation
    code : str
        Python that fits the recommended choice.
    notes : tuple of str
        Warnings of the fits.
    gaps : tuple of float
        Certified relative gaps of the linear fits.
    sampled : tuple of (str, int)
        What was fitted to a sample, and its size.
    seed, seconds
        What everything random began with, and how long it took.
    """

    title: str
    court: Court
    choices: tuple[Choice, ...]
    verdicts: tuple[Verdict, ...]
    worlds: tuple[str, ...]
    costs: Matrix
    path: AlphaPath | None
    recommendation: Recommendation
    code: str
    notes: tuple[str, ...]
    gaps: tuple[float, ...]
    sampled: tuple[tuple[str, int], ...]
    seed: int
    seconds: float


Summary = dict[str, Any]
