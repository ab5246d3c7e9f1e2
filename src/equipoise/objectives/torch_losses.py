"""The cross-entropy on torch tensors: what ``losses.base.ScoreKernel`` does for NumPy arrays.

Conventions
-----------
``scores`` and ``kept`` have shape ``(rows, n_scores)``: unlike in NumPy, the scores of a row are
neighbours. What is kept are probabilities, with one score those of the second class. ``labels`` are
class indices, ``scale`` is each row's share; ``by`` is a shift of the scores.
"""

from functools import cache
from typing import Any

from equipoise.extras import require


@cache
def torch() -> Any:
    """The module, which is there where tensors are."""
    return require("torch", extra="torch")


class SoftmaxTensors:
    """Multinomial: one score a class."""

    def losses(self, scores: Any, labels: Any, room: Any = None) -> tuple[Any, Any]:
        """Losses of the rows, and what is kept, in memory for it if there is some.

        Scores are read twice and probabilities written once; the largest, of which the logarithm is
        taken, is never too small for it.
        """
        top, where = scores.max(1)
        kept = scores.softmax(1) if room is None else torch().softmax(scores, 1, out=room)
        label_scores = scores.gather(1, labels[:, None])[:, 0]
        return (top - label_scores) - kept.gather(1, where[:, None])[:, 0].log(), kept

    def residual(self, kept: Any, labels: Any, scale: Any) -> Any:
        """Derivative of the scaled losses by the scores."""
        out = kept * scale[:, None]
        return out.scatter_add_(1, labels[:, None], -scale[:, None])

    def targets(self, of_classes: Any) -> Any:
        """Sums over the rows of each class, as those over the rows of each score's own class."""
        return of_classes

    def hessian_product(self, kept: Any, scale: Any, change: Any) -> Any:
        """Second derivative of the scaled losses by the scores, times a change of these."""
        return kept * (change - (kept * change).sum(1, keepdim=True)) * scale[:, None]

    def hessian(self, rows: Any, kept: Any, scale: Any) -> Any:
        """Sum over rows of the scaled Hessian, by the parameters of all but the last score."""
        p, width = kept[:, :-1], rows.shape[1]
        spread = rows * scale.sqrt()[:, None]
        wide = (p[:, :, None] * spread[:, None, :]).reshape(len(rows), -1)
        out = -(wide.T @ wide)
        blocks = out.reshape(p.shape[1], width, p.shape[1], width)
        diagonal = (spread.T @ wide).reshape(width, p.shape[1], width)
        blocks.diagonal(dim1=0, dim2=2).add_(diagonal.transpose(1, 2))
        return out

    def moved(self, kept: Any, by: Any, room: Any = None) -> Any:
        """What is kept after a shift, in memory for it if there is some: that before it, too."""
        odds = by.exp()
        sums = positive(kept @ odds)
        return torch().mul(kept, odds, out=room).div_(sums[:, None])

    def growth(self, kept: Any, labels: Any, by: Any) -> Any:
        """How much a shift adds to the losses; infinite shifts add nothing."""
        finite = by.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0)
        return positive(kept @ by.exp()).log_() - finite[labels]

    def moments(self, kept: Any, scale: Any, *, diagonal: bool) -> tuple[Any, Any]:
        """Sums over rows of scaled probabilities and second derivatives by the scores."""
        weighted = kept * scale[:, None]
        mean = weighted.sum(0)
        if diagonal:
            return mean, mean - (weighted * kept).sum(0)
        return mean, mean.diag() - weighted.T @ kept

    def own(self, mass: Any) -> Any:
        """What scaled probabilities sum to where the gradients by the scores vanish."""
        return mass


class LogisticTensors:
    """Two classes, one score: the same methods."""

    def losses(self, scores: Any, labels: Any, room: Any = None) -> tuple[Any, Any]:
        wrong = scores[:, 0] * (1 - 2 * labels)
        losses = (-wrong.abs()).exp().log1p() + wrong.clamp(min=0)
        return losses, torch().sigmoid(scores, out=room)

    def residual(self, kept: Any, labels: Any, scale: Any) -> Any:
        return (kept - labels[:, None]) * scale[:, None]

    def targets(self, of_classes: Any) -> Any:
        return of_classes[1:]

    def hessian_product(self, kept: Any, scale: Any, change: Any) -> Any:
        return kept * (1 - kept) * change * scale[:, None]

    def hessian(self, rows: Any, kept: Any, scale: Any) -> Any:
        root = (kept * (1 - kept)).sqrt() * scale.sqrt()[:, None]
        scaled = rows * root
        return scaled.T @ scaled

    def moved(self, kept: Any, by: Any, room: Any = None) -> Any:
        if by.isinf().item():
            moved = (by > 0).to(kept.dtype).expand(kept.shape)
        else:
            moved = kept * by.exp()
            moved = moved / ((1 - kept) + moved)
        return moved if room is None else room.copy_(moved)

    def growth(self, kept: Any, labels: Any, by: Any) -> Any:
        p = kept[:, 0]
        if by.isinf().item():
            return positive(p if (by > 0).item() else 1 - p).log()
        return ((1 - p) + p * by.exp()).log() - by * labels

    def moments(self, kept: Any, scale: Any, *, diagonal: bool) -> tuple[Any, Any]:
        p = kept[:, 0]
        return (p @ scale)[None], ((p * (1 - p)) @ scale)[None, None]

    def own(self, mass: Any) -> Any:
        return mass[1:]


def positive(values: Any) -> Any:
    """Sums of probabilities that may be divided by."""
    return values.clamp(min=1e-38 if values.element_size() == 4 else 1e-300)
