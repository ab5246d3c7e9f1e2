"""Checks of user input: numbers, labels, predictions, weights of rows."""
