"""Progress: one line that moves on a terminal, two lines at the end, nothing when not asked."""

import io
import os

import pytest

from equipoise.solvers import Progress, Status
from equipoise.solvers import base as module
from equipoise.solvers.base import HistoryRecord

RECORDS = [HistoryRecord(i, 2 * i, 1 / i, 10.0**-i, 0.1 * i) for i in (1, 2, 3)]


class Terminal(io.StringIO):
    def isatty(self):
        return True


def watched(verbose, stream):
    progress = Progress(verbose, stream)
    for record in RECORDS:
        progress.show(record, 1e-6)
    progress.end(RECORDS[-1], 1e-6, Status.CONVERGED.value)
    return stream.getvalue()


@pytest.mark.parametrize("stream", [io.StringIO, Terminal])
def test_silence_is_the_default(stream):
    assert watched(0, stream()) == ""


def test_a_terminal_shows_one_line_that_moves():
    text = watched(1, Terminal())
    assert text.count("\n") == 2 and text.endswith(f"\n{Status.CONVERGED.value}\n")
    start, *moves = text.split("\n")[0].split("\r")
    assert start == "" and len(moves) == len(RECORDS) + 1
    for record, move in zip([*RECORDS, RECORDS[-1]], moves, strict=True):
        assert f"iteration {record.iteration}, {record.evaluations} evaluations" in move
        assert f"{record.objective:.6g}" in move and f"{record.gap:.1e}" in move
    assert len({len(move) for move in moves}) == 1  # each covers the last


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_no_line_is_wide_enough_to_scroll(monkeypatch, columns):
    monkeypatch.setattr(module, "get_terminal_size", lambda: os.terminal_size((columns, 24)))
    stream = Terminal()
    progress = Progress(1, stream)
    progress.show(HistoryRecord(100_000, 1_234_567, 0.123456789, 1.234e-10, 1e5), 1.5e-11)
    assert len(stream.getvalue()) == columns  # the return and one less


def test_a_file_gets_the_end_alone():
    line, sentence, rest = watched(1, io.StringIO()).split("\n")
    assert "\r" not in line and line.startswith("iteration 3, 6 evaluations")
    assert sentence == Status.CONVERGED.value and rest == ""


def test_messages_go_beside_the_output(capsys):
    Progress(1).end(RECORDS[0], 1e-6, "Done.")
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.endswith("Done.\n")


def test_the_clock_runs_forward():
    progress = Progress()
    assert 0 <= progress.seconds() <= progress.seconds()
