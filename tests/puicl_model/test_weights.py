import json
import pickle
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from puicl_config import InputError, ModelConfig, write_atomically
from puicl_model import PUICL, load_model, save_model, weights_digest
from puicl_model.weights import find_weights

CONFIG = ModelConfig(embedding_size=8, layers=2, heads=2, feedforward_size=12)


@pytest.fixture
def saved(tmp_path) -> Path:
    path = tmp_path / "model.safetensors"
    tensors = PUICL(CONFIG, torch.Generator().manual_seed(3)).state_dict()
    save_model(path, tensors, {"model": CONFIG.model_dump(), "step": 12})
    return path


def edit_card(path: Path, **changes) -> None:
    card_path = path.with_suffix(".json")
    card = {**json.loads(card_path.read_text(encoding="utf-8")), **changes}
    card_path.write_text(json.dumps(card), encoding="utf-8")


def refusal(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        load_model(path)
    return str(caught.value)


def test_loading_gives_back_what_was_saved_bit_by_bit(saved):
    original = PUICL(CONFIG, torch.Generator().manual_seed(3))
    model, card = load_model(saved)
    assert model.config == CONFIG
    assert card["step"] == 12
    assert card["weights_digest"] == weights_digest(original.state_dict())
    loaded = model.state_dict()
    assert list(loaded) == list(original.state_dict())
    for name, tensor in original.state_dict().items():
        assert torch.equal(loaded[name], tensor), name
    x = torch.randn(1, 6, 3, generator=torch.Generator().manual_seed(0))
    original.requires_grad_(False)  # frozen or not, PyTorch rounds differently
    assert torch.equal(model(x, 2), original(x, 2))


def test_a_loaded_model_is_frozen_and_in_evaluation_mode(saved):
    model, _ = load_model(str(saved))
    assert not model.training
    assert not any(parameter.requires_grad for parameter in model.parameters())


def test_saving_writes_plain_safetensors_and_json_and_nothing_else(saved):
    assert sorted(p.name for p in saved.parent.iterdir()) == ["model.json", "model.safetensors"]
    assert load_file(saved).keys() == PUICL(CONFIG).state_dict().keys()
    card = json.loads(saved.with_suffix(".json").read_text(encoding="utf-8"))
    assert card["model"] == CONFIG.model_dump(mode="json")


def test_the_card_is_written_last_so_that_weights_without_one_do_not_count(
    saved, tmp_path, monkeypatch
):
    model, card = load_model(saved)

    def full(path, content, *writer):
        if path.suffix == ".json":
            raise OSError("no space left")
        write_atomically(path, content, *writer)

    monkeypatch.setattr("puicl_model.weights.write_atomically", full)
    new = tmp_path / "new.safetensors"
    with pytest.raises(OSError, match="no space left"):
        save_model(new, model.state_dict(), card)
    assert new.exists()
    assert "new.json is missing" in refusal(new)


def test_saving_twice_writes_the_same_bytes(saved, tmp_path):
    model, card = load_model(saved)
    (tmp_path / "again").mkdir()
    again = tmp_path / "again" / "model.safetensors"
    save_model(str(again), model.state_dict(), card)
    assert again.read_bytes() == saved.read_bytes()
    assert again.with_suffix(".json").read_bytes() == saved.with_suffix(".json").read_bytes()


def test_the_digest_sees_names_values_shapes_and_types_but_not_their_order():
    tensors = {"a": torch.arange(6.0), "b": torch.ones(2)}
    digest = weights_digest(tensors)
    assert digest == weights_digest(dict(reversed(tensors.items())))
    others = [
        {"a": torch.arange(6.0), "c": torch.ones(2)},
        {"a": torch.arange(6.0).reshape(2, 3), "b": torch.ones(2)},
        {"a": torch.arange(6.0), "b": torch.ones(2).view(torch.int32)},
        {"a": torch.arange(6.0), "b": torch.tensor([1.0, 1.0 + 2**-23])},
        {"a": torch.arange(6.0)},
    ]
    assert len({digest, *map(weights_digest, others)}) == 6


def test_the_digest_sees_the_values_of_a_transposed_view():
    matrix = torch.arange(6.0).reshape(2, 3).T
    assert weights_digest({"a": matrix}) == weights_digest({"a": matrix.clone()})
    assert weights_digest({"a": matrix}) == weights_digest({"a": matrix.contiguous()})


@pytest.mark.parametrize("keep", [0, 4, 100, -1])
def test_a_cut_off_file_is_refused_as_damaged(saved, keep):
    saved.write_bytes(saved.read_bytes()[:keep])
    message = refusal(saved)
    assert str(saved) in message
    assert "damaged" in message


def test_one_flipped_bit_in_the_weights_is_refused_by_the_digest(saved):
    content = bytearray(saved.read_bytes())
    content[-5] ^= 1
    saved.write_bytes(content)
    message = refusal(saved)
    assert "do not match the digest in model.json" in message
    assert str(saved) in message


def test_weights_beside_the_card_of_others_are_refused_by_the_digest(saved):
    edit_card(saved, weights_digest=weights_digest(PUICL(CONFIG).state_dict()))
    assert "do not match the digest in model.json" in refusal(saved)


def test_weights_that_are_not_finite_are_refused(saved):
    model, card = load_model(saved)
    tensors = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    tensors["decoder.inner.bias"][1] = torch.nan
    save_model(saved, tensors, card)
    assert refusal(saved).endswith("decoder.inner.bias is not finite")


def test_missing_weights_are_refused_by_name(saved):
    saved.unlink()
    assert f"{saved} is missing" in refusal(saved)


def test_a_missing_card_is_refused_by_name(saved):
    saved.with_suffix(".json").unlink()
    assert f"{saved.with_suffix('.json')} is missing" in refusal(saved)


def test_a_folder_beside_the_process_is_no_name_of_weights(tmp_path, monkeypatch):
    (tmp_path / "run").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=r"or the path of .*, such as run.model\.safetensors$"):
        find_weights("run")
    with pytest.raises(InputError, match=r"or the path of a model\.safetensors$"):
        find_weights("other")


