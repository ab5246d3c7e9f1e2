"""Checks of what users give, one of each kind: numbers, labels, predictions, weights of rows."""
