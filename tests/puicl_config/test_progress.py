"""Durations in words, and the line that says how far a run is."""

import subprocess
import sys
from pathlib import Path

import pytest

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
