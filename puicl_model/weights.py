"""Weights on disk: `NAME.safetensors`, and `NAME.json` beside it with what they are."""

import hashlib
import json
import shlex
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save

from puicl_config import InputError, ModelConfig, parse_config, write_atomically
from puicl_model.model import PUICL

# What comes with the package: NAME.safetensors and NAME.json.
_SHIPPED = Path(__file__).parent / "weights"


def shipped_weights() -> list[str]:
    """Names of the weights that come with the package, "default" first where it is among them."""
    names = (path.stem for path in _SHIPPED.glob("*.safetensors"))
    return sorted(names, key=lambda name: (name != "default", name))


def find_weights(model: str | Path | None) -> Path:
    """The file of `model`: a name of the shipped ones (None: "default"), or a path.

    A name without a dot or a slash is never taken for a path. Raises `InputError` where no such
    weights ship.
    """
    name = "default" if model is None else str(model)
    if Path(name).name != name or Path(name).suffix:
        return Path(name)
    if name in shipped_weights():
        return _SHIPPED / f"{name}.safetensors"
    there = ", ".join(shipped_weights()) or "none"
    path = "the path of a model.safetensors"
    if Path(name).is_dir():  # a run's, named from beside it
        path += f", such as {Path(name, 'model.safetensors')}"
    raise InputError(
        f"no weights named {name!r} come with this package (there are: {there}); "
        f"give one of them, or {path}"
    )


def refuse_folder(path: Path) -> None:
    """Raise `InputError`, which says what to give instead, where weights' `path` is a folder."""
    if not path.is_dir():
        return
    # A run that has not ended, or one of its checkpoints, has none that could be given.
    has_own = (path / "state.safetensors").is_file() or (path / "checkpoints").is_dir()
    if has_own and not (path / "model.safetensors").is_file():
        raise InputError(
            f"{path} holds no model.safetensors, which a run writes when it ends: write weights "
            f"from checkpoints with `puicl average {shlex.quote(str(path))} --out FILE.safetensors`"
        )
    raise InputError(f"{path} is a folder; give the model.safetensors file in it")


def weights_digest(tensors: Mapping[str, torch.Tensor]) -> str:
    """Hex SHA-256 over names, shapes, dtypes and bytes, in the order of the names."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        tensor = tensors[name].detach().cpu().contiguous()
        digest.update(f"{name}:{tensor.dtype}:{list(tensor.shape)}\0".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def load_model(path: str | Path) -> tuple[PUICL, dict[str, Any]]:
    """A model in evaluation mode and its card, from the safetensors file at `path`.

    Raises `InputError` where a file is missing or damaged, the weights do not match the card, or
    some of them are not finite.
    """
    path = Path(path)
    card_path = path.with_suffix(".json")
    refuse_folder(path)
    for file in (path, card_path):
        if not file.is_file():
            raise InputError(f"no weights at {path}: {file} is missing")
    try:
        card = json.loads(card_path.read_text(encoding="utf-8"))
        tensors = load_file(path)
    except (ValueError, SafetensorError) as error:
        raise InputError(f"the weights at {path} are damaged: {error}") from None
    needed = ("model", "weights_digest")
    if not isinstance(card, dict) or any(key not in card for key in needed):
        raise InputError(
            f"the weights at {path} have no model card: {card_path.name} must hold "
            f"{' and '.join(needed)}"
        )
    config = parse_config(
        {"model": card["model"]}, where=f"the weights at {path}, {card_path.name}"
    ).model
    if weights_digest(tensors) != card["weights_digest"]:
        raise InputError(f"the weights at {path} do not match the digest in {card_path.name}")
    told = f"{path} does not hold the network that {card_path.name} describes"
    model = network_of(config, tensors, told)
    for name, tensor in model.state_dict().items():
        if not tensor.isfinite().all():
            raise InputError(f"the weights at {path} are of no use: {name} is not finite")
    return model, card


def network_of(config: ModelConfig, tensors: Mapping[str, torch.Tensor], told: str) -> PUICL:
    """The network of `config` that holds `tensors`, frozen and in evaluation mode.

    Raises `InputError`, which begins with `told`, where they are not its own. What makes it large
    is looked at before it is made: a card of some bytes may name any size.
    """
    _check_shapes(_large(config), tensors, told)
    model = PUICL(config)
    own = model.state_dict()
    names = sorted(own.keys() | tensors.keys())
    _check_shapes(((name, _shape(own, name)) for name in names), tensors, told)
    model.load_state_dict(tensors)
    return model.eval().requires_grad_(False)


def _large(config: ModelConfig) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Names and shapes of tensors that all others are in proportion to, block by block."""
    width, inner = config.embedding_size, config.feedforward_size
    yield "feature_encoder.weight", (width, len(config.feature_group))
    if config.thinking_rows:
        yield "thinking_rows", (config.thinking_rows, width)
    for number in range(config.layers):
        yield f"blocks.{number}.row_attention.qkv.weight", (3 * width, width)
        yield f"blocks.{number}.feedforward.inner.weight", (inner, width)


def _check_shapes(
    expected: Iterable[tuple[str, tuple[int, ...] | None]],
    tensors: Mapping[str, torch.Tensor],
    told: str,
) -> None:
    for name, shape in expected:
        if _shape(tensors, name) != shape:
            raise InputError(f"{told}: {name} is {_shape(tensors, name)} instead of {shape}")


def save_model(
    path: str | Path,
    tensors: Mapping[str, torch.Tensor],
    card: dict[str, Any],
    writer: str = "",
) -> None:
    """Write weights and card, each atomically, the card last: only then do they count.

    `card` needs the key `model`, the `ModelConfig` as plain data; the digest is added here.
    `writer` is that of `write_atomically`.
    """
    path = Path(path)
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    card = {**card, "weights_digest": weights_digest(tensors)}
    write_atomically(path, save(tensors), writer)
    text = json.dumps(card, indent=1) + "\n"
    write_atomically(path.with_suffix(".json"), text.encode(), writer)


def _shape(tensors: Mapping[str, torch.Tensor], name: str) -> tuple[int, ...] | None:
    return tuple(tensors[name].shape) if name in tensors else None
