"""Durations in words, and the line that says how far a run is."""

import errno
import io
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from puicl_config import ProgressReport
from puicl_config import progress as progress_of
from puicl_config.speaking import drop_unheard, heard_or_not, speak


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
        clock[0] += 4
        progress.advance(1)
        assert capsys.readouterr().err == ""  # so soon after a line
        clock[0] += 1
        progress.advance(4)
        assert capsys.readouterr().err == "bench: 65/100 cells (65%), 1.923 cells/s, 18s left\n"
        progress.advance(35)
        assert capsys.readouterr().err.endswith("100/100 cells (100%), 4.615 cells/s, 0s left\n")


def test_before_anything_is_done_no_rate_and_no_time_is_told(monkeypatch, capsys):
    monkeypatch.setattr(progress_of.time, "monotonic", lambda: 100.0)
    with ProgressReport("bench", 0, "cells") as progress:
        progress.advance(0)
    assert progress.rate == 0.0
    assert capsys.readouterr().err == "bench: 0/0 cells (0%), 0 cells/s, ? left\n"


def test_a_terminal_has_a_bar_that_ends_with_the_work(monkeypatch, capsys):
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", terminal)
    threads = set(threading.enumerate())
    with ProgressReport("bench", 10, "cells", done=2) as progress:
        assert "2/10" in terminal.getvalue()
        progress.advance(1)
        progress.advance(4, note="1 failed")
    assert "7/10" in terminal.getvalue()
    assert "cells/s, 1 failed" in terminal.getvalue()
    assert capsys.readouterr().out == ""
    for thread in set(threading.enumerate()) - threads:
        thread.join(5)
        assert not thread.is_alive()


def test_results_reach_their_file_although_a_terminal_has_a_bar(monkeypatch, capsys):
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", terminal)
    with ProgressReport("bench", 10, "cells"):
        print("a result")
    assert capsys.readouterr().out == "a result\n"
    assert "a result" not in terminal.getvalue()


def test_what_is_said_beside_a_bar_stands_above_it(monkeypatch):
    terminal, words = io.StringIO(), io.StringIO()
    terminal.isatty = words.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(sys, "stdout", words)
    with ProgressReport("bench", 10, "cells"):
        print("a word")  # which would else end up within the bar
    assert "a word\n" in terminal.getvalue()
    assert words.getvalue() == ""


def test_work_goes_on_where_a_bars_terminal_is_gone(monkeypatch):
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", terminal)
    with ProgressReport("bench", 10, "cells") as progress:
        stop = progress._bar.stop

        def fail():
            stop()
            raise OSError(errno.EIO, "the terminal is gone")

        progress._bar.stop = fail


def test_what_two_lost_streams_hold_is_dropped(monkeypatch):
    class Full(io.StringIO):
        def flush(self):
            flushed.append(self)
            raise OSError(errno.ENOSPC, "no space left")

    flushed, streams = [], [Full(), Full()]
    monkeypatch.setattr(sys, "stdout", streams[0])
    monkeypatch.setattr(sys, "stderr", streams[1])
    drop_unheard()
    assert flushed == streams


def test_what_is_said_gives_no_orders_and_what_is_wrong_is_not_lost(capsys):
    stream = io.StringIO()
    speak("a \x1b[2J", stream)
    assert stream.getvalue() == "a \\x1b[2J\n"
    with pytest.raises(ValueError, match="a mistake"), heard_or_not(stream):
        raise ValueError("a mistake")
    stream.close()
    speak("nobody hears this", stream)
    speak("nor this", None)
    assert capsys.readouterr() == ("", "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_stream_on_a_full_disk_stays_where_it_was():
    with Path("/dev/full").open("w") as full:
        descriptors = []
        for _ in range(2):
            speak("lost", full)
            with Path(os.devnull).open() as other:
                descriptors.append(other.fileno())
        assert descriptors[0] == descriptors[1]  # nothing stays open
        assert os.fstat(full.fileno()).st_rdev == Path("/dev/full").stat().st_rdev


# Says something on both streams again and again, as a run does, and then that it came to its end.
SPEAKS = """
import sys, time
from pathlib import Path
from puicl_config import ProgressReport
from puicl_config.speaking import drop_unheard, speak

sys.stdin.readline()
PREPARE
with ProgressReport("trainer", 20, "steps", every=0.0) as progress:
    for step in range(20):
        progress.advance()
        speak("trainer: a step", sys.stdout)
drop_unheard()
Path(sys.argv[1]).write_text("through")
"""


@pytest.mark.parametrize("how", ["no reader", "closed", "full disk", "no streams"])
def test_work_goes_on_to_exit_code_0_where_nobody_hears_of_it(how, tmp_path):
    prepare = {
        "closed": "sys.stdout.close(); sys.stderr.close()",
        "no streams": "sys.stdout = sys.stderr = None",
    }
    program = SPEAKS.replace("PREPARE", prepare.get(how, ""))
    full = Path("/dev/full").open("w") if how == "full disk" else subprocess.PIPE  # noqa: SIM115
    end = tmp_path / "end"
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(end)],
        stdin=subprocess.PIPE, stdout=full, stderr=full, text=True,
    )  # fmt: skip
    if full == subprocess.PIPE:
        process.stdout.close()
        process.stderr.close()
    else:
        full.close()
    process.stdin.write("go\n")
    process.stdin.close()
    assert process.wait(60) == 0
    assert end.read_text() == "through"
