"""What the command advises is in its own words, not in those of Python's classifier."""

import numpy as np
import pandas as pd
import pytest

N = 60


def table(**columns) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    numbers = {"a": rng.normal(size=N), "b": rng.normal(size=N)}
    return pd.DataFrame({**numbers, **columns, "s": (np.arange(N) < 15).astype(int)})


def told(predict, tmp_path, columns: dict) -> str:
    table(**columns).to_csv(tmp_path / "t.csv", index=False)
    options = {"label-column": "s", "positive-label": "1"}
    code, _, err = predict(data="t.csv", out="scores.csv", **options)
    assert code == 0, err
    assert "preprocessing=" not in err
    return err


def test_columns_that_name_rows_may_be_written_beside_the_scores(predict, tmp_path):
    err = told(predict, tmp_path, {"number": np.arange(N)})
    assert "left out: number (row number)" in err
    assert "(--id-column writes one beside the scores)" in err
    err = told(predict, tmp_path, {"patient_id": np.random.default_rng(1).permutation(9**6)[:N]})
    assert "taken for numbers: patient_id" in err
    assert "or give one as --id-column" in err


def test_codes_with_zeros_in_front_may_be_given_as_categories(predict, tmp_path):
    pytest.importorskip("pyarrow")
    codes = [f"{k * 37 % 20:05}" for k in range(N)]
    table(zip=codes).to_parquet(tmp_path / "t.parquet")  # a CSV file's are read without the zeros
    options = {"label-column": "s", "positive-label": "1"}
    code, _, err = predict(data="t.parquet", out="scores.csv", **options)
    assert code == 0, err
    assert "zip (such as 00000); if these are codes, give each as --categorical-column" in err


def test_rows_that_may_be_known_negatives_are_told_with_their_column(predict, tmp_path):
    known = table().assign(state=["yes"] * 15 + ["no"] * 15 + [""] * 30).drop(columns="s")
    known.to_csv(tmp_path / "t.csv", index=False)
    code, _, err = predict(data="t.csv", out="scores.csv", **{"positive-label": "yes"})
    assert code == 0, err
    assert err.startswith("warning: column state holds 'no' in some rows and nothing in others: ")


def test_numbers_in_another_spelling_have_options(predict, tmp_path):
    err = told(predict, tmp_path, {"dose": [f"{k}{',.'[k % 2]}5" for k in range(N)]})
    assert "or give --decimal (and --separator for CSV) as in the file" in err
