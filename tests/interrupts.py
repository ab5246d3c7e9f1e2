"""Processes that tests interrupt."""

import signal


def heed_interrupts():
    """A job in the background is started with signals ignored, and so are its children."""
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
