"""The little language of `--where`: what it says, and what it will not."""

import re

import pytest

from puicl_config import InputError, PriorConfig
from shard_io.tags import SYMBOLS, TAGS, WORDS
from shard_io.where import parse_where

BATCH = {
    **{"stage": 3, "step": 1, "index": 0, "n_features": 7, "n_labeled": 100, "n_unlabeled": 150},
    **{"eta": 1.5, "pi": [0.2, 0.4], "hidden_layers": 5, "hidden_width": 20, "n_causes": 7},
    **{"sigma_noise": 0.01, "input_distribution": "gaussian", "activations": ["tanh", "relu"]},
    **{"causal": True, "source": "clique", "label_position": "last", "ordering": "graph"},
}


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("causal", True),
        ("not causal", False),
        ("causal and n_features <= 10", True),
        ("d > 7 or P == 100", True),
        ("d > 7 or P != 100", False),
        ("5 <= d < 7", False),
        ("5 <= d <= 7 < h", True),
        ("n_u == 150 and eta == 1.5 and L_g == 5 and k == d", True),
        ("0.29 < pi < 0.31", True),
        ("pi > 0.35", False),
        ("source in ('clique', 'subset')", True),
        ("source not in ['clique']", False),
        ("'tanh' in activations and 'sin' not in activations", True),
        ("activations == ['tanh', 'relu']", True),
        ("label_position == None", False),
        ("label_position != None", True),
        ("causal == True", True),
        ("sigma_noise > -1", True),
        ("  (stage == 3)\n", True),
        ("causal or source < 3", True),
        ("not causal and source < 3", False),
        ("causal == 1 and 0 != causal", True),
        ("causal == (d > 5) == True", True),
        ("source in 'clique or subset'", True),
        ("source in ('head', None)", False),
        ("activations != None and None not in activations", True),
        ("activations in (['tanh'], ['tanh', 'relu'])", True),
        ("label_position == ordering", False),
    ],
)
def test_an_expression_says_what_python_would(text, answer):
    assert parse_where(text)(BATCH) is answer


@pytest.mark.parametrize(
    ("text", "answer", "of_the_papers"),
    [
        ("'graph' in extensions", True, False),
        ("'warped' in extensions", False, False),
        ("causal and extensions == ()", False, True),
        ("extensions == ('graph', 'discrete')", True, False),
    ],
)
def test_extensions_are_names_and_none_in_the_papers_microbatches(text, answer, of_the_papers):
    extended = {**BATCH, "extensions": {"graph": {"nodes": 3}, "discrete": {"levels": [2]}}}
    assert parse_where(text)(extended) is answer
    assert parse_where(text)(BATCH) is of_the_papers


def test_words_are_those_that_a_plan_and_its_extensions_can_have():
    from prior_gen.extensions.choices import _DRAWS
    from prior_gen.structure import SCM_SOURCES

    assert WORDS["source"] == SCM_SOURCES
    assert set(WORDS["extensions"]) == {*_DRAWS, "ranges", "shallow", "few_labeled"}
    for tag, key in (("activations", "activations"), ("ordering", "feature_orderings")):
        assert WORDS[tag] == getattr(PriorConfig(), key)
    for tag in ("input_distribution", "label_position"):
        assert WORDS[tag] == getattr(PriorConfig(), f"{tag}s")


