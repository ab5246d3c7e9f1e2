"""The last layer of a network, solved exactly for a set of class weightings.

The body is left as it is: its embeddings are collected in one pass, the robust logistic regression
on them is solved with a certificate, and the solution takes the place of the last layer.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from scipy.sparse import csr_array, vstack
from torch import nn

from equipoise.arrays import Indices, Matrix, NDArray, to_numpy
from equipoise.decisions import TunedWeights, tune_weights
from equipoise.decisions.tune import POOLING
from equipoise.estimators import RobustLogisticRegression
from equipoise.exceptions import InvalidInputError, InvalidParameterError
from equipoise.sets import Uncertainty
from equipoise.text import listing
from equipoise.torch.passes import each_batch, vectors
from equipoise.validation.numbers import check_count, check_numbers

# Mean of a column of embeddings, in its standard deviations, from which a module of its own centres
# them: in float32, logits of a layer alone would be off by more than 1e-5 of a deviation.
_FAR_MEAN = 100.0


class DecisionWeights(nn.Module):  # type: ignore[misc]
    r"""Decisions :math:`\arg\max_i w_i \eta_i(x)`: adds :math:`\log w_i` to the logits.

    Parameters
    ----------
    weights : array-like of shape (n_classes,), or dict by class ``0..k-1``
        Decision weights; a class of weight 0 is never predicted.

    Attributes
    ----------
    tuned : TunedWeights or None
        How the weights were tuned, and their class risks on held-out rows.

    Examples
    --------
    >>> decide = DecisionWeights([1.0, 4.0])
    >>> decide(torch.tensor([[1.0, 0.0]])).argmax(1).tolist()
    [1]
    """

    def __init__(self, weights: Any) -> None:
        super().__init__()
        values = check_numbers(weights, np.arange(np.size(list(weights))), name="weights")
        if not np.all(np.isfinite(values)) or np.any(values < 0) or not values.any():
            raise InvalidParameterError(
                "weights must be finite, none negative and at least one positive, got "
                f"{values.tolist()}."
            )
        with np.errstate(divide="ignore"):
            self.register_buffer("log_weights", torch.tensor(np.log(values)).float())
        self.tuned: TunedWeights | None = None

    def forward(self, logits: Any) -> Any:
        """Logits plus logarithms of the weights."""
        return logits + self.log_weights.to(logits.dtype)


def tune_decisions(  # noqa: PLR0913  rows, what for, and how
    network: Any,
    loader: Iterable[Any],
    goal: Any = None,
    *,
    top: int | None = None,
    class_prior: Any = None,
    pooling: float = POOLING,
    rare_classes: str = "error",
    random_state: int | None = None,
) -> DecisionWeights:
    """Decision weights for a network, tuned on held-out rows.

    Parameters
    ----------
    network : nn.Module
        It gives logits; their softmax is taken for probabilities.
    loader : iterable of batches
        Pairs of inputs and targets, or dicts with ``"labels"`` whose other entries the network
        takes by name.
    top : int, default=None
        How many of the largest probabilities of each row are kept, so that memory grows with
        ``top`` and not with the number of classes; for thousands of classes. None keeps all.
    goal, class_prior, pooling, rare_classes, random_state
        As in :func:`equipoise.tune_weights`, which evaluates the weights by folds of these rows.

    Notes
    -----
    With ``top``, the weights are tuned as if no other class could be predicted for a row, whereas
    the module adds its logarithms to all logits: keep enough classes that the true class is
    among them nearly always.

    Examples
    --------
    >>> rows = torch.linspace(-1, 1, 100)[:, None]
    >>> network = torch.nn.Linear(1, 2)
    >>> decide = tune_decisions(network, [(rows, (rows[:, 0] > 0.3).long())], "worst_class")
    >>> new = torch.nn.Sequential(network, decide)
    >>> decide.tuned.class_risks is None
    False
    """
    kept = None if top is None else check_count(top, "top")
    table, labels = _probabilities(network, loader, kept)
    tuned = tune_weights(
        labels,
        table,
        goal,
        classes=np.arange(table.shape[1]),
        class_prior=class_prior,
        pooling=pooling,
        rare_classes=rare_classes,
        random_state=random_state,
    )
    if tuned.may_abstain:
        raise InvalidParameterError(
            f"goal must give every row a class, got {goal!r}: a module of logits cannot abstain. "
            "Leave abstain=True out, or tune_weights on the probabilities."
        )
    if tuned.weights is None:
        raise InvalidParameterError(
            f"goal must be one that decision weights can reach, got {goal!r}: its rule is a matrix "
            "of costs."
        )
    decide = DecisionWeights(tuned.rule)
    decide.tuned = tuned
    return decide


class Centering(nn.Module):  # type: ignore[misc]
    """Takes an origin off embeddings: what is far from zero has few digits left for differences.

    Parameters
    ----------
    origin : array-like of shape (n_features,)
        Zero for columns that are left as they are.
    like : Tensor
        Of which device and dtype the origin is.
    """

    def __init__(self, origin: Any, like: Any) -> None:
        super().__init__()
        self.register_buffer("origin", torch.tensor(origin).to(like))

    def forward(self, embeddings: Any) -> Any:
        """Embeddings less the origin."""
        return embeddings - self.origin


class RobustHead:
    r"""Replace the last layer of a trained network by the exact robust one on its embeddings.

    .. math:: \min_{W, b} \; \max_{q \in Q} \; \sum_i q_i p_i R_i(W, b) + \frac{\|W\|^2}{2 C n}

    Use it when a trained network is good on common classes and poor on rare ones: the body stays as
    it is, and the last layer gets a certified optimum in seconds.

    Embeddings are scaled to mean zero and variance one, which the layer undoes. Where the mean of a
    column is more than a hundred times its spread, a module that takes the mean off comes before
    the layer, as few digits of such columns would be left in its logits. The certificate is that of
    exact logits; those of the network are rounded to its precision. Where the network is on a GPU
    the embeddings stay there, and the layer is solved there.

    Parameters
    ----------
    goal : Uncertainty, "standard", "balanced" or "worst_class", default=None
        The set of weightings; None means ``LabelCVaR(alpha=0.1)``.
    layer : str, default=None
        Name of the layer to replace, as in ``network.get_submodule``; the last ``nn.Linear`` if not
        given. Embeddings are what it is given.
    C, tol, max_iter
        As in :class:`equipoise.RobustLogisticRegression`.
    decision_goal : default=None
        A goal for which decision weights are tuned on held-out rows; they are added to the logits.

    Attributes
    ----------
    estimator_ : RobustLogisticRegression
        The fit on the scaled embeddings, with its certificate ``duality_gap_``, ``class_risks_``
        and ``worst_case_weights_``.
    layer_ : str
        Name of the layer that was replaced.
    linear_ : nn.Linear
        The new layer.
    centering_ : nn.Module or None
        What comes before it, where columns of embeddings are far from zero.
    decisions_ : DecisionWeights or None
        What follows it.

    Examples
    --------
    >>> import torch
    >>> from equipoise.torch import RobustHead
    >>> _ = torch.manual_seed(0)
    >>> network = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2))
    >>> rows = torch.randn(200, 2)
    >>> loader = [(rows, (rows[:, 0] + 0.5 * rows[:, 1] ** 2 > 1.5).long())]
    >>> head = RobustHead("worst_class").fit(network, loader)
    >>> head.layer_, head.estimator_.status_, network[2] is head.linear_
    ('2', 'converged', True)
    """

    def __init__(
        self,
        goal: Uncertainty | str | None = None,
        *,
        layer: str | None = None,
        C: float = 1.0,
        tol: float = 1e-6,
        max_iter: int = 1000,
        decision_goal: Any = None,
    ) -> None:
        self.goal, self.layer, self.decision_goal = goal, layer, decision_goal
        self.C, self.tol, self.max_iter = C, tol, max_iter

    def fit(
        self, network: Any, loader: Iterable[Any], held_out: Iterable[Any] | None = None
    ) -> Self:
        """Solve the last layer on the rows of a loader, and put it into the network.

        Parameters
        ----------
        network : nn.Module
            Changed in place: its last layer is another one afterwards.
        loader : iterable of batches
            Pairs of inputs and targets, or dicts with ``"labels"`` whose other entries the network
            takes by name. Without random augmentation, each row comes once.
        held_out : iterable of batches, default=None
            Rows that neither the body nor this layer was fitted to, for ``decision_goal``.
        """
        if self.decision_goal is not None and held_out is None:
            raise InvalidParameterError(
                "held_out must be given with a decision_goal: decision weights are tuned on "
                "held-out rows."
            )
        name = _last_linear(network) if self.layer is None else self.layer
        old = _submodule(network, name)
        embeddings, labels = _embeddings(network, loader, old)
        n_classes = int(getattr(old, "out_features", labels.max() + 1))
        like = next(old.parameters())
        moments = _moments(embeddings, like)
        coef, intercept = self._solve(embeddings, labels, n_classes, moments)
        linear = nn.Linear(embeddings.shape[1], n_classes, device=like.device, dtype=like.dtype)
        with torch.no_grad():
            linear.weight.copy_(torch.tensor(coef))
            linear.bias.copy_(torch.tensor(intercept))
        linear.train(old.training)
        self.layer_, self.linear_, self.decisions_ = name, linear, None
        self.centering_ = Centering(moments.origin, like) if moments.origin.any() else None
        parts = [linear] if self.centering_ is None else [self.centering_, linear]
        _replace(network, name, nn.Sequential(*parts) if self.centering_ else linear)
        if self.decision_goal is not None and held_out is not None:
            self.decisions_ = tune_decisions(network, held_out, self.decision_goal).to(like.device)
            _replace(network, name, nn.Sequential(*parts, self.decisions_))
        return self

    def _solve(
        self, embeddings: Any, labels: Indices, n_classes: int, moments: Moments
    ) -> tuple[Matrix, NDArray[Any]]:
        """Coefficients and intercepts for all classes, of embeddings less the origin.

        This is the one place that knows who solves.
        """
        _check_all_classes(labels, n_classes)
        origin, mean, spread = moments
        double = partial(embeddings.new_tensor, dtype=torch.float64)
        scaled = (embeddings - double(origin + mean)) / double(spread)
        scaled = scaled.to(embeddings.dtype)
        if not scaled.is_cuda:
            scaled = scaled.numpy()
        self.estimator_ = RobustLogisticRegression(
            self.goal, C=self.C, tol=self.tol, max_iter=self.max_iter
        ).fit(scaled, labels)
        coef = to_numpy(self.estimator_.coef_) / spread
        intercept = to_numpy(self.estimator_.intercept_) - coef @ mean
        if len(coef) == 1:
            # One score f of two classes stands for the scores (-f/2, f/2).
            half = np.array([-0.5, 0.5])
            return half[:, None] * coef, half * intercept
        return coef, intercept


class Moments(NamedTuple):
    """An origin in the precision of the network, and mean and spread of embeddings less this."""

    origin: NDArray[Any]
    mean: NDArray[Any]
    spread: NDArray[Any]


def _moments(embeddings: Any, like: Any) -> Moments:
    first = embeddings[0].double()  # it lies where the others do
    apart = embeddings.double() - first
    mean, spread = (to_numpy(each) for each in (apart.mean(0), apart.std(0, correction=0)))
    first, spread = to_numpy(first), np.where(spread > 0, spread, 1.0)
    far = np.abs(first + mean) > _FAR_MEAN * spread
    rounded = torch.tensor(first + mean).to(like.dtype).double().numpy()
    origin = np.where(far, rounded, 0.0)
    return Moments(origin, (first - origin) + mean, spread)


def _embeddings(network: Any, loader: Iterable[Any], layer: Any) -> tuple[Any, Indices]:
    """The inputs of a layer, on the device of the network, and the labels."""

    def take(values: Any, targets: Any) -> Any:
        # A device other than CUDA has no solver.
        kept = vectors(values)
        return kept if kept.is_cuda else kept.cpu(), targets.cpu().numpy()

    rows, labels = zip(*each_batch(network, loader, take, layer), strict=True)
    return torch.cat(rows), np.concatenate(labels).astype(np.intp)


def _check_all_classes(labels: Indices, n_classes: int) -> None:
    """Refuse labels outside the layer, and classes of the layer without rows."""
    stray = np.unique(labels[(labels < 0) | (labels >= n_classes)])
    missing = np.setdiff1d(np.arange(n_classes), labels)
    if len(stray) or len(missing):
        wrong = f"rows of {listing(stray.tolist())}" if len(stray) else ""
        none = f"no rows of {listing(missing.tolist())}" if len(missing) else ""
        raise InvalidInputError(
            f"The loader must have rows of each of the {n_classes} classes of the last layer "
            f"and of no other, got {' and '.join(part for part in (wrong, none) if part)}."
        )


def _probabilities(network: Any, loader: Iterable[Any], top: int | None) -> tuple[Any, Indices]:
    """The softmax of a network's outputs, or the largest of each row, and the labels."""

    def take(logits: Any, targets: Any) -> Any:
        # In double precision only where it is kept: there are k values a row before.
        scores = vectors(logits)
        total = scores.logsumexp(1, keepdim=True).double()
        classes = None
        if top is not None:
            scores, classes = scores.topk(min(top, scores.shape[1]), dim=1)
        table = (scores.double() - total).exp().cpu().numpy()
        kept = table if classes is None else _sparse(table, classes.cpu().numpy(), logits.shape[1])
        return kept, targets.cpu().numpy()

    tables, labels = zip(*each_batch(network, loader, take), strict=True)
    stack = np.concatenate if top is None else partial(vstack, format="csr")
    return stack(tables), np.concatenate(labels).astype(np.intp)


def _sparse(values: Matrix, classes: NDArray[np.intp], k: int) -> csr_array:
    ends = np.arange(0, values.size + 1, values.shape[1])
    return csr_array((values.ravel(), classes.ravel(), ends), shape=(len(values), k))


def _last_linear(network: Any) -> str:
    names = [name for name, each in network.named_modules() if isinstance(each, nn.Linear)]
    if not names or names[-1] == "":
        raise InvalidParameterError(
            "layer must name the layer to replace: the network has no nn.Linear inside."
        )
    return str(names[-1])


def _submodule(network: Any, name: str) -> Any:
    known = dict(network.named_modules())
    if not name or name not in known:
        names = ", ".join(repr(each) for each in known if each)
        raise InvalidParameterError(f"layer must be a part of the network ({names}), got {name!r}.")
    return known[name]


def _replace(network: Any, name: str, module: Any) -> None:
    parent, _, last = name.rpartition(".")
    setattr(network.get_submodule(parent), last, module)
