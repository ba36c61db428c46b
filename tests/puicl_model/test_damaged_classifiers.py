"""Files that are no saved classifier, or were changed after they were saved, are refused."""

import hashlib
import json

import numpy as np
import pytest
from little_table import table
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from puicl_config import InputError
from puicl_model import PUICLClassifier
from puicl_model.weights import find_weights

S = np.arange(60) % 4 == 0


@pytest.fixture(scope="module")
def weights(untrained_weights):
    return untrained_weights()


@pytest.fixture
def saved(weights, tmp_path):
    path = tmp_path / "c"
    PUICLClassifier(weights, n_estimators=1).fit(table(n=len(S)), S).save(path)
    return path


def opened(path):
    """What a file says of itself, and its arrays."""
    with safe_open(path, framework="np") as file:
        about = json.loads(file.metadata()["puicl"])
    return about, load_file(path)


def written_back(path, about, arrays):
    """Without a digest of the arrays, as older versions wrote it, but with one of what it says."""
    about.pop("arrays_digest", None)
    text = json.dumps(about)
    digest = hashlib.sha256(text.encode()).hexdigest()
    save_file(arrays, path, {"puicl": text, "puicl_digest": digest})


@pytest.mark.parametrize("content", [None, b"", b"\x80\x04N.", b"cut"])
def test_a_file_that_is_no_saved_classifier_is_refused(saved, content):
    if content is None:
        saved.unlink()
    else:
        saved.write_bytes(saved.read_bytes()[:-9] if content == b"cut" else content)
    with pytest.raises(InputError, match="no saved classifier" if content is not None else "no f"):
        PUICLClassifier.load(saved)


def test_weights_and_folders_are_no_saved_classifiers(weights, tmp_path):
    for network in (weights, find_weights("default")):  # these in bfloat16, which numpy has not
        with pytest.raises(InputError, match=r"format .*; weights go to PUICLClassifier.model="):
            PUICLClassifier.load(network)
    with pytest.raises(InputError, match="is a folder"):
        PUICLClassifier.load(tmp_path)


def test_a_file_whose_numbers_are_others_is_refused(saved):
    with safe_open(saved, framework="np") as file:
        header = file.metadata()
    arrays = load_file(saved)
    assert PUICLClassifier.load(saved)
    name = next(name for name in arrays if name.startswith("network."))
    changed = arrays[name].copy()
    changed.reshape(-1).view(np.uint8)[0] ^= 1  # one bit
    save_file({**arrays, name: changed}, saved, header)
    with pytest.raises(InputError, match="damaged: its arrays are not those that were saved"):
        PUICLClassifier.load(saved)


def test_a_file_that_says_something_else_of_its_arrays_is_refused(saved):
    with safe_open(saved, framework="np") as file:
        header = file.metadata()
    about, arrays = opened(saved)
    about["plain"]["_offset"] = 1.0
    save_file(arrays, saved, {**header, "puicl": json.dumps(about)})
    with pytest.raises(InputError, match="damaged: its JSON header has changed since"):
        PUICLClassifier.load(saved)
    # Without a digest, as an older version wrote it, what cannot be is told in one sentence.
    for name in ("parameters", "card", "plain", "scalings", "references", "preprocessor"):
        for value in ([1], 3, "x"):
            save_file(arrays, saved, {"puicl": json.dumps(about | {name: value})})
            with pytest.raises(InputError, match="c is damaged, or no saved classifier"):
                PUICLClassifier.load(saved)
    save_file(arrays, saved, {"puicl": "[]"})
    with pytest.raises(InputError, match="no saved classifier: it lacks the format"):
        PUICLClassifier.load(saved, device="cpu")


def test_a_file_that_claims_a_network_of_any_size_is_refused(saved):
    about, arrays = opened(saved)
    about["card"]["model"]["feedforward_size"] = 2**40
    written_back(saved, about, arrays)
    told = r"another network than it says: blocks\.0\.feedforward.* instead of \(1099511627776"
    with pytest.raises(InputError, match=told):
        PUICLClassifier.load(saved)


def test_a_file_that_names_estimators_it_has_not_is_refused(saved):
    about, arrays = opened(saved)
    about["references"][0][0] = [2**40]  # new rows would be scored in a table of as many lines
    written_back(saved, about, arrays)
    with pytest.raises(InputError, match=r"has no estimators \[1099511627776\]"):
        PUICLClassifier.load(saved)


def test_a_file_whose_text_is_nested_too_deeply_is_refused(saved):
    save_file(load_file(saved), saved, {"puicl": "[" * 100_000})
    with pytest.raises(InputError, match="is no saved classifier: "):
        PUICLClassifier.load(saved)


def test_a_file_whose_trees_lead_in_circles_is_refused(weights, tmp_path):
    path = tmp_path / "c"
    PUICLClassifier(weights, n_estimators=1, blend="trees").fit(table(n=len(S)), S).save(path)
    about, arrays = opened(path)
    arrays["forest.left"] = np.arange(len(arrays["forest.left"]), dtype=np.int32)
    written_back(path, about, arrays)
    with pytest.raises(InputError, match="trees lead in circles"):
        PUICLClassifier.load(path)


def test_what_fails_beside_the_file_is_not_called_damage(saved, monkeypatch):
    def full(*arguments):
        raise RuntimeError("CUDA out of memory")

    monkeypatch.setattr("puicl_model.saving._network", full)
    with pytest.raises(RuntimeError, match=r"^CUDA out of memory$"):
        PUICLClassifier.load(saved)


def test_a_file_that_lacks_an_array_is_refused(saved):
    about, arrays = opened(saved)
    del arrays["_keys"]
    written_back(saved, about, arrays)
    with pytest.raises(InputError, match="damaged, or no saved classifier: no '_keys' in it"):
        PUICLClassifier.load(saved)
