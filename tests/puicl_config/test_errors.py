"""A command tells in one sentence what its user can mend, and hides nothing else."""

import errno

import pytest

from puicl_config import InputError, exit_on_input_error, visible


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (InputError("no table \x1b[2J"), r"error: no table \x1b[2J"),
        (OSError(errno.ENAMETOOLONG, "", "aaa.csv"), "error: file name too long: aaa.csv"),
        (PermissionError(errno.EACCES, "", "out"), "error: permission denied: out"),
        (OSError(errno.ENOSPC, ""), "error: no space left on device"),
    ],
)
def test_what_users_can_mend_is_one_sentence(capsys, error, sentence):
    @exit_on_input_error
    def command():
        raise error

    with pytest.raises(SystemExit) as end:
        command()
    assert end.value.code == 2
    assert capsys.readouterr() == ("", f"{sentence}\n")


def test_of_controls_line_ends_and_tabs_alone_reach_a_terminal():
    assert visible("a\tb\nc é") == "a\tb\nc é"
    assert visible("caf\udce9.csv") == "caf\\udce9.csv"  # a name of bytes that are no UTF-8
    assert visible("\x00\r\x1b\x7f\x85\x9f\xa0") == "\\x00\\x0d\\x1b\\x7f\\x85\\x9f\xa0"


@pytest.mark.parametrize(
    "error", [BrokenPipeError(errno.EPIPE, ""), OSError("of no kind"), ValueError("a mistake")]
)
def test_what_is_no_users_to_mend_stays_what_it_is(error):
    @exit_on_input_error
    def command():
        raise error

    with pytest.raises(type(error)) as raised:
        command()
    assert raised.value is error
