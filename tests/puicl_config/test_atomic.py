"""Writing a file whole, and what is said where it cannot be."""

import pytest

from puicl_config import InputError, write_atomically


def test_a_file_is_replaced_and_nothing_is_left_beside_it(tmp_path):
    path = tmp_path / "a.txt"
    for content in (b"one", b"another"):
        write_atomically(path, content)
        assert path.read_bytes() == content
    assert list(tmp_path.iterdir()) == [path]


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(InputError, match=r"there is no folder .*/nowhere to write a\.txt to"):
        write_atomically(tmp_path / "nowhere" / "a.txt", b"")
