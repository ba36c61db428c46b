"""Whose results a folder holds: of which network, and on which rows."""

import numpy as np
import pytest

from pu_bench.run.cells import rows_digest
from pu_bench.run.files import CELLS
from pu_bench.run.networks import give_way, other_networks
from pu_bench.run.store import CellLog
from puicl_config import InputError

BEFORE = {
    "weights": {"puicl": "w", "puicl_single": "w"},
    "inference": {"puicl": "i", "puicl_single": "j"},
}


def now(weights="w", inference="i"):
    return {"weights": {"puicl": weights}, "inference": {"puicl": inference}}


@pytest.mark.parametrize(
    ("before", "here", "others"),
    [
        (BEFORE, now(), {}),
        (BEFORE, now(weights="v"), {"puicl": "weights"}),
        (BEFORE, now(inference="h"), {"puicl": "inference"}),
        ({"weights": BEFORE["weights"]}, now(), {"puicl": "inference"}),  # nobody knows
        ({}, now(), {}),
    ],
)
def test_results_are_anothers_by_weights_or_by_the_way_they_were_used(before, here, others):
    assert other_networks(before, here) == others


def test_networks_of_methods_that_are_not_run_again_stay_named(tmp_path):
    log = CellLog(tmp_path / CELLS)
    cells = [{"task": "t", "method": name, "repeat": 0} for name in ("puicl", "puicl_single")]
    log.rewrite(cells)
    assert give_way(tmp_path, log, BEFORE, now(), False) == BEFORE
    with pytest.raises(InputError, match="results of puicl with other card or parameters"):
        give_way(tmp_path, log, BEFORE, now(inference="h"), False)
    said = give_way(tmp_path, log, BEFORE, now(inference="h"), True)
    assert said["inference"] == {"puicl": "h", "puicl_single": "j"}
    assert list(log.records(lambda record: record["method"])) == ["puicl_single"]


def test_rows_are_others_by_any_row_by_their_order_and_by_who_is_labelled():
    P, U = np.arange(6.0).reshape(3, 2), np.arange(6.0, 14.0).reshape(4, 2)
    told = {
        rows_digest(*rows)
        for rows in ((P, U), (P + 1, U), (P, U + 1), (P[::-1], U), (P, U[::-1]),
                     (P[:2], np.concatenate([P[2:], U])))
    }  # fmt: skip
    assert len(told) == 6
    assert rows_digest(P.copy(), np.asfortranarray(U)) == rows_digest(P, U)
