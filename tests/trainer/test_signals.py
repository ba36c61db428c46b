"""What the trainer heeds and says: signals, refusals of the system, and a stream that is gone."""

import contextlib
import errno
import io
import os
import signal
import sys

import pytest
import torch

import trainer.checkpoint
import trainer.cli
from puicl_config.workers import STOPS
from trainer.run import say
from trainer.stop import StopRequest, heed_end_of_torchrun
from trainer.world import World

ALONE = World(0, 1, torch.device("cpu"))


ON = "what was saved before, if anything, is whole, and the same command goes on from there"


def refuse(monkeypatch, number):
    def refused(**_):
        raise OSError(number, "whatever", "runs/a")

    monkeypatch.setattr(trainer.cli, "app", refused)


@pytest.mark.parametrize(
    ("number", "advice"),
    [(errno.ENOSPC, ON), (errno.EFBIG, ON), (errno.ELOOP, "give another path")],
)
def test_what_the_system_refuses_is_one_sentence(monkeypatch, capsys, number, advice):
    refuse(monkeypatch, number)
    with pytest.raises(SystemExit) as stop:
        trainer.cli.main()
    assert stop.value.code == 2
    reason = os.strerror(number).lower()
    assert capsys.readouterr().err == f"error: {reason}: runs/a; {advice}\n"


def test_what_is_a_mistake_of_ours_is_no_sentence(monkeypatch):
    refuse(monkeypatch, errno.EBADF)
    with pytest.raises(OSError, match="whatever"):
        trainer.cli.main()


@contextlib.contextmanager
def a_closed_terminal_means(handler):
    """Whatever the tests themselves run under: `nohup` ignores it for them, too."""
    before = signal.signal(signal.SIGHUP, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, before)


def test_signals_mean_what_they_meant_before_a_run():
    with a_closed_terminal_means(signal.SIG_DFL):
        before = [signal.getsignal(number) for number in STOPS]
        for name in ("SIGTERM", "SIGINT", "SIGHUP", "SIGUSR1"):
            with StopRequest(None, breaks_off=True) as asked:
                assert not asked()
                signal.raise_signal(getattr(signal, name))
                assert asked()
                assert asked.at_once()
        assert [signal.getsignal(number) for number in STOPS] == before


def test_only_a_signal_breaks_a_step_off_and_only_where_it_may():
    with StopRequest(1e-9, breaks_off=True) as asked:
        assert asked()
        assert not asked.at_once()
    with StopRequest(None) as asked:
        signal.raise_signal(signal.SIGTERM)
        assert asked()
        assert not asked.at_once()


def test_under_nohup_a_closed_terminal_stops_nothing():
    with a_closed_terminal_means(signal.SIG_IGN), StopRequest(None) as asked:
        signal.raise_signal(signal.SIGHUP)
        assert not asked()


def test_only_what_torchrun_started_ends_with_what_started_it(monkeypatch):
    watches = []

    class Thread:
        def __init__(self, target, daemon):
            assert daemon  # it ends with the process

        def start(self):
            watches.append(self)

    monkeypatch.setattr("trainer.stop.threading.Thread", Thread)
    monkeypatch.delenv("TORCHELASTIC_RUN_ID", raising=False)
    heed_end_of_torchrun()
    assert len(watches) == 0
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "none")
    heed_end_of_torchrun()
    assert len(watches) == 1


def test_the_end_of_what_started_it_stops_a_run_as_a_signal_does(monkeypatch):
    deeds = []

    class Thread:
        def __init__(self, target, daemon):
            self.start = target

    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "none")
    monkeypatch.setattr("trainer.stop.threading.Thread", Thread)
    monkeypatch.setattr("trainer.stop.launcher", lambda: 7)
    monkeypatch.setattr("trainer.stop.await_end_of", deeds.append)
    monkeypatch.setattr("trainer.stop.os.kill", lambda *signalled: deeds.append(signalled))
    heed_end_of_torchrun()
    assert deeds == [7, (os.getpid(), signal.SIGTERM)]


def test_what_the_trainer_says_may_be_lost(monkeypatch):
    tried = []

    class Gone(io.StringIO):
        def write(self, text):
            tried.append(text)
            raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    monkeypatch.setattr("sys.stdout", Gone())
    say(ALONE, "a step")
    sys.stdout.close()
    say(ALONE, "another")
    assert tried == ["trainer: a step", "trainer: another"]
