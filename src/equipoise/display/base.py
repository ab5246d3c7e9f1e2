"""What every display is, and how it reads classifiers: one or several, each by its name."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, Self

from equipoise.decisions.classifiers import last_step
from equipoise.display import style
from equipoise.estimators import RobustnessCV
from equipoise.exceptions import InvalidInputError
from equipoise.extras import require
from equipoise.losses import Loss, as_loss


class Display(ABC):
    """A picture of an analysis, and the numbers behind it.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure, after ``plot``
    """

    ax_: Any = None
    figure_: Any = None

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw on the axes given, or on those of a new figure, which then has a title.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        **kwargs
            For the function of Matplotlib that draws; the class names it.

        Returns
        -------
        self
        """
        pyplot = require("matplotlib.pyplot", extra="plot")
        if ax is None:
            figure, ax = pyplot.subplots(figsize=self._size(), layout="constrained")
            style.name_figure(figure, self._title())
        self._draw(ax, kwargs)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def to_frame(self) -> Any:
        """The columns of :meth:`to_dict` as a pandas DataFrame."""
        return require("pandas", extra="report").DataFrame(self.to_dict())

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Columns by name."""

    @abstractmethod
    def _title(self) -> str:
        """What a new figure is called."""

    @abstractmethod
    def _draw(self, ax: Any, kwargs: dict[str, Any]) -> None:
        """Draw everything on the axes; ``kwargs`` override the look."""

    def _size(self) -> tuple[float, float]:
        """Width and height of a new figure in inches."""
        return 4.8, 3.6


def named(values: Any, single: str) -> dict[str, Any]:
    """A dictionary by name, from one or from a single value that is called ``single``."""
    if not isinstance(values, Mapping):
        return {single: values}
    if not values:
        raise InvalidInputError(f"a {single} must be given, or at least one by name, got none.")
    return {str(key): value for key, value in values.items()}


def responses(estimator: Any, X: Any, loss: str | Loss) -> tuple[dict[str, Any], Any]:
    """What the loss reads of classifiers by name, and the classes of its columns if it has any.

    A single classifier is called by its class.
    """
    fits = named(estimator, type(last_step(estimator)).__name__)
    pairs = {name: as_loss(loss).response(fit, X) for name, fit in fits.items()}
    classes = next(iter(pairs.values()))[1]
    return {name: predicted for name, (predicted, _) in pairs.items()}, classes


def classifiers_inside(estimator: Any) -> Iterator[Any]:
    """The classifier at the end of a pipeline, and the one that a search or a choice found."""
    while estimator is not None:
        estimator = last_step(estimator)
        yield estimator
        inside = "estimator_" if isinstance(estimator, RobustnessCV) else "best_estimator_"
        estimator = getattr(estimator, inside, None)


def fitted_attributes(
    estimator: Any, what: str, such_as: str, *attributes: str, more: str = ""
) -> list[Any]:
    """Attributes of a fitted classifier, which tell what is shown."""
    inside = list(classifiers_inside(estimator))
    for fitted in inside:
        if all(hasattr(fitted, attribute) for attribute in attributes):
            return [getattr(fitted, attribute) for attribute in attributes]
    last, missing = inside[-1], attributes[0]
    name = type(last).__name__
    base = hasattr(getattr(last, "estimator_", None), missing)
    raise InvalidInputError(
        f"{what} of {name} cannot be shown: it has no {missing}, as a fitted {such_as} has"
        f"{', and as its estimator_ has' if base else ''}{more}."
    )
