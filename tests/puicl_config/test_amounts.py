"""Times, sizes and counts in words."""

from puicl_config import counted, duration, volume


def test_durations_are_written_in_two_units():
    told = [duration(s) for s in (0.4, 59.4, 59.6, 185, 3599.6, 7620, 90_000)]
    assert told == ["0s", "59s", "1m00s", "3m05s", "1h00m", "2h07m", "25h00m"]


def test_bytes_are_written_to_three_digits_in_the_unit_that_fits():
    told = [volume(n) for n in (0, 999, 999.6, 1000, 262_144, 999_960, 5.25e6, 3.7589e10, 4.2e13)]
    assert told[:5] == ["0 bytes", "999 bytes", "1 kB", "1 kB", "262 kB"]
    assert told[5:] == ["1 MB", "5.25 MB", "37.6 GB", "42,000 GB"]
    assert volume(1) == "1 byte"


def test_one_thing_is_in_the_singular():
    told = [counted(n, "part") for n in (0, 1, 2, 14_400)]
    assert told == ["0 parts", "1 part", "2 parts", "14,400 parts"]
    assert [counted(n, "microbatch") for n in (1, 2)] == ["1 microbatch", "2 microbatches"]
