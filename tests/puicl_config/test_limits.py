"""Where what is allowed ends: the last value that is taken and the first that is refused."""

import errno
from pathlib import Path

import pytest
from pydantic import ValidationError

from puicl_config import Config, InputError, find_config, load_config, parse_config

SMALL = {"n_labeled": (4, 20), "eta": (1.0, 2.0)}


def taken(raw) -> Config:
    return parse_config(raw, where="here")


def extended(**extensions):
    return {"prior": {"extensions": {"share": 0.5, **extensions}}}


WIDER = extended(n_features=(7, 8))


@pytest.mark.parametrize(
    ("raw", "refused"),
    [
        ({"train": {"sampler": "fixed_stage", "fixed_stage": 134}}, False),
        ({"train": {"sampler": "fixed_stage", "fixed_stage": 135}}, "plan ends with stage 134"),
        ({"train": {"sampler": "tail_only"}, "prior": {"tail_steps": 1}}, False),
        ({"train": {"phase1": {"peak": 1e-4, "floor": 1e-4, "warmup_steps": 0}}}, False),
        ({"train": {"cuda_graphs": True, "self_distillation": {"weight": 0}}}, False),
        ({"train": {"cuda_graphs": True, "self_distillation": {"weight": 0.1}}}, "plain loss"),
        ({"train": {"cuda_graphs": True, "reveal": "both"}}, "plain loss"),
        (
            {
                "train": {"cuda_graphs": True, "reveal_negatives": {"share": 0.1}},
                "model": {"reveals_negatives": True},
            },
            "train: cuda_graphs computes the plain loss alone: without reveal, reveal_negatives",
        ),
        ({"prior": {"n_labeled": (3, 3)}}, False),  # 1.5 unlabelled rows, of which two are made
        ({"prior": {"n_labeled": (2, 3)}}, "can fall to one unlabelled row"),
        ({"prior": {"eta_first": (0.01, 1.0)}}, "can fall to one unlabelled row"),
        (extended(n_labeled=(2, 3)), "can fall to one unlabelled row"),
        (
            {"prior": {"n_labeled": (2, 3), **extended(n_labeled=(20, 30))["prior"]}},  # the others
            "can fall to one unlabelled row",
        ),
        (extended(eta=(0.01, 1.0)), "can fall to one unlabelled row"),
        (extended(n_features=(2, 3)), False),  # a range extends, without any extension
        (extended(sar=0.5, max_rows=450), False),
        (extended(eta=(1.0, 2.0), max_rows=600), False),
        (extended(eta=(1.0, 2.0), max_rows=599), "is less than the 600 rows"),
        (extended(few_labeled=0.5, max_rows=84, **SMALL), False),
        (extended(few_labeled=0.5, max_rows=83, **SMALL), "max_rows 83 is less than the 84 rows"),
        (extended(sar=0.5, max_rows=83, **SMALL), False),
        (extended(tree_labels=0.33, rule_labels=0.56, cluster_labels=0.11), False),  # but for bits
        ({"prior": {"n_causes": 7, "n_features": (7, 7)}}, False),
        (
            {"prior": {"n_causes": 7, "n_features": (7, 7), **WIDER["prior"]}},
            "n_causes must be 'n_features' or equal both ends",
        ),
        ({"prior": {"n_causes": 7, "noncausal_sources": ("head",)}}, False),
        ({"train": {"phase1": {"peak": 1e-3, "floor": 1e-3, "warmup_steps": 0}}}, False),
        ({"name": "a.b_c-1"}, False),
        ({"name": "../elsewhere"}, "name: string should match"),
        ({"name": ".hidden"}, "name: string should match"),
        ({"name": "a/b"}, "name: string should match"),
        ({"name": "a\n"}, "name: string should match"),
    ],
    ids=str,
)
def test_the_last_that_is_taken_and_the_first_that_is_refused(raw, refused):
    if not refused:
        taken(raw)
        return
    with pytest.raises(InputError) as caught:
        taken(raw)
    assert refused in str(caught.value)


