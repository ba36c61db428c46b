"""What is refused is told by the option's or column's name, what was found, and what to give."""

import re

import numpy as np
import pandas as pd
import pytest
from little_table import S, table

from puicl_config import InputError
from puicl_model import PUICLClassifier, TablePreprocessor
from puicl_model.files.formats import check_target
from puicl_model.files.places import claim


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ("table.csv", "a list of rows), not str"),
        (None, "a list of rows), not NoneType"),
        ({"a": [1, 2]}, "not dict: give pandas.DataFrame(X)"),
        ([{"a": 1}, {"a": 2}], "not a list of dicts: give pandas.DataFrame(X)"),
        (
            np.array([(1.0, 2.0), (3.0, 4.0)], dtype=[("a", "f8"), ("b", "f8")]),
            "not a structured array: give pandas.DataFrame(X)",
        ),
        (iter([[1], [2]]), "not list_iterator"),
    ],
)
def test_what_is_no_table_is_told_by_its_kind_alone(given, sentence):
    with pytest.raises(ValueError, match=f"^X must be a table .*{re.escape(sentence)}$"):
        TablePreprocessor().fit(given)


def test_frames_of_other_libraries_are_refused_rather_than_read_without_their_names(fitted):
    class Frame:  # as Dask's and Modin's: numpy makes an array of cells of it
        __module__ = "dask.dataframe"
        columns, dtypes = ["a", "b", "c"], [float] * 3

        def __array__(self, dtype=None, copy=None):
            return np.asarray(table(), dtype=dtype)

    for asked in (lambda: fitted.fit(Frame(), S), lambda: fitted.predict_proba(Frame())):
        with pytest.raises(ValueError, match=re.escape("a frame of dask, whose names and types")):
            asked()


@pytest.mark.parametrize(
    ("parameter", "value", "sentence"),
    [
        ("verbose", "a", "verbose must be True, False or None, not 'a'"),
        ("random_state", -1, "random_state must be a whole number from 0 to 2**32 - 1"),
        ("random_state", "a", "a RandomState or None, not 'a'"),
        ("categorical_features", [3], "give names that are text, or positions from 0 to 2"),
    ],
)
def test_parameters_are_named(weights, parameter, value, sentence):
    with pytest.raises(ValueError, match=re.escape(sentence)):
        PUICLClassifier(weights, **{parameter: value}).fit(table(), S)


@pytest.mark.parametrize("spelling", ["({})", "-{} kg"])
def test_numbers_below_nothing_in_other_spellings_are_told(spelling):
    n = 60
    cells = [spelling.format(i) if i % 2 else str(i) for i in range(n)]
    x = pd.DataFrame({"a": cells, "b": np.arange(n) ** 2})
    with pytest.warns(UserWarning, match="a .text that looks like numbers or dates"):
        TablePreprocessor().fit(x)


def test_where_nothing_can_be_written_is_told_before_the_work(tmp_path, monkeypatch):
    def full(*_, **__):
        raise PermissionError(13, "Permission denied")

    check_target(str(tmp_path / "out.csv"), "-")
    assert not list(tmp_path.iterdir())
    monkeypatch.setattr("tempfile.TemporaryFile", full)
    with pytest.raises(InputError, match=r"--report .*p.html cannot be written: Permission denied"):
        check_target(str(tmp_path / "p.html"), "-", "--report")
    (tmp_path / "there").write_text("")
    with pytest.raises(InputError, match=r"--out .*x cannot be written: Not a directory; give"):
        claim(tmp_path / "there" / "x", {}, [])