def test_a_folder_is_refused_with_what_to_give_instead(saved):
    assert refusal(saved.parent) == (
        f"{saved.parent} is a folder; give the model.safetensors file in it"
    )


@pytest.mark.parametrize("path", [".", "..", "/"])
def test_a_folder_without_a_name_is_refused_like_any_other(path):
    assert refusal(Path(path)) == f"{path} is a folder; give the model.safetensors file in it"


@pytest.mark.parametrize("inside", ["state.safetensors", "checkpoints/step-00000020/state.json"])
def test_a_checkpoint_or_a_run_without_weights_is_refused_with_what_writes_some(tmp_path, inside):
    folder = tmp_path / "my run"
    (folder / inside).parent.mkdir(parents=True)
    (folder / inside).write_bytes(b"")
    assert f"`puicl average '{folder}' --out FILE.safetensors`" in refusal(folder)
    (folder / "model.safetensors").write_bytes(b"")
    assert refusal(folder) == f"{folder} is a folder; give the model.safetensors file in it"


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "[1]", "3", "null", '"model"', "{}", pytest.param("[" * 10**5, id="deep")],
)
def test_a_card_that_is_no_card_is_refused(saved, text):
    saved.with_suffix(".json").write_text(text, encoding="utf-8")
    assert str(saved) in refusal(saved)


def test_a_card_that_is_not_text_is_refused(saved):
    saved.with_suffix(".json").write_bytes(b"\xff\xfe\x00\x80")
    assert "damaged" in refusal(saved)


def test_a_card_without_a_digest_is_refused(saved):
    card = json.loads(saved.with_suffix(".json").read_text(encoding="utf-8"))
    del card["weights_digest"]
    saved.with_suffix(".json").write_text(json.dumps(card), encoding="utf-8")
    assert "weights_digest" in refusal(saved)


@pytest.mark.parametrize(
    "changes",
    [
        *({"layers": 3}, {"feedforward_size": 13}, {"layers": -1}, {"heads": 3}, {"layer": 2}),
        *({"feedforward_size": 2**40}, {"embedding_size": 2**24}, {"thinking_rows": 2**40}),
    ],
    ids=[
        *("more layers", "another size", "negative", "not a divisor", "unknown key"),
        *("beyond memory", "wide beyond memory", "long beyond memory"),
    ],
)
def test_a_card_of_another_model_is_refused_in_one_line(saved, changes):
    edit_card(saved, model={**CONFIG.model_dump(), **changes})
    message = refusal(saved)
    assert str(saved) in message
    assert "\n" not in message


class Payload:
    """Creates a file when unpickled."""

    def __init__(self, target: Path):
        self.target = target

    def __reduce__(self):
        return Path.touch, (self.target,)


def test_a_pickle_under_the_name_of_weights_is_refused_and_not_run(saved, tmp_path):
    ran = tmp_path / "ran"
    saved.write_bytes(pickle.dumps(Payload(ran)))
    assert "damaged" in refusal(saved)
    torch.save({"weights": Payload(ran)}, saved)
    assert "damaged" in refusal(saved)
    assert not ran.exists()
    pickle.loads(pickle.dumps(Payload(ran)))  # the payload itself works
    assert ran.exists()
