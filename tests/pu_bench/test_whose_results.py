"""Whose results a folder holds: of which network, and on which rows."""

import json

import numpy as np
import pytest

from pu_bench.run import make_method
from pu_bench.run.cells import rows_digest
from pu_bench.run.files import CELLS
from pu_bench.run.networks import _inference, give_way, network_facts, other_networks
from pu_bench.run.store import CellLog
from puicl_config import InputError
from puicl_model import PUICLClassifier, TrainedRange

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


def test_weights_are_named_and_others_refused(
    bench, small_weights, nothing_shipped, tmp_path, little_tables
):
    common = ["--data", little_tables, "--tasks", "easy", "--methods", "puicl", "--repeats", 1]
    common += ["--jobs", 1, "--out", tmp_path / "out"]
    code, _, err = bench(*common)
    assert code == 2
    assert "method puicl: no weights named 'default' come with this package" in err
    assert bench(*common, "--model", small_weights)[0] == 0
    other = tmp_path / "model.safetensors"
    other.write_bytes(small_weights.read_bytes())
    other.with_suffix(".json").write_bytes(small_weights.with_suffix(".json").read_bytes())
    assert bench(*common, "--model", other)[0] == 0  # the same weights elsewhere
    run = json.loads((tmp_path / "out" / "run.json").read_text())
    run["weights"]["puicl"] = "0" * 64
    (tmp_path / "out" / "run.json").write_text(json.dumps(run))
    code, _, err = bench(*common, "--model", other)
    assert code == 2
    assert "with other weights" in err
    run["methods"]["empu"] = run["methods"]["puicl"]
    (tmp_path / "out" / "run.json").write_text(json.dumps(run))
    cells = tmp_path / "out" / "cells.jsonl"
    wrong = json.loads(cells.read_text().splitlines()[0]) | {"auc": 0.123}
    cells.write_text(json.dumps(wrong) + "\n" + json.dumps(wrong | {"method": "empu"}) + "\n")
    assert bench(*common, "--model", other, "--new-weights")[0] == 0
    kept = [json.loads(line) for line in cells.read_text().splitlines()]
    assert [r["auc"] for r in kept if r["method"] == "empu"] == [0.123]
    assert [r["auc"] for r in kept if r["method"] == "puicl"] != [0.123]


def test_results_are_anothers_by_what_is_read_at_once_and_not_by_an_interval(
    small_weights, tmp_path, monkeypatch
):
    def inference(**changed):
        other = tmp_path / "other.safetensors"
        other.write_bytes(small_weights.read_bytes())
        card = json.loads(small_weights.with_suffix(".json").read_text()) | changed
        other.with_suffix(".json").write_text(json.dumps(card))
        return network_facts([make_method("puicl", other)])["inference"]["puicl"]

    before = inference()
    assert inference(class_prior_interval={"quantile": 2.0}) == before
    model = json.loads(small_weights.with_suffix(".json").read_text())["model"]
    assert inference(model={**model, "norm": "another"}) != before
    assert inference(trained_range={"n_features": 100}) == before  # which is the default
    assert inference(trained_range={"n_features": 7}) != before
    monkeypatch.setattr(TrainedRange, "from_card", lambda card: TrainedRange(n_features=20))
    assert inference() != before


def test_results_of_several_passes_are_anothers_than_when_no_column_was_turned(small_weights):
    def turned(name, **parameters):
        method = make_method(name, small_weights)
        method.parameters = {**method.parameters, **parameters}
        return _inference(method, small_weights).get("columns_of_two_values")

    assert turned("puicl") == turned("puicl", n_estimators=2) == "turned"
    assert turned("puicl_single") is None
    assert turned("puicl", n_estimators=2, scalings=("quantile", "principal")) is None


def test_results_are_anothers_where_passes_are_mirrored(small_weights, tmp_path):
    shown = tmp_path / "shown.safetensors"
    card = json.loads(small_weights.with_suffix(".json").read_text())
    card["config"] = {"prior": {"extensions": {"mirrored": 0.3}}}
    shown.with_suffix(".json").write_text(json.dumps(card))
    for name, more in (
        ("puicl", {"graded_tables": "every other pass mirrored"}),
        ("puicl_single", {}),
    ):
        method = make_method(name, small_weights)
        assert _inference(method, shown) == {**_inference(method, small_weights), **more}


def test_the_scalings_of_tables_of_levels_alone_make_results_anothers(small_weights, tmp_path):
    grouped = tmp_path / "grouped.safetensors"
    card = json.loads(small_weights.with_suffix(".json").read_text())
    card["model"]["feature_group"] = [0, 1]
    grouped.with_suffix(".json").write_text(json.dumps(card))

    def inference(weights, **parameters):
        method = make_method("puicl", small_weights)
        method.parameters = {**method.parameters, **parameters}
        return _inference(method, weights)

    in_turn = ("quantile", "principal", "rotated_quantile", "standard")
    listed = inference(grouped, scalings=in_turn)
    assert inference(grouped) == {**listed, "scalings_of_levels_alone": ("quantile",)}
    one = inference(grouped, n_estimators=1)  # no pass that could differ
    assert "scalings_of_levels_alone" not in one
    assert one["parameters"]["scalings"] == in_turn
    # A network that sees no order of columns reads all tables as it did before.
    three_and_one = ("quantile", "quantile", "quantile", "principal")
    assert inference(small_weights) == inference(small_weights, scalings=three_and_one)


@pytest.mark.parametrize("name", ["n_estimators", "scalings", "columns", "blend", "preprocessing"])
def test_results_are_anothers_by_every_parameter_that_moves_a_score(
    name, small_weights, monkeypatch
):
    def inference(**other):
        given = PUICLClassifier().get_params()
        monkeypatch.setattr(PUICLClassifier, "get_params", lambda self: {**given, **other})
        return _inference(make_method("puicl", small_weights), small_weights)

    other = {"n_estimators": 3, "scalings": ("standard",)}.get(name, "another")
    before, verbose = inference(), inference(verbose="another")
    assert inference(**{name: other}) != before == verbose
