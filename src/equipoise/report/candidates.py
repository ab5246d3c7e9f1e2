"""What is compared: models with default decisions, and with decisions tuned for goals."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from equipoise.exceptions import InvalidParameterError
from equipoise.goals import Goal, MetricGoal, SetGoal, as_goal, format_goal
from equipoise.sets import WORDS
from equipoise.tables import MODEL_KINDS, learner_for
from equipoise.text import share_text

PLAIN, BALANCED, WORST = "plain", "balanced_accuracy", "worst_class"
# Goals that the first three cards serve, and the card of each.
CARD_OF_GOAL = {"standard": 0, "balanced": 1, BALANCED: 1, WORST: 2}
_GOALS = {BALANCED: "balanced accuracy", WORST: "the worst class", "f1_macro": "macro F1"}
_MODELS = {"linear": "linear model", "forest": "random forest", "boosting": "gradient boosting"}


@dataclass(frozen=True, eq=False)
class Candidate:
    """A model, and the goal that its decisions are tuned for: None for default predictions."""

    model: str
    tuned_for: str = PLAIN
    goal: Goal | None = None

    @property
    def label(self) -> str:
        """The name of the candidate in tables."""
        return f"{self.model}, {self.tuned_for}"


def goal_text(goal: Goal) -> str:
    """A goal as the command line and Python take it: a word where there is one."""
    recipe: Any = goal.uncertainty if isinstance(goal, SetGoal) else goal
    recipe = recipe.metric if isinstance(recipe, MetricGoal) else recipe
    text = format_goal(recipe)
    return {format_goal(each): word for word, each in WORDS.items()}.get(text, text)


def goal_name(text: str) -> str:
    """A goal in plain words."""
    return _GOALS.get(text, text)


def model_name(name: str) -> str:
    """A model in plain words."""
    return _MODELS.get(name, name)


def value_text(value: float, is_share: bool) -> str:
    """The value of a goal, rounded as everywhere on the page."""
    return share_text(value) if is_share else f"{value:.3g}"


def named_goals(goals: Any) -> dict[str, Goal]:
    """The user's goals by name."""
    if goals is None:
        return {}
    if not isinstance(goals, Mapping):
        several = goals if isinstance(goals, list | tuple) else [goals]
        goals = {goal_text(as_goal(goal)): goal for goal in several}
    if not goals:
        raise InvalidParameterError("goals must be a goal, or at least one by name, got none.")
    named = {str(name): as_goal(goal) for name, goal in goals.items()}
    for name, goal in named.items():
        if name == PLAIN or (name in CARD_OF_GOAL and goal_text(goal) not in CARD_OF_GOAL):
            raise InvalidParameterError(
                f"goals must have names of their own, got {name!r}, which the report uses for "
                "something else: give the goal another name."
            )
        if goal.confidence is not None:
            raise InvalidParameterError(
                f"goals must have no confidence, got {name}: a confidence is about one model, and "
                "models are compared. Leave it out."
            )
        if goal.abstain:
            raise InvalidParameterError(
                f"goals must give every row a class, got {name} with abstain=True: candidates are "
                "compared by their errors on all rows. Leave it out."
            )
    return named


def candidates_for(models: Mapping[str, Any], goals: Mapping[str, Goal]) -> tuple[Candidate, ...]:
    """Every model plain, and tuned for every goal."""
    tuned = {BALANCED: as_goal(BALANCED), WORST: as_goal(WORST)}
    tuned |= {name: goal for name, goal in goals.items() if goal_text(goal) not in CARD_OF_GOAL}
    plain = [Candidate(model) for model in models]
    return (*plain, *(Candidate(m, name, goal) for name, goal in tuned.items() for m in models))


def named_learners(models: Any, columns: Any, seed: int) -> tuple[dict[str, Any], list[str]]:
    """Classifiers by name, not fitted, and which of them are ours."""
    if isinstance(models, Mapping):
        for name, each in models.items():
            if not hasattr(each, "fit") or isinstance(each, type):
                raise InvalidParameterError(
                    f"models must hold classifiers by name, got {each!r} as {name!r}."
                )
            if not hasattr(each, "predict_proba") and not hasattr(each, "decision_function"):
                raise InvalidParameterError(
                    f"models must have predict_proba or decision_function, which {name!r} has not: "
                    "wrap it in scikit-learn's CalibratedClassifierCV."
                )
        if not models:
            raise InvalidParameterError("models must hold at least one classifier, got none.")
        return {str(name): each for name, each in models.items()}, []
    wanted = MODEL_KINDS if models is None else (models,) if isinstance(models, str) else models
    kinds = [kind for kind in MODEL_KINDS if kind in wanted]
    if not kinds or any(kind not in MODEL_KINDS for kind in wanted):
        names = ", ".join(map(repr, MODEL_KINDS))
        raise InvalidParameterError(
            f"models must be some of {names}, or a dict of classifiers by name, got {models!r}."
        )
    made = partial(learner_for, columns, random_state=seed)
    return {kind: made(kind) for kind in kinds}, kinds
