import json
import math
from pathlib import Path

import pytest
import yaml

from puicl_config import (
    ACTIVATIONS,
    EXTENSIONS,
    Config,
    ExtensionsConfig,
    InputError,
    config_yaml,
    find_config,
    load_config,
    plan_digest,
    run_digest,
)
from puicl_config.loading import _YamlLoader

ROOT = Path(__file__).resolve().parent.parent.parent
SHIPPED = sorted(path.stem for path in (ROOT / "configs").glob("*.yaml"))

# Extensions of half of the microbatches.
HALF = "prior.extensions.share=0.5"


def test_paper_yaml_states_the_papers_run():
    config = load_config("paper")
    prior, model, train = config.prior, config.model, config.train
    assert (prior.stages, prior.steps_per_stage, prior.tail_steps) == (100, 750, 25_000)
    assert prior.microbatches_per_step * prior.tasks_per_microbatch == 48
    assert (prior.total_steps, prior.total_stages, prior.steps_in_stage(134)) == (100_000, 134, 250)
    assert (prior.n_features, prior.n_labeled) == ((5, 20), (100, 300))
    assert (prior.eta_first, prior.eta_final) == ((1.0, 1.0), (0.5, 2.0))
    assert (prior.pi_first, prior.pi_final) == ((0.5, 0.5), (0.1, 0.9))
    assert prior.p_causal_final == 0.5
    assert (prior.hidden_layers, prior.hidden_width) == ((4, 12), (12, 36))
    assert prior.sigma_noise == (0.005, 0.01, 0.02)
    assert prior.sigma_init == 0.8
    assert len(prior.activations) == 10
    assert prior.value_clip == 20
    assert (model.embedding_size, model.layers, model.heads) == (128, 6, 8)
    assert (model.feedforward_size, model.feature_clip) == (256, 100)
    assert train.phase1.model_dump() == {"peak": 1.6e-4, "floor": 1.6e-5, "warmup_steps": 4000}
    assert train.phase2.model_dump() == {"peak": 4e-5, "floor": 4e-6, "warmup_steps": 2000}
    assert (train.beta1, train.beta2, train.weight_decay) == (0.9, 0.95, 1e-4)
    assert (train.clip_norm, train.ema_decay, train.decay_exponent) == (1.0, 0.95, 1.5)


def test_paper_yaml_writes_out_every_key_of_the_plan_and_the_model():
    written = yaml.safe_load(find_config("paper").read_text(encoding="utf-8"))
    defaults = Config()
    for section in ("prior", "shards", "model"):
        assert set(written[section]) == set(getattr(defaults, section).model_dump())


def test_the_defaults_are_the_papers_plan_and_run():
    paper = load_config("paper")
    assert plan_digest(Config().prior) == plan_digest(paper.prior)
    assert run_digest(Config()) == run_digest(paper)


@pytest.mark.parametrize("name", SHIPPED)
def test_every_shipped_config_loads_and_survives_a_round_trip(name, tmp_path):
    config = load_config(name)
    (tmp_path / "copy.yaml").write_text(config_yaml(config), encoding="utf-8")
    assert load_config(tmp_path / "copy.yaml") == config
    assert [*yaml.safe_load(config_yaml(config))] == [*Config.model_fields]  # in this order


