"""What a config's YAML may hold, how it is read, and what of it is refused."""

import math

import pytest
import yaml

from puicl_config import Config, InputError, load_config
from puicl_config.loading import _YamlLoader


def test_a_config_is_read_as_utf_8(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_bytes("train: {heldout: geprüft}".encode())
    assert load_config(path).train.heldout == "geprüft"
    path.write_bytes("train: {heldout: geprüft}".encode("latin-1"))
    with pytest.raises(InputError, match=r"mine\.yaml is not valid YAML: 'utf-8' codec"):
        load_config(path)


def test_an_empty_file_is_the_defaults(tmp_path):
    (tmp_path / "empty.yaml").write_text("# nothing yet\n", encoding="utf-8")
    assert load_config(tmp_path / "empty.yaml") == Config()


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
