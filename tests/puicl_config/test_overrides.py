"""Overrides: which keys they reach, which of them holds, and what is said of a wrong one."""

import json

import pytest

from puicl_config import ACTIVATIONS, InputError, load_config

# Extensions of half of the microbatches.
HALF = "prior.extensions.share=0.5"


@pytest.mark.parametrize(
    ("override", "sentence"),
    [
        ("prior.sigma_int=1", "unknown key prior.sigma_int; did you mean prior.sigma_init?"),
        ("train.phase1.peek=1", "did you mean train.phase1.peak?"),
        ("trian.seed=1", "unknown key trian; did you mean train?"),
        ("sampler=shuffled", "unknown key sampler; did you mean train.sampler?"),
        ("seed=1", "unknown key seed; did you mean prior.seed or train.seed?"),
        ("train.layers=2", "unknown key train.layers; did you mean model.layers?"),
        ("peak=1", "did you mean train.phase1.peak or train.phase2.peak?"),
        ("prior.sigma_init=-1", "prior.sigma_init: input should be greater than 0, got -1"),
        ("prior.sigma_init=.inf", "prior.sigma_init: input should be a finite number"),
        (
            "prior.sigma_noise=[1.0e+30]",
            "sigma_noise.0: input should be less than or equal to 1000",
        ),
        ("prior.extensions.graph_noise=[1, 1.0e+300]", "graph_noise.1: input should be less than"),
        (
            "shards.chunk_cells=10000000000",
            "shards.chunk_cells: input should be less than or equal",
        ),
        ("train.threads_per_process=100000", "less than or equal to 4096, got 100000"),
        ("prior.pi_final=[0.9, 0.1]", "the lower end 0.9 lies above the upper end 0.1"),
        ("prior.pi_final=[0.1, 1.0]", "prior.pi_final.1: input should be less than 1, got 1.0"),
        ("prior.activations=[tanh, tahn]", "prior.activations.1"),
        ("prior.activations=[tanh, tanh]", "a value is listed twice"),
        ("prior.activations=[]", "at least one value is needed"),
        ("prior.n_causes=-1", "prior.n_causes: input should be greater than or equal to 1, got -1"),
        ("prior.hidden_layers=[1, 3]", "greater than or equal to 2, got 1"),
        ("prior.n_causes=7", "n_causes must be 'n_features'"),
        ("prior.n_labeled=[1, 3]", "at least two are needed"),
        ("model.heads=7", "embedding_size 128 is not a multiple of heads 7"),
        ("model.row_heads=7", "embedding_size 128 is not a multiple of row_heads 7"),
        ("model.feature_heads=7", "embedding_size 128 is not a multiple of feature_heads 7"),
        ("train.phase2.floor=1", "floor 1.0 lies above peak"),
        ("shards.format=zip", "input should be 'zarr' or 'webdataset', got 'zip'"),
        ("prior.stages", "is not of the form section.key=value"),
        ("prior..stages=1", "is not of the form section.key=value"),
        (".stages=1", "is not of the form section.key=value"),
        ("name.first=1", "name is a value, not a section"),
    ],
)
def test_a_bad_override_is_refused_with_a_sentence_that_names_it(override, sentence):
    with pytest.raises(InputError, match=r".") as caught:
        load_config("paper", [override])
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_override_that_is_wrong_is_named_and_no_other():
    with pytest.raises(InputError) as caught:
        load_config("paper", ["prior.stages=3", "train.phase1.peak=fast"])
    assert "paper.yaml with train.phase1.peak=fast: train.phase1.peak: " in str(caught.value)
    # Nor one whose key the wrong one begins with; but one of the section that is wrong.
    with pytest.raises(InputError, match=r"paper\.yaml with prior\.stages_more=1: "):
        load_config("paper", ["prior.stages=3", "prior.stages_more=1"])
    with pytest.raises(InputError, match=r"paper\.yaml with train\.phase1=\{peak: fast\}: "):
        load_config("paper", ["prior.stages=3", "train.phase1={peak: fast}"])


@pytest.mark.parametrize(
    "override", ["curriculum.stages=3", "model.heads=7", "train.phase2.floor=1"]
)
def test_an_override_in_a_section_that_is_wrong_is_named(override):
    # Otherwise the message would blame the file, which has no such section or fits together.
    with pytest.raises(InputError) as caught:
        load_config("paper", [override])
    assert f"paper.yaml with {override}: " in str(caught.value)


def test_all_problems_are_reported_at_once():
    with pytest.raises(InputError) as caught:
        load_config("paper", ["prior.sigma_int=1", "model.layers=0", "train.ema_decay=2"])
    for key in ("prior.sigma_int", "model.layers", "train.ema_decay"):
        assert key in str(caught.value)


