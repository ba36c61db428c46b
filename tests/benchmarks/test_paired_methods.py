"""Methods of a benchmark's results beside one of them."""

import pandas as pd
import pytest
from paired_methods import lines

from pu_bench.run.files import write_results
from pu_bench.run.metrics import METRICS


def cell(method, task, repeat, auc):
    figures = {"accuracy": 0.5, "brier": None, "pi_error": 0.1}
    return {"task": task, "method": method, "repeat": repeat, "auc": auc, **figures}


def test_only_splits_that_both_have_seen_are_compared():
    cells = [
        *(cell("puicl", "a", 0, 0.9), cell("puicl", "a", 1, 0.1), cell("puicl", "b", 0, 0.8)),
        *(cell("empu", "a", 0, 0.6), cell("empu", "b", 0, 0.9), cell("empu", "c", 0, 0.2)),
        cell("vpu", "c", 0, 0.5),
    ]
    found = {line[0]: line[1:] for line in lines(pd.DataFrame(cells), "puicl")}
    assert found["PUICL"] == ["2", "0.6500", "0.500", "–", "0.100", "", "", ""]
    # .3 ahead on one table, .1 behind on the other.
    assert found["EMPU"][:5] == ["2", "0.7500", "0.500", "–", "0.100"]
    assert found["EMPU"][5:] == ["+0.1000 ± 0.2000", "1 of 2", "1"]
    assert "VPU" not in found


def test_sure_differences_are_told_as_such():
    cells = [cell("puicl", f"t{k}", 0, 0.8) for k in range(12)]
    cells += [cell("empu", f"t{k}", 0, 0.7 - k / 100) for k in range(12)]
    cells += [cell("random", f"t{k}", 0, 0.8) for k in range(12)]
    found = {line[0]: line[6:] for line in lines(pd.DataFrame(cells), "puicl")}
    assert found["EMPU"] == ["+0.1550 ± 0.0104", "12 of 12", "< .001"]
    assert found["random"] == ["+0.0000 ± 0.0000", "0 of 12", "1"]


@pytest.mark.parametrize(
    ("arguments", "said"), [(["--reference", "vpu"], "has no cells of vpu"), ([], "puicl")]
)
def test_a_folder_without_the_reference_is_refused(arguments, said, tmp_path, refused):
    blank = dict.fromkeys([*METRICS, "collapsed", "n_labeled", "n_unlabeled", "n_features", "pi"])
    blank |= dict.fromkeys(["seconds", "error", "rows_seen", "reliability"])
    write_results(tmp_path, [blank | cell("empu", "a", 0, 0.5)])
    assert said in refused("paired_methods", tmp_path, *arguments)
