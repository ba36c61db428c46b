"""Durations in words, and the line that says how far a run is."""

from puicl_config import ProgressReport, duration
from puicl_config import progress as progress_of


def test_durations_are_written_in_two_units():
    told = [duration(s) for s in (0.4, 59.4, 59.6, 185, 3599.6, 7620, 90_000)]
    assert told == ["0s", "59s", "1m00s", "3m05s", "1h00m", "2h07m", "25h00m"]


def test_the_rate_is_of_this_start_and_the_time_left_of_what_is_left(monkeypatch, capsys):
    clock = [100.0]
    monkeypatch.setattr(progress_of.time, "monotonic", lambda: clock[0])
    with ProgressReport("bench", 100, "cells", done=40, every=5.0) as progress:
        clock[0] += 4
        progress.advance(10)
        assert progress.rate == 2.5
        assert capsys.readouterr().err == ""
        clock[0] += 4
        progress.advance(10, note="1 failed")
        assert capsys.readouterr().err == (
            "bench: 60/100 cells (60%), 2.5 cells/s, 1 failed, 16s left\n"
        )
        progress.advance(40)
        assert capsys.readouterr().err.endswith("100/100 cells (100%), 7.5 cells/s, 0s left\n")
