"""What decisions are for, and how it is written down."""

from equipoise.goals.grammar import bind_classes, format_goal, goal_names, goal_words, parse_goal

__all__ = ["bind_classes", "format_goal", "goal_names", "goal_words", "parse_goal"]
