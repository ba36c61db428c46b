"""Networks beside one another: what the figures of a difference say."""

import pandas as pd
from compare_networks import FIGURES, lines


def rows(weights: str, by_table: dict[str, list[float]]) -> list[dict]:
    return [
        {"weights": weights, "table": table, "split": split, **dict.fromkeys(FIGURES, value)}
        for table, values in by_table.items()
        for split, value in enumerate(values)
    ]


def test_a_difference_has_its_error_over_splits_and_over_tables():
    frame = pd.DataFrame(
        rows("a", {"t": [0.5, 0.6], "u": [0.7, 0.8]})
        + rows("b", {"t": [0.5, 0.6], "u": [0.8, 0.9]})
    )
    first, second = lines(frame, {"a": "old", "b": "new"})
    assert first == ["old", *["0.6500"] * 4]
    # Every split says .05, one table 0 and the other .1.
    assert second == ["new", *["0.7000 (+0.0500 ± 0.0000, ± 0.0500)"] * 4]


def test_of_one_split_there_is_no_error():
    frame = pd.DataFrame(rows("a", {"t": [0.5], "u": [0.7]}) + rows("b", {"t": [0.6], "u": [0.8]}))
    assert list(lines(frame, {"a": "old", "b": "new"}))[1][1] == "0.7000 (+0.1000 ± –, ± 0.0000)"