def test_a_config_is_read_as_utf_8(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_bytes("train: {heldout: geprüft}".encode())
    assert load_config(path).train.heldout == "geprüft"
    path.write_bytes("train: {heldout: geprüft}".encode("latin-1"))
    with pytest.raises(InputError, match=r"mine\.yaml is not valid YAML: 'utf-8' codec"):
        load_config(path)


def test_the_working_directorys_config_wins_over_the_shipped_one(tmp_path, monkeypatch):
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "paper.yaml").write_text("name: mine\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert load_config("paper").name == "mine"
    assert load_config("configs/paper.yaml").name == "mine"
    assert load_config("demo").name == "demo"


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


def test_an_empty_file_is_the_defaults(tmp_path):
    (tmp_path / "empty.yaml").write_text("# nothing yet\n", encoding="utf-8")
    assert load_config(tmp_path / "empty.yaml") == Config()


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


def test_yaml_that_is_nested_too_deeply_and_names_that_are_too_long_are_refused(tmp_path):
    (tmp_path / "deep.yaml").write_text("[" * 3000)
    with pytest.raises(InputError, match=r"deep\.yaml is not valid YAML: it is nested too deeply"):
        load_config(tmp_path / "deep.yaml")
    with pytest.raises(InputError, match="no config 'aaa"):
        load_config("a" * 300)


def test_what_aliases_make_large_is_told_shortly(tmp_path):
    lines = ["x0: &x0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    lines += [f"x{n + 1}: &x{n + 1} [{', '.join([f'*x{n}'] * 10)}]" for n in range(6)]
    (tmp_path / "wide.yaml").write_text("\n".join([*lines, "prior: {seed: *x6}"]))
    with pytest.raises(InputError, match=r"prior\.seed: input should be a valid int") as refused:
        load_config(tmp_path / "wide.yaml")
    assert len(str(refused.value)) < 5000


def test_merges_of_merges_are_refused_before_they_fill_the_memory(tmp_path):
    lines = ["x0: &x0 {a: 1, b: 2}"]
    lines += [f"x{n + 1}: &x{n + 1} {{<<: [{', '.join([f'*x{n}'] * 8)}]}}" for n in range(20)]
    (tmp_path / "wide.yaml").write_text("\n".join(lines))
    with pytest.raises(InputError, match="`<<` merges more than 1000 keys"):
        load_config(tmp_path / "wide.yaml")
    # Which is not said of what is merely written out.
    keys = {f"k{n}": n for n in range(1001)}
    assert yaml.load(yaml.dump(keys), _YamlLoader) == keys


def test_a_key_that_is_no_word_is_refused_without_being_written_out(tmp_path):
    lines = ["x0: &x0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    lines += [f"x{n + 1}: &x{n + 1} [{', '.join([f'*x{n}'] * 10)}]" for n in range(20)]
    lines += ["train:", "  ? *x20", "  : 1", "  ? *x20", "  : 2"]
    (tmp_path / "odd.yaml").write_text("\n".join(lines))
    with pytest.raises(InputError, match="found unhashable key"):
        load_config(tmp_path / "odd.yaml")


def test_a_number_too_long_to_be_shown_is_refused_like_any_other(tmp_path):
    (tmp_path / "long.yaml").write_text(f"prior: {{seed: 0x{'f' * 50_000}}}")
    with pytest.raises(InputError, match=r"prior\.seed: input should be a valid integer"):
        load_config(tmp_path / "long.yaml")


@pytest.mark.parametrize("value", ["2024-13-45", "9" * 5000], ids=["no day", "no number"])
def test_what_yaml_takes_for_a_value_that_python_has_not_is_refused(value, tmp_path):
    (tmp_path / "odd.yaml").write_text(f"prior: {{seed: {value}}}")
    with pytest.raises(InputError, match=r"odd\.yaml is not valid YAML: "):
        load_config(tmp_path / "odd.yaml")
    with pytest.raises(InputError, match="is not a YAML value"):
        load_config("paper", [f"prior.seed={value}"])


def test_overrides_reach_nested_values_and_read_scientific_notation():
    config = load_config("paper", ["train.phase1.peak=1e-3", "model.layers=4"])
    assert config.train.phase1.peak == 0.001
    assert config.train.phase1.floor == 1.6e-5
    assert config.model.layers == 4


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("prior: [1", "is not valid YAML"),
        ("- 1", "must hold a mapping of sections"),
        ("prior: {seed: 1, seed: 2}", "'seed' is written twice"),
        ("prior: !!python/object/apply:os.getcwd []", "is not valid YAML"),
    ],
)
def test_a_broken_file_is_refused(tmp_path, text, sentence):
    (tmp_path / "broken.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=r".") as caught:
        load_config(tmp_path / "broken.yaml")
    assert sentence in str(caught.value)


def test_an_unknown_config_names_those_like_it_or_all_that_ship():
    for wrong in ("papr", "configs/papr.yaml", "paper.yml"):
        with pytest.raises(InputError, match=r"no config '.*pap.*': did you mean paper or cpu_pa"):
            load_config(wrong)
    with pytest.raises(InputError, match=f"give a YAML file or one of {', '.join(SHIPPED)}"):
        load_config("zzz")


def test_the_extensions_page_documents_every_key_and_its_example_loads():
    page = (ROOT / "docs" / "prior_extensions.md").read_text(encoding="utf-8")
    for key, value in ExtensionsConfig().model_dump().items():
        assert f"`{key}`" in page, key
        if isinstance(value, tuple) and not isinstance(value[0], str):
            assert f"[{value[0]}, {value[1]}]" in page, key
    example = yaml.safe_load(page.split("```yaml")[1].split("```")[0])
    extensions = ExtensionsConfig.model_validate(example["prior"]["extensions"])
    assert all(getattr(extensions, name) for name in EXTENSIONS)


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


def test_numbers_are_read_as_yaml_1_2_reads_them():
    ints = {"10": 10, "-3": -3, "+3": 3, "0": 0, "0x1F": 31, "0b11": 3, "1_000": 1000}
    floats = {"1.5": 1.5, "-.5": -0.5, "5.": 5.0, "1e3": 1e3, "1.0e-4": 1e-4, "2.E+3": 2e3}
    floats |= {".inf": math.inf, "-.INF": -math.inf}
    for text, number in {**ints, **floats}.items():
        read = yaml.load(text, Loader=_YamlLoader)
        assert (type(read), read) == (type(number), number), text
    assert load_config("paper", ["train.seed=010"]).train.seed == 10
    for text in ("1:30", "1:30.5", "--1", ".", "1.2.3", "e3"):
        assert yaml.load(text, Loader=_YamlLoader) == text
    with pytest.raises(InputError, match=r"train.seed: .* integer, .* got '1:30'"):
        load_config("paper", ["train.seed=1:30"])


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


def test_mappings_may_be_merged_as_yaml_does(tmp_path):
    path = tmp_path / "merged.yaml"
    path.write_text(
        "train:\n"
        "  phase1: &phase {peak: 1.0e-3, floor: 1.0e-4, warmup_steps: 3}\n"
        "  phase2: {<<: *phase, warmup_steps: 2}\n"
    )
    train = load_config(path).train
    assert (train.phase2.peak, train.phase2.warmup_steps) == (1e-3, 2)
    # What is merged may itself replace a key that was merged into it, at any depth.
    text = "a: {b: &b {<<: {x: 1, y: 1}, x: 2}}\nc: {<<: *b, y: 3}"
    assert yaml.load(text, _YamlLoader) == {"a": {"b": {"x": 2, "y": 1}}, "c": {"x": 2, "y": 3}}
    path.write_text("train: {seed: 1, seed: 2}\n")
    with pytest.raises(InputError, match="'seed' is written twice"):
        load_config(path)
