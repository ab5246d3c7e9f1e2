"""Processes that tests interrupt."""

import signal


def heed_interrupts():
    """A job in the background is started with interrupts ignored, and so are its children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
