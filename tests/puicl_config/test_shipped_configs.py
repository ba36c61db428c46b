"""The configs that ship, how one is found by its name, the defaults, and the docs' example."""

from pathlib import Path

import pytest
import yaml

from puicl_config import (
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

ROOT = Path(__file__).resolve().parent.parent.parent
SHIPPED = sorted(path.stem for path in (ROOT / "configs").glob("*.yaml"))


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


def test_the_working_directorys_config_wins_over_the_shipped_one(tmp_path, monkeypatch):
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "paper.yaml").write_text("name: mine\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert load_config("paper").name == "mine"
    assert load_config("configs/paper.yaml").name == "mine"
    assert load_config("demo").name == "demo"


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