PHASE = {"peak": 1.0, "floor": 0.0, "warmup_steps": 0}
# Of each key the ends of what is taken, each with what lies beyond it.
ENDS = {
    "prior.seed": [(0, -1), (2**63 - 1, 2**63)],
    "prior.tail_steps": [(0, -1)],
    "prior.n_features": [((1, 1), (0, 1)), ((2, 2), (2, 1))],
    "prior.hidden_layers": [((2, 2), (1, 2)), ((2, 2), (3, 2))],
    "prior.eta_first": [((1.0, 1.0), (1.0, 0.9)), ((1.0, 1e9), (0.0, 1.0))],
    "prior.pi_first": [((0.1, 0.1), (0.2, 0.1)), ((0.1, 0.99), (0.1, 1.0))],
    "prior.p_causal_final": [(0, -0.1), (1, 1.1)],
    "prior.sigma_init": [(1e-9, 0), (100, 101)],
    "prior.sigma_noise": [((0.0,), (-0.1,)), ((1e6,), (1.1e6,)), ((1,), (1, 1))],
    "prior.state_clamp": [(1e-9, 0), (1e12, 1.1e12)],
    "prior.value_clip": [(1e-9, 0)],
    "prior.extensions.sar": [(0, -0.1), (1, 1.1)],
    "prior.extensions.border": [((1e-9, 0.1), (0.0, 0.1)), ((0.1, 0.99), (0.1, 1.0))],
    "prior.extensions.noise_share": [((0.0, 0.5), (-0.1, 0.5)), ((0.5, 0.5), (0.0, 0.51))],
    "prior.extensions.sar_strength": [((0.0, 20.0), (-0.1, 20.0)), ((0.0, 0.0), (1.0, 0.0))],
    "prior.extensions.missing_share": [((0.0, 0.9), (-0.1, 0.9)), ((0.0, 0.9), (0.0, 1.0))],
    "prior.extensions.group_size": [((1.0, 1.0), (0.9, 1.0)), ((2.0, 2.0), (2.0, 1.0))],
    "prior.extensions.softness": [((1e-9, 1.0), (0.0, 1.0)), ((1.0, 1e6), (1.0, 1.1e6))],
    "shards.parts_per_stage": [(1, 0)],
    "shards.zstd_level": [(1, 0), (22, 23)],
    "shards.chunk_cells": [(2**10, 2**10 - 1), (2**28, 2**28 + 1)],
    "model.feature_clip": [(1e-9, 0)],
    "model.thinking_rows": [(0, -1)],
    "model.feature_group": [((0,), (-1,)), ((0, 1), (0, 0)), ((0,), ())],
    "train.seed": [(0, -1), (2**63 - 1, 2**63)],
    "train.phase1": [(PHASE, PHASE | {"floor": -0.1}), (PHASE, PHASE | {"warmup_steps": -1})],
    "train.decay_exponent": [(1e-9, 0)],
    "train.weight_decay": [(0, -0.1)],
    "train.reveal_negatives.share": [(0, -0.1), (0.99, 1)],
    "train.reveal_negatives.until": [(1e-9, 0), (1, 1.1)],
    "train.reveal_share": [(1e-9, 0), (0.99, 1)],
    "train.self_distillation.weight": [(0, -0.1), (0.99, 1)],
    "train.threads_per_process": [(1, 0), (4096, 4097)],
    "train.loader_threads": [(0, -1)],
    "train.loader_processes": [(0, -1)],
    **{
        f"train.{name}": [(0, -0.1), (0.99, 1)]
        for name in ("beta1", "beta2", "ema_decay", "muon_momentum")
    },
}


@pytest.mark.parametrize("key", ENDS)
def test_a_value_at_the_end_of_what_is_allowed_is_taken_and_one_beyond_it_is_refused(key):
    def raw(value):
        for step in reversed(key.split(".")):
            value = {step: value}
        return {"model": {"reveals_negatives": True}, **value}

    for last, beyond in ENDS[key]:
        taken(raw(last))
        with pytest.raises(InputError, match=f"^here: {key}"):
            taken(raw(beyond))


def test_a_checked_config_stays_as_it_was_checked():
    config = taken({})
    with pytest.raises(ValidationError, match="frozen"):
        config.train.beta1 = 2.0


def test_a_stage_beyond_the_plan_has_no_steps_and_the_last_one_what_is_left():
    prior = taken({"prior": {"stages": 2, "steps_per_stage": 4, "tail_steps": 5}}).prior
    assert (prior.curriculum_steps, prior.total_steps, prior.total_stages) == (8, 13, 4)
    assert [prior.steps_in_stage(stage) for stage in range(-1, 6)] == [0, 0, 4, 4, 4, 1, 0]


def test_both_revealed_classes_bring_the_token_and_keep_the_rest_of_the_model():
    config = taken({"train": {"reveal": "both"}, "model": {"layers": 2}})
    assert (config.model.reveals_negatives, config.model.layers) == (True, 2)
    assert not taken({"train": {"reveal": "negatives"}}).model.reveals_negatives
    without = {"train": {"reveal": "both"}, "model": {"reveals_negatives": False}}
    assert taken(without).model.reveals_negatives


def test_a_path_elsewhere_is_never_taken_for_a_shipped_config(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for wrong in ("mine/paper.yaml", "mine/paper", tmp_path / "paper.yaml"):
        with pytest.raises(InputError, match=r"no config '.*paper.*': there is no such file$"):
            find_config(wrong)
    for right in ("paper", "paper.yaml", "configs/paper.yaml", "configs/paper"):
        assert find_config(right).name == "paper.yaml"
    (tmp_path / "paper").write_text("name: mine\n")  # what lies here goes before what is shipped
    assert str(find_config("paper")) == "paper"


def test_a_config_that_may_not_be_read_is_told_in_a_sentence(monkeypatch):
    path = find_config("paper")

    def forbidden(self, **_):
        raise PermissionError(errno.EACCES, "Permission denied", str(self))

    monkeypatch.setattr(Path, "read_text", forbidden)
    with pytest.raises(InputError, match=r"paper\.yaml cannot be read: Permission denied$"):
        load_config(path)
