"""The model card's generated blocks."""

import json
from pathlib import Path

import pytest

from pu_bench.report.card import sweeps, with_blocks
from pu_bench.run.files import METRICS, SWEEP_RESULTS, write_results
from puicl_config import Config, InputError
from puicl_model import shipped_weights

ROOT = Path(__file__).resolve().parents[2]
MARKED = "".join(
    f"# {name}\n<!-- {name}: generated -->\nold\n<!-- /{name} -->\n"
    for name in ("origin of default", "origin of paper", "benchmark", "sweeps")
)


@pytest.fixture
def origin_told(shipped):
    """The shipped weights' cards with what `puicl weights export` adds."""
    commits = {"default": "c" * 40 + "-dirty", "paper": None}
    for name, steps in (("default", 1234), ("paper", 5678)):
        path = shipped / f"{name}.json"
        card = json.loads(path.read_text())
        config = Config().model_dump(mode="json")
        card |= {"model": config["model"], "config": config, "steps": steps, "training_seconds": 61}
        card |= {"lineage": [{"step": 55}], "git_commit": commits[name]}
        card |= dict.fromkeys(("run_digest", "plan_digest", "data"), "d" * 64)
        here = {"gpu": None, "cpu": "a processor", "torch": "2.13.0"}
        card["environments"] = [{**here, "cpu": "an older one"}, here]
        path.write_text(json.dumps(card))


@pytest.mark.usefixtures("origin_told")
def test_blocks_tell_origin_and_say_what_is_not_measured(tmp_path):
    text = with_blocks(MARKED, tmp_path)
    assert "old" not in text
    assert "1,234 steps of 48 tasks in 1m01s, on a processor, torch 2.13.0" in text
    assert "5,678 steps of 48 tasks" in text[text.index("# origin of paper") :]
    assert text.count("| runs before it | 55 steps |") == 2
    assert f"| code | commit `{'c' * 12}`, with changes |" in text
    assert "| code | an installed package, no checkout |" in text
    assert text.count("Not measured for these weights yet.") == 2
    assert with_blocks(text, tmp_path) == text
    with pytest.raises(InputError, match="lacks the markers of its block origin of default"):
        with_blocks("# Card\n", tmp_path)


@pytest.mark.usefixtures("origin_told")
def test_weights_between_two_ends_are_told_as_such(shipped, tmp_path):
    for name, back_to in (("default", {"back_to": "e" * 64}), ("paper", {})):
        path = shipped / f"{name}.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"start_share": 0.25} | back_to))
    default, paper = with_blocks(MARKED, tmp_path).split("# origin of paper")
    assert f"| weights | 25% those of its ancestor `{'e' * 12}`, 75% those at its end |" in default
    assert "| weights | 25% those it began from, 75% those at its end |" in paper


@pytest.mark.usefixtures("origin_told")
def test_blocks_hold_the_means_of_results_and_sweeps(tmp_path):
    records = []
    for name, level in (("puicl", 0.8), ("puicl_single", 0.7), ("logistic", 0.6)):
        record = {"task": "wdbc", "method": name, "repeat": 0, **dict.fromkeys(METRICS, level)}
        record |= {"seconds": 0.5, "error": None, "collapsed": False, "n_labeled": 10}
        record |= {"n_unlabeled": 20, "n_features": 3, "pi": 0.5, "rows_seen": "0"}
        records.append(record | {"reliability": [[9, 20, 19.0, 10]]})
        records.append(records[-1] | {"task": "monk1", "auc": level + 0.1})
    write_results(tmp_path, records)
    methods = {record["method"]: {"title": record["method"], "sees": []} for record in records}
    run = {"protocol": 2, "collection": "paper20", "methods": methods, "weights": {}}
    run["tables"] = {"wdbc": {"title": "WDBC"}, "monk1": {"title": "MONK-1"}}
    (tmp_path / "run.json").write_text(json.dumps(run))
    head = "sweep,value,pool,kind,method,auc,accuracy,pi_error,error\n"
    rows = ["pi,0.5,a,real,puicl,0.9,0.8,0.1,", "pi,0.5,b,real,puicl,0.7,0.6,0.3,"]
    rows.append("pi,0.5,a,real,logistic,0.1,0.1,0.1,")
    (tmp_path / SWEEP_RESULTS).write_text(head + "\n".join(rows) + "\n")
    text = with_blocks(MARKED, tmp_path)
    assert "| puicl_single | 0.750 | 0.700 | 0.700 |" in text
    assert "¹ Without MONK-1, whose classes are rules" in text
    assert "The other one says more of tables like yours." in text
    assert "logistic" not in text
    assert "| 0.5 | 2 real | 0.800 | 0.700 | 0.200 |" in text


def test_the_committed_card_holds_what_the_script_writes(monkeypatch):
    monkeypatch.setattr("puicl_model.weights._SHIPPED", ROOT / "puicl_model" / "weights")
    if "default" not in shipped_weights():
        pytest.skip("no default weights ship")
    pytest.importorskip("pandas", minversion="3", reason="older means differ in the last digit")
    text = (ROOT / "docs" / "model_card.md").read_text(encoding="utf-8")
    assert with_blocks(text, ROOT / "results" / "published") == text


def test_a_sweeps_mean_weighs_pools_alike_whatever_their_repeats(tmp_path):
    rows = ["pi,0.5,a,real,puicl,0.9,0.8,0.1,"] * 3 + ["pi,0.5,b,real,puicl,0.7,0.6,0.3,"]
    head = "sweep,value,pool,kind,method,auc,accuracy,pi_error,error"
    (tmp_path / "sweeps.csv").write_text("\n".join([head, *rows]) + "\n")
    assert "| 0.5 | 2 real | 0.800 | 0.700 | 0.200 |" in sweeps(tmp_path)


def test_a_failed_cell_of_a_sweep_ranks_by_chance(tmp_path):
    rows = ["pi,0.5,a,real,puicl,0.9,0.8,0.1,", "pi,0.5,b,real,puicl,,,,no luck"]
    head = "sweep,value,pool,kind,method,auc,accuracy,pi_error,error"
    (tmp_path / "sweeps.csv").write_text("\n".join([head, *rows]) + "\n")
    assert "| 0.5 | 2 real | 0.700 | 0.800 | 0.100 |" in sweeps(tmp_path)


def test_sweeps_of_other_methods_tell_nothing_of_the_weights(tmp_path):
    head = "sweep,value,pool,kind,method,auc,accuracy,pi_error,error"
    (tmp_path / "sweeps.csv").write_text(f"{head}\npi,0.5,a,real,logistic,0.9,0.8,0.1,\n")
    assert sweeps(tmp_path) == "Not measured for these weights yet."