def test_an_expression_may_begin_with_a_quote_as_it_may_with_slice():
    for where in ("'tanh' in activations and source != 'head'", '"tanh" in activations', "d < 9"):
        assert load_config("paper", [f"train.where={where}"]).train.where == where
    with pytest.raises(InputError, match="is not a YAML value"):
        load_config("paper", ["train.seed='tanh' in activations"])


def test_an_override_may_have_spaces_around_its_equals_sign():
    config = load_config("paper", [" train.seed = 3", "train.where = 'tanh' in activations "])
    assert (config.train.seed, config.train.where) == (3, "'tanh' in activations")


def test_of_two_overrides_of_one_key_the_last_one_holds():
    assert load_config("paper", ["train.seed=1", "train.seed=2"]).train.seed == 2


def test_a_value_that_is_refused_is_shown_and_a_section_that_is_refused_is_not():
    with pytest.raises(InputError, match=r"is not a multiple of heads 7$"):
        load_config("paper", ["model.heads=7"])
    values = [*ACTIVATIONS, "tanh"]
    with pytest.raises(InputError) as caught:
        load_config("paper", [f"prior.activations={json.dumps(values)}"])
    assert str(caught.value).endswith(f"a value is listed twice, got {values}")
    word = "a" * 150
    with pytest.raises(InputError, match=f"got '{word}'$"):
        load_config("paper", [f"train.device={word}"])


def test_overrides_reach_nested_values_and_read_scientific_notation():
    config = load_config("paper", ["train.phase1.peak=1e-3", "model.layers=4"])
    assert config.train.phase1.peak == 0.001
    assert config.train.phase1.floor == 1.6e-5
    assert config.model.layers == 4


def test_what_concerns_no_single_key_is_told_without_an_empty_name():
    with pytest.raises(InputError) as caught:
        load_config("paper", ["train.sampler=fixed_stage"])
    assert ": : " not in str(caught.value)
    assert "paper.yaml: train.sampler=fixed_stage and train.fixed_stage" in str(caught.value)


def test_an_override_changes_one_of_two_sections_that_yaml_calls_the_same(tmp_path):
    path = tmp_path / "mine.yaml"
    phases = "phase1: &p {peak: 1.0e-4, floor: 1.0e-5, warmup_steps: 10}\n  phase2: *p"
    path.write_text(f"name: mine\ntrain:\n  {phases}\n", encoding="utf-8")
    train = load_config(path, ["train.phase1.peak=2e-4"]).train
    assert (train.phase1.peak, train.phase2.peak) == (2e-4, 1e-4)


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        (["train.reveal_negatives.share=0.5"], "needs model.reveals_negatives: true"),
        (["train.sampler=fixed_stage", "train.fixed_stage=999"], "but the plan ends with stage"),
        (["train.fixed_stage=3"], "belong together: give both or neither"),
        (["train.sampler=tail_only", "prior.tail_steps=0"], "needs a tail"),
        (["train.sampler=interleaved", "prior.tail_steps=0"], "needs a tail"),
        ([HALF], "no extension has a probability above 0"),
        (
            [HALF, "prior.extensions.tree_labels=0.6", "prior.extensions.cluster_labels=0.6"],
            "tree_labels 0.6 and cluster_labels 0.6 exclude each other",
        ),
        (
            [HALF, "prior.extensions.sar=0.5", "prior.extensions.mixed_orders=0.5"],
            "mixed_orders needs discrete above 0",
        ),
        (
            [HALF, "prior.extensions.factorial_coded=0.5", "prior.extensions.tree_labels=0.5"],
            "factorial_coded needs rule_labels above 0",
        ),
        ([HALF, "prior.extensions.factorial=0.5"], "factorial needs tree_labels or rule_labels"),
        ([HALF, "prior.extensions.independent=0.5"], "independent needs tree_labels or rule_"),
        (
            [HALF, "prior.extensions.few_labeled=0.5", "prior.extensions.max_rows=83",
             "prior.extensions.n_labeled=[4, 20]", "prior.extensions.eta=[1.0, 2.0]"],
            "max_rows 83 is less than the 84 rows that the most",
        ),
        (
            [HALF, "prior.extensions.sar=0.5", "prior.extensions.max_rows=449"],
            "max_rows 449 is less than the 450 rows that the largest n_labeled needs",
        ),
    ],
)  # fmt: skip
def test_what_does_not_go_together_is_refused(overrides, sentence):
    with pytest.raises(InputError) as caught:
        load_config("paper", overrides)
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    "override", ["train.seed=true", "prior.sigma_init=yes", "prior.n_features=[true, 4]"]
)
def test_truth_is_no_number(override):
    with pytest.raises(InputError, match="true and false are not allowed here"):
        load_config("paper", [override])


@pytest.mark.parametrize("override", ["train.where=", "train.init_from= ", "name="])
def test_an_override_without_a_value_is_refused(override):
    with pytest.raises(InputError, match="has no value; write null for none"):
        load_config("paper", [override])