def test_every_tag_of_a_generated_microbatch_and_every_symbol_can_be_asked_for(tiny):
    from prior_gen import generate_microbatch

    tags = generate_microbatch(tiny, 2, 1, 0).tags
    assert {*tags, "extensions"} == set(TAGS)  # which the paper's microbatches do not have
    for name in [*TAGS, *SYMBOLS]:
        assert parse_where(f"{name} == {name}")(tags) is True


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("n_feature < 3", "there is no tag 'n_feature'; did you mean n_features?"),
        ("casual", "there is no tag 'casual'; did you mean causal?"),
        ("Lg > 3", "there is no tag 'Lg'; did you mean L_g?"),
        ("zzz", "there is no tag 'zzz'; known: stage, step"),
        ("causal and", "cannot be read"),
        ("", "cannot be read"),
        ("n_features = 3", "cannot be read"),
        ("causal; causal", "cannot be read"),
        ("\0", "cannot be read"),
        ("not " * 490 + "causal", "cannot be read|neither|^$"),
        ("causal" + " " * 3000, "is 3006 characters long"),
        ("label_position is None", "write == or != instead of `is`"),
        ("d + 1 > 3", r"'d \+ 1' is not allowed"),
        ("9 ** 9 ** 9 > 1", "is not allowed"),
        ("__import__('os').system('true')", "is not allowed"),
        ("open('x')", "is not allowed"),
        ("source.upper() == 'X'", "is not allowed"),
        ("activations[0] == 'tanh'", "is not allowed"),
        ("(lambda: causal)()", "is not allowed"),
        ("[t for t in activations]", "is not allowed"),
        ("f'{causal}' == 'True'", "is not allowed"),
        ("causal if causal else causal", "is not allowed"),
        ("(causal := True)", "is not allowed"),
        ("b'x' == source", "is not allowed"),
        ("... == source", "is not allowed"),
        ("-source > 1", "is not allowed"),
    ],
)
def test_everything_else_is_refused_in_one_sentence_before_any_data_is_read(text, sentence):
    if text.startswith("not not"):
        assert parse_where(text)(BATCH) is True  # deep, but a sentence of the language
        return
    with pytest.raises(InputError, match=sentence) as caught:
        parse_where(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "activations != 'tanh'",
            "activations is a list and 'tanh' is a text, which are never equal; write 'tanh' not "
            "in activations",
        ),
        ("extensions == 'graph'", "write 'graph' in extensions"),
        ("d != '5'", "d is a number and '5' is a text, which are never equal; write d != 5"),
        ("'-0.5' == eta", "write eta == -0.5"),
        ("d in (4, '5')", "write 5 instead of '5'"),
        ("causal and (2 < d == 'five')", "compare d with a number"),
        ("d == (5, 6)", "write d in (5, 6)"),
        ("source == 5", "source is a text and 5 is a number"),
        ("source != ['clique', 'subset']", "write source not in ['clique', 'subset']"),
        ("d == source", "d is a number and source is a text"),
        ("causal != 'True'", "causal is true or false and 'True' is a text"),
        ("causal == 2", "write causal or not causal"),
        ("causal == 'yes'", "write causal or not causal"),
        ("5 in activations", "activations is a list of words, which never holds 5; write for"),
        ("activations == ['tanh', 5]", "which never holds 5"),
        ("source != 'cliqe'", "source is never 'cliqe'; did you mean 'clique'?"),
        ("source not in ('head', 'cause')", "did you mean 'causes'?"),
        ("'tanhh' not in activations", "activations never holds 'tanhh'; did you mean 'tanh'?"),
        ("activations == ['tanh', 'rulu']", "did you mean 'relu'?"),
        ("'few_labelled' in extensions", "did you mean 'few_labeled'?"),
        ("label_position != 'None'", "known: 'first', 'last', None"),
    ],
)
def test_a_comparison_that_could_never_filter_is_refused_before_any_data_is_read(text, sentence):
    with pytest.raises(InputError, match=f"where .*{re.escape(sentence)}") as caught:
        parse_where(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("n_features", "n_features is 7, neither true nor false"),
        ("causal and 1", "1 is 1, neither true nor false"),
        ("not source", "source is 'clique', neither true nor false"),
        ("source < 3", "source < 3 compares 'clique' with 3"),
        ("2 < d < source", "d < source compares 7 with 'clique'"),
        ("3 in d", "3 in d compares 3 with 7"),
    ],
)
def test_a_comparison_without_sense_is_one_sentence(text, sentence):
    with pytest.raises(InputError, match=sentence):
        parse_where(text)(BATCH)
