"""What every display is, and how it reads classifiers: one or several, each by its name."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Self

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
        """Draw on the axes given, or on those of a new figure.

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
            _, ax = pyplot.subplots(figsize=self._size(), layout="constrained")
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
    def _draw(self, ax: Any, kwargs: dict[str, Any]) -> None:
        """Draw everything on the axes; ``kwargs`` override the look."""

    def _size(self) -> tuple[float, float]:
        """Width and height of a new figure in inches."""
        return 4.8, 3.4


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
    found = {name: as_loss(loss).response(fit, X) for name, fit in fits.items()}
    classes = next(iter(found.values()))[1]
    return {name: predicted for name, (predicted, _) in found.items()}, classes


def last_step(estimator: Any) -> Any:
    """The classifier at the end of a pipeline, or the estimator itself."""
    steps = getattr(estimator, "steps", None)
    return steps[-1][1] if steps else estimator


def fitted_attributes(
    estimator: Any, *attributes: str, such_as: str = "RobustLogisticRegression"
) -> list[Any]:
    """Attributes of a fitted classifier or of the last step of a pipeline."""
    fitted = last_step(estimator)
    missing = [attribute for attribute in attributes if not hasattr(fitted, attribute)]
    if missing:
        raise InvalidInputError(
            f"this display needs a fitted classifier with {missing[0]}, such as "
            f"{such_as} after fit, got {type(fitted).__name__} without it."
        )
    return [getattr(fitted, attribute) for attribute in attributes]
