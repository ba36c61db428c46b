"""Settings of the extensions: what cannot be is refused in words, and the docs say the defaults."""

import ast
import json
import re
from pathlib import Path

import pytest

from puicl_config import ExtensionsConfig, InputError, load_config, parse_config, plan_digest

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.mark.parametrize(
    ("override", "sentence"),
    [
        ("share=0.5", "no extension has a probability above 0 and no range is given"),
        ("share=1.5", "less than or equal to 1, got 1.5"),
        ("sare=1", "unknown key prior.extensions.sare; did you mean prior.extensions."),
        ("tree_labels=0.7", "must not sum to more than 1"),
        ("cluster_labels=0.7", "rule_labels 0.4 and cluster_labels 0.7 exclude each other"),
        ("clusters=[1, 4]", "greater than or equal to 2, got 1"),
        ("cluster_separation=[0, 4]", "greater than 0, got 0"),
        ("factors=[0, 2]", "greater than or equal to 1, got 0"),
        ("factor_common=[0, 2]", "greater than 0, got 0"),
        ("softness=[2, 0.1]", "the lower end 2.0 lies above the upper end 0.1"),
        ("levels=[1, 3]", "greater than or equal to 2, got 1"),
        ("levels=[5, 3]", "the lower end 5 lies above the upper end 3"),
        ("rule_kinds=[xor]", "prior.extensions.rule_kinds.0"),
        ("rule_kinds=[]", "at least one value is needed"),
        ("factorial_size=[0.3,0.5]", "prior.extensions.factorial_size.0"),
        ("factorial=0.5", "factorial needs tree_labels or rule_labels above 0"),
        ("factorial_coded=0.5", "factorial_coded needs rule_labels above 0"),
        ("mixed_orders=0.5", "mixed_orders needs discrete above 0"),
        ("noise_share=[0.1, 0.7]", "less than or equal to 0.5, got 0.7"),
        ("border=[0.0, 0.5]", "greater than 0, got 0.0"),
        ("sar_strength=[0, 30]", "less than or equal to 20, got 30"),
        ("missing_share=[0.5, 1.0]", "less than 1, got 1.0"),
        ("pi=[0.1, 1.0]", "less than 1, got 1.0"),
        ("n_labeled=[1, 20]", "at least two are needed"),
        ("max_rows=100", "is less than the 450 rows that the largest n_labeled needs"),
        ("few_labeled_rows=[0, 4]", "greater than or equal to 1, got 0"),
        ("few_labeled_unlabeled_rows=[1, 60]", "greater than or equal to 2, got 1"),
        ("max_rows=1", "greater than or equal to 2, got 1"),
    ],
)
def test_a_bad_extension_is_refused_in_one_sentence_that_names_it(override, sentence):
    raw = (
        ["prior.extensions.rule_labels=0.4"]
        if override.startswith(("tree", "cluster_labels"))
        else []
    )
    with pytest.raises(InputError, match=r".") as caught:
        load_config("paper", [*raw, f"prior.extensions.{override}"])
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_shares_of_label_sources_may_sum_to_one_but_for_rounding():
    sources = {"tree_labels": 0.33, "rule_labels": 0.56, "cluster_labels": 0.11}
    assert 1 < 0.33 + 0.56 + 0.11 < 1 + 1e-15
    assert ExtensionsConfig(share=1.0, **sources).cluster_labels == 0.11


def test_independent_columns_without_labels_from_columns_are_refused():
    with pytest.raises(InputError, match="independent needs tree_labels or rule_labels above 0"):
        parse_config({"prior": {"extensions": {"share": 1, "independent": 1}}}, where="here")


def test_a_fixed_number_of_causes_binds_the_extended_widths_too():
    raw = {"n_causes": 5, "n_features": (5, 5), "extensions": {"share": 1, "n_features": (2, 5)}}
    with pytest.raises(InputError, match="equal both ends of n_features"):
        parse_config({"prior": raw}, where="here")


def test_the_size_of_rules_designs_is_part_of_the_plan_without_other_designs():
    designs = ["share=1", "rule_labels=1", "factorial_coded=0.9"]
    base = [f"prior.extensions.{setting}" for setting in designs]
    size = "prior.extensions.factorial_size=[1.0, 1.5]"
    plain, sized = (load_config("paper", some) for some in (base, [*base, size]))
    assert plan_digest(plain.prior) != plan_digest(sized.prior)
    again = parse_config(json.loads(json.dumps(sized.model_dump(mode="json"))), "a manifest")
    assert again.prior == sized.prior
    # Plans that do not say keep the name they had.
    assert "factorial_size" not in plain.prior.extensions.model_dump(mode="json")


def test_the_docs_name_every_parameters_default():
    text = (DOCS / "prior_extensions.md").read_text(encoding="utf-8")
    named = dict(re.findall(r"`(\w+)` = (\[[^\]]*\])", text))
    defaults = {
        name: value
        for name, value in ExtensionsConfig()
        if isinstance(value, tuple) and name != "rule_kinds"
    }
    assert {name: tuple(ast.literal_eval(value)) for name, value in named.items()} == defaults
