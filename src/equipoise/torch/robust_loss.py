r"""The robust risk as a loss for training loops.

What is estimated, and how
--------------------------
The objective is :math:`\max_{m \in M} \sum_i m_i R_i`, with :math:`R_i` the mean loss over all
:math:`n_i` rows of class ``i``. A batch is a draw of rows from the data set. Two things are needed
of it, and they ask for different estimates.

*The gradient* at masses ``m`` is a sum over the data set in which a row of class ``i`` weighs
:math:`m_i / n_i`. The mean of :math:`(m_y / s_y) \ell` over the rows of a batch, with
:math:`s_i = n_i / n` from the counts, is without bias for it. A mean over the batch's own rows of a
class is not: it is a ratio, it does not exist where the class is missing, and a class that is
missing from nine batches of ten would count a tenth of what it should.

*The class risks*, which the masses follow, are weighted means of the losses of a class's rows, in
which a row that is ``w`` passes over the data old counts :math:`e^{-w / \text{window}}`. Sums of
losses and numbers of rows fade alike, and their ratio is taken over all that is remembered, never
within a batch. Dividing by the expected number of rows instead would be without bias, but as noisy
as the number of rows that happened to be drawn: for a class with five rows in the memory its risk
would be off by 45% even if all of its rows had the same loss. Nothing is biased towards zero at the
start, and where a class is missing nothing happens: both of its sums fade. A class that was never
seen has no risk; the mean of the others, by priors, stands for it, so that it neither leads nor
trails. In ``eval()`` it stands for a class that is missing from the batch.

*The masses* are one step of mirror ascent from their own running mean. Where the mean stands still
no step leads on: the masses are the exact worst case there, not a smoothed one. What the step and
the length of the mean must be for network and masses to come to rest is in
:func:`equipoise.torch.mass_rules.mean_share`.

Under ``DistributedDataParallel`` the sums are those of all ranks, and gradients, which are averaged
over ranks there, are those of the joint batch.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import Any

import numpy as np
import torch
from torch import nn

from equipoise.arrays import ArrayLike, Vector, to_numpy
from equipoise.exceptions import ClassMismatchError, InvalidInputError, InvalidParameterError
from equipoise.risks.class_risks import Absent, ClassRisks, present_classes
from equipoise.sets import Uncertainty, as_uncertainty
from equipoise.text import listing
from equipoise.torch.checkpoints import as_bytes, check_description, describe
from equipoise.torch.losses_of_rows import LossOfRows, loss_of_rows
from equipoise.torch.mass_rules import check_ascent, mass_rule, mean_share
from equipoise.torch.passes import each_batch
from equipoise.torch.ranks import check_agreement, n_ranks, sum_over_ranks
from equipoise.validation.numbers import check_flag, check_number, check_numbers, check_word
from equipoise.weights import ByClass, check_prior, weights_of

REDUCTIONS = ("mean", "sum", "none")
# Rows of the memory of each class: the sum of its losses, and the number of its rows.
_LOSS_ROW, _COUNT_ROW = 0, 1


class RobustLoss(nn.Module):  # type: ignore[misc]
    r"""The largest weighted risk over a set of class weightings, for ``(logits, targets)``.

    .. math:: \max_{q \in Q} \; \sum_i q_i p_i R_i(f)

    with :math:`R_i` the mean loss over the rows of class ``i`` in the data set. It takes the place
    of ``nn.CrossEntropyLoss``. In training, class risks are remembered from batch to batch and
    the rows of a batch count by the worst-case weights for them; in ``eval()`` the value is the
    exact robust risk of the batch, and nothing is remembered.

    Parameters
    ----------
    goal : Uncertainty, "standard", "balanced" or "worst_class", or None
        The set of weightings; None means ``LabelCVaR(alpha=0.1)``.
    class_counts : array-like of shape (n_classes,), or dict by class
        Rows of each class among those that batches are drawn from. With a sampler that favours
        classes, the number of times that rows of each class come in one pass.
    loss : {"cross_entropy", "squared_hinge", "smoothed_hinge"} or callable
        The loss of a row. A function takes logits of shape (rows, classes) and labels
        and returns the loss of every row.
    classes : array-like of shape (n_classes,), default=None
        Names of the classes, for sets and results by name; ``0..k-1`` if not given.
    class_prior : array-like or dict by class, default=None
        Class frequencies of the population, where those of ``class_counts`` differ.
    window : float, default=0.5
        How long class risks are remembered, in passes over the data.
    ascent : float, "auto" or None, default="auto"
        How far the masses go from their running mean: they are the maximiser over the set of
        ``ascent`` times the weighted risk, less the divergence from the mean. ``"auto"`` is 1: a
        class with an excess risk of one counts *e* times its mean mass. The mean is over twice the
        sum of ``window`` and ten steps, so that masses and network come to rest for any number of
        batches in a pass. None takes the exact worst case for the class risks of every step, which
        jumps from class to class where risks tie.
    ignore_index : int, default=-100
        Rows with this target count nothing.
    label_smoothing : float, default=0.0
        As in ``nn.CrossEntropyLoss``.
    reduction : {"mean", "sum", "none"}, default="mean"
        ``"none"`` gives the weighted losses of the rows, whose mean is the loss.
    check : bool, default=False
        Whether to wait for the device in every step and raise at once what is wrong with logits or
        targets. Otherwise it is recorded, the loss is NaN, and reading a result raises. In
        compiled programs it is always recorded.
    process_group : ProcessGroup, default=None
        The ranks that train together, all of them by default.

    Attributes
    ----------
    class_risks : ByClass
        Mean loss of each class, as remembered.
    worst_case_weights, worst_case_masses : ByClass
        What the classes counted in the last step, as weights and as shares of the objective.
    robust_risk : float
        The largest weighted risk for ``class_risks``.

    Notes
    -----
    Batches should be uniform draws from the data set, as a shuffled ``DataLoader`` gives them. What
    must survive a checkpoint is in ``state_dict``. Sums and masses stay in double precision
    if the network is cast to another type. With logits of more than two dimensions classes are in
    the second, as in ``nn.CrossEntropyLoss``.

    Examples
    --------
    >>> import torch
    >>> from equipoise import LabelCVaR
    >>> from equipoise.torch import RobustLoss
    >>> loss = RobustLoss(LabelCVaR(alpha=0.2), class_counts=[90, 10])
    >>> logits = torch.tensor([[2.0, 0.0], [1.0, 0.0], [1.0, 0.0]], requires_grad=True)
    >>> loss(logits, torch.tensor([0, 0, 1])).backward()
    >>> {name: round(risk, 3) for name, risk in loss.class_risks.items()}
    {0: 0.22, 1: 1.313}
    >>> round(loss.eval()(logits, torch.tensor([0, 0, 1])).item(), 3)
    0.767
    """

    def __init__(  # noqa: PLR0913  a loss takes all its options here
        self,
        goal: Uncertainty | str | None,
        class_counts: ArrayLike | dict[Any, Any],
        *,
        loss: str | LossOfRows = "cross_entropy",
        classes: ArrayLike | None = None,
        class_prior: Any = None,
        window: float = 0.5,
        ascent: float | str | None = "auto",
        ignore_index: int = -100,
        label_smoothing: float = 0.0,
        reduction: str = "mean",
        check: bool = False,
        process_group: Any = None,
    ) -> None:
        super().__init__()
        counts, self.classes = check_counts(class_counts, classes)
        self.goal = as_uncertainty(goal)
        prior = counts / counts.sum()
        if class_prior is not None:
            prior = check_prior(class_prior, self.classes)
        mass_set = self.goal.resolve(prior, self.classes)
        self._description = describe(self.goal, self.classes, prior)
        self.rule = mass_rule(mass_set, prior)
        self.ascent = check_ascent(ascent, mass_set)
        self.loss = loss_of_rows(loss, label_smoothing)
        self.window = check_number(window, "window", "(0, inf)")
        self.reduction = check_word(reduction, "reduction", REDUCTIONS)
        self.check = check_flag(check, "check")
        self.ignore_index, self.process_group = ignore_index, process_group
        self._loss_name = loss if isinstance(loss, str) else getattr(loss, "__name__", repr(loss))
        self._fact = f"{self.goal!r}, loss {loss!r} and counts {counts_text(counts)}"
        self._agreed = False
        constants = {"prior": prior, "shares": counts / counts.sum(), "n_rows": counts.sum()}
        for name, values in constants.items():
            self.register_buffer(name, _double(values), persistent=False)
        self.register_buffer("remembered", _double(np.zeros((2, len(counts)))))
        self.register_buffer("state", self.rule.start.clone())
        self.register_buffer("masses", self.rule.masses(self.rule.start).clone())
        self.register_buffer("step", torch.zeros((), dtype=torch.int64))
        # The first step in which each class had a loss that is no number, and that of a target
        # that is no class; 0 for none.
        self.register_buffer("broken", torch.zeros(len(counts) + 1, dtype=torch.int64))

    def forward(self, logits: Any, targets: Any) -> Any:
        """The loss of a batch: logits of shape (rows, classes), targets of shape (rows,)."""
        losses, labels, counted, stray = self._losses(logits, targets)
        with torch.no_grad():
            sums, bad = self._sums(losses.detach(), labels, counted, stray)
            if self.training:
                weights, total = self._remember(sums, bad)
            else:
                weights, total = self._of_batch(sums)
            weights = weights.to(losses.dtype)[labels]
            # What is broken shows: no step is made from a part of a batch.
            weights = torch.where(stray, torch.nan, weights)
        weighted = losses * weights
        if self.reduction == "none":
            return weighted.reshape(targets.shape)
        if self.reduction == "sum":
            return weighted.sum()
        ranks = n_ranks(self.process_group) if self.training else 1
        return weighted.sum() * (ranks / total.clamp_min(1.0)).to(losses.dtype)

    def exact_risks(
        self, network: Any, loader: Iterable[Any], *, absent: Absent = "raise"
    ) -> ClassRisks:
        """Class risks of a network over all rows of a loader, in one pass without gradients.

        Where ``class_risks`` are a running mean over batches and changing networks, these are the
        means of the losses of this network; ``.robust(loss.goal)`` is the robust risk of the rows.
        Memory is that of one batch. The module's own state does not change.

        Parameters
        ----------
        network : nn.Module
            It gives logits, and is in ``eval()`` during the pass.
        loader : iterable of batches
            Pairs of inputs and targets, or dicts with ``"labels"`` whose other entries the network
            takes by name.
        absent : {"raise", "drop"}, default="raise"
            As in :func:`equipoise.class_risks`: what to do with classes without rows.

        Examples
        --------
        >>> loss = RobustLoss("worst_class", class_counts=[90, 10])
        >>> batches = [(torch.tensor([[2.0, 0.0], [1.0, 0.0]]), torch.tensor([0, 1]))]
        >>> risks = loss.exact_risks(torch.nn.Identity(), batches)
        >>> {name: round(risk, 3) for name, risk in risks.items()}
        {0: 0.127, 1: 1.313}
        >>> round(risks.robust(loss.goal), 3)
        1.313
        """
        sums = torch.zeros_like(self.remembered)

        def add(logits: Any, targets: Any) -> None:
            losses, labels, counted, stray = self._losses(logits, targets)
            if stray.any() or not torch.isfinite(losses).all():
                raise InvalidInputError(
                    "Every row must have a finite loss, and a target that is a class or "
                    f"ignore_index = {self.ignore_index}; got another in a batch of the loader."
                )
            values = torch.stack([losses, counted.to(losses.dtype)])
            sums.add_(self._by_class(values, labels).to(sums.device))

        each_batch(network, loader, add)
        total = to_numpy(sums)
        present = present_classes(self.classes, total[_COUNT_ROW], absent, of="the loader")
        risks = total[_LOSS_ROW, present] / total[_COUNT_ROW, present]
        prior = to_numpy(self.prior)[present]
        return ClassRisks(
            ByClass(risks, self.classes[present]), prior / prior.sum(), loss=self._loss_name
        )

    def _losses(self, logits: Any, targets: Any) -> tuple[Any, Any, Any, Any]:
        """Losses and labels of the rows, which rows count, and which have no class."""
        table, labels = self._rows(logits, targets)
        if table.dtype in {torch.float16, torch.bfloat16}:
            table = table.float()
        labels = labels.long()
        counted = labels != self.ignore_index
        stray = counted & ((labels < 0) | (labels >= len(self.classes)))
        counted = counted & ~stray
        labels = torch.where(counted, labels, 0)
        return torch.where(counted, self.loss(table, labels), 0.0), labels, counted, stray

    def _rows(self, logits: Any, targets: Any) -> tuple[Any, Any]:
        """Logits as a table, and targets in its order."""
        k = len(self.classes)
        if targets.is_floating_point() or (targets.shape == logits.shape and logits.dim() > 1):
            raise InvalidInputError(
                "targets must hold one class a row, as integers, got "
                f"{targets.dtype} of shape {tuple(targets.shape)}: the risk of a class is a mean "
                "over its rows, and a row with shares of several classes belongs to none. Use "
                "targets.argmax(1), or label_smoothing."
            )
        check_columns(logits, k)
        if targets.shape != logits.shape[:1] + logits.shape[2:]:
            raise InvalidInputError(
                f"targets must have one entry for each row of logits, got shapes "
                f"{tuple(targets.shape)} and {tuple(logits.shape)}."
            )
        table = logits if logits.dim() == 2 else logits.movedim(1, -1).reshape(-1, k)
        return table, targets if targets.dim() == 1 else targets.reshape(-1)

    def _sums(self, losses: Any, labels: Any, counted: Any, stray: Any) -> tuple[Any, Any]:
        """Sums of losses and numbers of rows by class; and how many rows of each are broken.

        In training those of all ranks.
        """
        kind, k = self.remembered.dtype, len(self.classes)
        sound = torch.isfinite(losses) & counted
        values = torch.stack(
            [
                torch.where(sound, losses, 0.0).to(kind),
                sound.to(kind),
                (counted & ~sound).to(kind),
            ]
        )
        by_class = self._by_class(values, labels)
        flat = torch.cat([by_class.reshape(-1), stray.sum().to(kind).reshape(1)])
        if self.training:
            self._agree()
            flat = sum_over_ranks(flat, self.process_group)
        return flat[: 2 * k].reshape(2, k), flat[2 * k :]

    def _by_class(self, values: Any, labels: Any) -> Any:
        """Sums over the rows of each class, of values of shape (values, rows)."""
        kind = self.remembered.dtype
        zeros = torch.zeros(len(values), len(self.classes), dtype=kind, device=values.device)
        return zeros.index_add(1, labels, values.to(kind))

    def _agree(self) -> None:
        """In the first step, refuse ranks that train with something else."""
        if not self._agreed and not torch.compiler.is_compiling():
            check_agreement(self._fact, self.process_group)
            self._agreed = True

    def _remember(self, sums: Any, bad: Any) -> tuple[Any, Any]:
        """Weights of rows by class for the risks with this batch, and its number of rows."""
        self.step.add_(1)
        fresh = (bad > 0) & (self.broken == 0)
        self.broken.copy_(torch.where(fresh, self.step, self.broken))
        if self.check and not torch.compiler.is_compiling():
            self._raise_broken()
        total = sums[_COUNT_ROW].sum()
        passes = total / self.n_rows
        self.remembered.mul_(torch.exp(-passes / self.window)).add_(sums)
        risks = self._risks(self.remembered)
        if self.ascent is None:
            self.masses.copy_(self.rule(risks))
        else:
            state = self.rule.ascend(self.state, risks, self.ascent)
            self.masses.copy_(self.rule.masses(state))
            self.state.lerp_(state, mean_share(passes, self.window))
        return self.masses / self.shares, total + bad.sum()

    def _of_batch(self, sums: Any) -> tuple[Any, Any]:
        """Weights of rows by class for the risks of this batch alone, and its number of rows."""
        masses = self.rule(self._risks(sums))
        total = sums[_COUNT_ROW].sum()
        present = sums[_COUNT_ROW] > 0
        # What stands for a missing class is the mean of the others: its mass is theirs.
        prior = torch.where(present, self.prior, 0.0)
        lost = torch.where(present, 0.0, masses).sum()
        masses = masses + lost * prior / prior.sum().clamp_min(torch.finfo(prior.dtype).tiny)
        return torch.where(present, masses * total / sums[_COUNT_ROW].clamp_min(1.0), 0.0), total

    def _risks(self, sums: Any) -> Any:
        """Mean losses of the classes; that of the others, by priors, where there are no rows."""
        known = sums[_COUNT_ROW] > 0
        risks = torch.where(known, sums[_LOSS_ROW] / sums[_COUNT_ROW], 0.0)
        prior = torch.where(known, self.prior, 0.0)
        tiny = torch.finfo(prior.dtype).tiny
        return torch.where(known, risks, (prior * risks).sum() / prior.sum().clamp_min(tiny))

    @property
    def class_risks(self) -> ByClass:
        self._raise_broken()
        sums = to_numpy(self.remembered)
        with np.errstate(invalid="ignore"):
            return ByClass(sums[_LOSS_ROW] / sums[_COUNT_ROW], self.classes)

    @property
    def worst_case_masses(self) -> ByClass:
        self._raise_broken()
        return ByClass(to_numpy(self.masses), self.classes)

    @property
    def worst_case_weights(self) -> ByClass:
        masses = self.worst_case_masses
        return ByClass(weights_of(masses, to_numpy(self.prior)), self.classes)

    @property
    def robust_risk(self) -> float:
        self._raise_broken()
        risks = self._risks(self.remembered)
        return float((self.rule(risks) * risks).sum())

    def _raise_broken(self) -> None:
        """Raise what is recorded, once."""
        steps = self.broken.tolist()
        if not any(steps):
            return
        self.broken.zero_()
        if steps[-1]:
            raise InvalidInputError(
                f"targets must be classes, 0 to {len(self.classes) - 1}, or ignore_index = "
                f"{self.ignore_index}; got another value in step {steps[-1]}."
            )
        first = min(step for step in steps if step)
        name = self.classes.tolist()[steps.index(first)]
        raise InvalidInputError(
            f"The loss of rows of class {name!r} was not a finite number in step {first}: look for "
            "NaN or infinity in the inputs of that step, clip gradients, or lower the step size."
        )

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        """Move with the network, but stay in double precision (in single where there is none)."""

        def moved(tensor: Any) -> Any:
            try:
                result = fn(tensor)
            except TypeError:
                return fn(tensor.float() if tensor.is_floating_point() else tensor)
            return result if result.dtype == tensor.dtype else tensor.to(result.device)

        return super()._apply(moved, recurse)

    def get_extra_state(self) -> Any:
        """What the state belongs to, for ``state_dict``."""
        return as_bytes(self._description)

    def set_extra_state(self, state: Any) -> None:
        """Refuse the state of another loss, for ``load_state_dict``."""
        check_description(state, self._description)

    def extra_repr(self) -> str:
        return f"{self.goal!r}, {len(self.classes)} classes"


def check_columns(logits: Any, n_classes: int) -> None:
    """Refuse logits without a column for each class."""
    if logits.dim() < 2 or logits.shape[1] != n_classes:
        raise ClassMismatchError(
            f"logits must have one column for each of the {n_classes} classes in class_counts, got "
            f"shape {tuple(logits.shape)}."
        )


def check_counts(class_counts: Any, classes: Any = None) -> tuple[Any, Any]:
    """Numbers of rows of each class, all positive, and the names of the classes."""
    if isinstance(class_counts, torch.Tensor):
        class_counts = class_counts.tolist()
    if classes is None:
        many = isinstance(class_counts, dict)
        classes = list(class_counts) if many else range(np.size(class_counts))
    names = np.asarray(classes)
    counts = check_numbers(class_counts, names, name="class_counts")
    good = np.isfinite(counts) & (counts > 0)
    if len(names) < 2:
        raise InvalidParameterError(
            f"class_counts must have a number of rows for at least 2 classes, got {class_counts!r}."
        )
    if not good.all():
        bad = int(np.argmin(good))
        raise InvalidParameterError(
            f"class_counts must be positive for every class, got {counts[bad]:.6g} for class "
            f"{names.tolist()[bad]!r}: a class without rows has no risk. Leave it out of the "
            "network's outputs, or collect rows."
        )
    return counts, names


def counts_text(counts: Vector) -> str:
    """Counts as a text that differs where they do: of very many the first ones and a digest.

    Examples
    --------
    >>> counts_text(np.array([90.0, 10.0])), len(counts_text(np.arange(1e5)))
    ('[90.0, 10.0]', 96)
    """
    shown = listing(counts.tolist())
    if "..." not in shown:
        return f"[{shown}]"
    return f"[{shown}, digest {blake2b(counts.tobytes(), digest_size=8).hexdigest()}]"


def _double(values: Any) -> Any:
    return torch.tensor(np.array(values, dtype=np.float64))
