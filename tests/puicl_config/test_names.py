"""Every key that can change a byte of the data is in the plan's name; likewise the run's."""

from puicl_config import (
    RUN_DIGEST_EXCLUDES,
    Config,
    ExtensionsConfig,
    ModelConfig,
    PriorConfig,
    TrainConfig,
    plan_digest,
    run_digest,
)

# Values that no default is, each valid alone with what `BESIDE` it is there.
PRIOR = {
    **{"seed": 1, "stages": 7, "steps_per_stage": 7, "tail_steps": 7, "n_causes": 5},
    **{"microbatches_per_step": 7, "tasks_per_microbatch": 7, "n_features": (5, 6)},
    **{"n_labeled": (100, 200), "eta_first": (1, 1.5), "eta_final": (1, 1.5)},
    **{"pi_first": (0.4, 0.5), "pi_final": (0.4, 0.5), "pi_drawn_per": "microbatch"},
    **{"p_causal_final": 0.4, "hidden_layers": (4, 5), "hidden_width": (12, 13)},
    **{"sigma_init": 0.7, "sigma_noise": (0.01,), "activations": ("tanh",)},
    **{"activation_schedule": "shared", "input_distributions": ("gaussian",)},
    **{"noncausal_sources": ("head",), "causal_sources": ("clique",), "label_positions": ("last",)},
    **{"clique_window": "centered", "feature_orderings": ("graph",), "state_clamp": 1e5},
    **{"value_clip": 19.0, "arithmetic": "portable", "extensions": {"share": 0.5, "sar": 0.5}},
}
BESIDE = {
    "n_causes": {"noncausal_sources": ("head",)},
    "fixed_stage": {"sampler": "fixed_stage"},
}
PHASE = {"peak": 1e-3, "floor": 1e-6, "warmup_steps": 3}
TRAIN = {
    **{"seed": 1, "sampler": "shuffled", "fixed_stage": 3, "where": "causal"},
    **{"phase1": PHASE, "phase2": PHASE, "decay_exponent": 1.0, "beta1": 0.8, "beta2": 0.8},
    **{"adam_epsilon": 1e-7, "weight_decay": 0.1, "clip_norm": 2.0, "ema_decay": 0.9},
    **{"optimizer": "muon", "muon_lr_ratio": 7.0, "muon_momentum": 0.9, "reveal": "both"},
    **{"reveal_negatives": {"until": 0.4}, "reveal_share": 0.4, "precision": "bfloat16"},
    **{"self_distillation": {"weight": 0.5}, "device": "cpu", "threads_per_process": 2},
    **{"tasks_per_forward": 3, "round_rows": 8, "deterministic": False, "compile": True},
    **{"cuda_graphs": True, "init_from": "default", "max_steps": 5, "max_seconds": 5.0},
    **{"log_every": 7, "digest_every": 7, "checkpoint_every": 7, "keep_checkpoints": 7},
    **{"loader_threads": 2, "loader_processes": 2, "recompute": True, "follow": True},
    **{"follow_timeout": 7.0, "heldout": "h", "heldout_every": 7, "heldout_microbatches": 7},
}
MODEL = {
    **{"embedding_size": 64, "layers": 3, "heads": 4, "feedforward_size": 64, "norm": "rmsnorm"},
    **{"standardize_by": "all", "feature_clip": 9.0, "feature_heads": 4, "row_heads": 4},
    **{"thinking_rows": 3, "feature_group": (0, 1), "reveals_negatives": True},
    "scalable_softmax": True,
}
# Written out once more: whoever adds a key there by mistake gives two trainings one name.
CHANGES_NO_BIT = {
    *("max_steps", "max_seconds", "log_every", "digest_every", "checkpoint_every"),
    *("keep_checkpoints", "loader_threads", "loader_processes", "recompute", "follow"),
    *("follow_timeout", "heldout", "heldout_every", "heldout_microbatches", "init_from"),
}
# What is written of an extension only where it has a probability; the rest is always written.
LATER = {
    "proportional": {"proportional_size"},
    "factorial": {"factorial_size"},
    "few_labeled": {"few_labeled_rows", "few_labeled_unlabeled_rows"},
    "soft_border": {"softness"},
    "cluster_labels": {"clusters", "cluster_separation", "cluster_common"},
    "two_sided": set(),
    "factor_model": {"factors", "factor_common"},
    "censored": {"censored_share"},
    "normal_scores": set(),
    "graph": {"graph_hidden", "graph_noise"},
    "principal_axes": set(),
    "mirrored": set(),
    "grouped": {"group_size", "group_closeness"},
    "mixed_orders": set(),
}


def test_every_key_of_the_prior_names_the_plan_and_the_run():
    assert PRIOR.keys() == PriorConfig.model_fields.keys()
    priors = [PriorConfig(**{key: PRIOR[key]}, **BESIDE.get(key, {})) for key in PRIOR]
    assert len({plan_digest(PriorConfig()), *map(plan_digest, priors)}) == len(PRIOR) + 1
    runs = {run_digest(Config(prior=prior)) for prior in priors}
    assert len({run_digest(Config()), *runs}) == len(PRIOR) + 1


def test_every_key_of_the_model_and_of_training_names_the_run_but_those_that_change_no_bit():
    assert TRAIN.keys() == TrainConfig.model_fields.keys()
    assert MODEL.keys() == ModelConfig.model_fields.keys()
    assert RUN_DIGEST_EXCLUDES == CHANGES_NO_BIT
    base, names = run_digest(Config()), set()
    for key, value in TRAIN.items():
        name = run_digest(Config(train={key: value, **BESIDE.get(key, {})}))
        assert (name == base) == (key in CHANGES_NO_BIT), key
        names.add(name)
    names |= {run_digest(Config(model={key: value})) for key, value in MODEL.items()}
    assert len(names) == len(TRAIN) + len(MODEL) - len(CHANGES_NO_BIT) + 1
    for weight in (0.4, 0.6):
        names.add(run_digest(Config(train={"self_distillation": {"weight": weight, "passes": 2}})))
    assert len(names) == len(TRAIN) + len(MODEL) - len(CHANGES_NO_BIT) + 3


def test_an_extensions_parameters_are_written_where_it_has_a_probability_and_nowhere_else():
    always = set(ExtensionsConfig().model_dump())
    for name, parameters in LATER.items():
        beside = {"rule_labels": 0.5} if name == "factorial" else {}
        beside |= {"discrete": 0.5} if name == "mixed_orders" else {}
        written = ExtensionsConfig(**{name: 0.5}, **beside).model_dump()
        assert written.keys() - always == {name, *parameters}, name
    later = {"factorial_coded", *LATER, *set().union(*LATER.values())}
    assert always == ExtensionsConfig.model_fields.keys() - later
