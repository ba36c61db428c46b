"""Weights on disk: tensors in `NAME.safetensors`, and their model card in `NAME.json` beside it."""

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

# Weights shipped with the package: NAME.safetensors and NAME.json.
_SHIPPED = Path(__file__).parent / "weights"


def shipped_weights() -> list[str]:
    """Names of the weights shipped with the package, sorted, but "default" first if it is there."""
    names = (path.stem for path in _SHIPPED.glob("*.safetensors"))
    return sorted(names, key=lambda name: (name != "default", name))


def find_weights(model: str | Path | None) -> Path:
    """Path of the weights' file for `model`: a shipped name (None means "default") or a path.

    A string without a dot or a slash is always taken as a name. Raises `InputError` if no weights
    of that name are shipped. Whether a path exists is not checked.
    """
    name = "default" if model is None else str(model)
    if Path(name).name != name or Path(name).suffix:
        return Path(name)
    if name in shipped_weights():
        return _SHIPPED / f"{name}.safetensors"
    there = ", ".join(shipped_weights()) or "none"
    path = "the path of a model.safetensors"
    if Path(name).is_dir():  # probably a training run's folder, given by its bare name
        path += f", such as {Path(name, 'model.safetensors')}"
    raise InputError(
        f"no weights named {name!r} come with this package (there are: {there}); "
        f"give one of them, or {path}"
    )


def refuse_folder(path: Path) -> None:
    """Raise `InputError`, saying what to give instead, if the weights' `path` is a folder."""
    if not path.is_dir():
        return
    # An unfinished run, or one of its checkpoints, holds no model.safetensors to point to.
    has_own = (path / "state.safetensors").is_file() or (path / "checkpoints").is_dir()
    if has_own and not (path / "model.safetensors").is_file():
        raise InputError(
            f"{path} holds no model.safetensors, which a run writes when it ends: write weights "
            f"from checkpoints with `puicl average {shlex.quote(str(path))} --out FILE.safetensors`"
        )
    raise InputError(f"{path} is a folder; give the model.safetensors file in it")


def weights_digest(tensors: Mapping[str, torch.Tensor]) -> str:
    """Hex SHA-256 of all tensors' names, dtypes, shapes and bytes, in the sorted order of names."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        tensor = tensors[name].detach().cpu().contiguous()
        digest.update(f"{name}:{tensor.dtype}:{list(tensor.shape)}\0".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def load_model(path: str | Path) -> tuple[PUICL, dict[str, Any]]:
    """Load a model, frozen and in evaluation mode, and its card from the safetensors at `path`.

    The card is the `.json` file of the same name beside it. Raises `InputError` if `path` is a
    folder, if a file is missing or damaged, if the weights do not match the card, or if some of
    them are not finite.
    """
    path = Path(path)
    refuse_folder(path)  # first, because a path such as "." has no name to give a suffix to
    card_path = path.with_suffix(".json")
    for file in (path, card_path):
        if not file.is_file():
            raise InputError(f"no weights at {path}: {file} is missing")
    try:
        card = json.loads(card_path.read_text(encoding="utf-8"))
        tensors = load_file(path)
    except (ValueError, RecursionError, SafetensorError) as error:
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
    """Build the network of `config` with weights `tensors`, frozen and in evaluation mode.

    Raises `InputError`, beginning with `told`, if names or shapes of the tensors do not fit. The
    shapes that determine the network's size are checked before it is allocated, because a small
    damaged card could demand any amount of memory.
    """
    _check_shapes(_large(config), tensors, told)
    model = PUICL(config)
    own = model.state_dict()
    names = sorted(own.keys() | tensors.keys())
    _check_shapes(((name, _shape(own, name)) for name in names), tensors, told)
    model.load_state_dict(tensors)
    return model.eval().requires_grad_(False)


def _large(config: ModelConfig) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield names and shapes of the tensors that determine the sizes of all others."""
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
    """Write weights to `path` and the card to the `.json` file beside it, each atomically.

    The card is written last: weights without a card do not count. `card` needs the key `model`, the
    `ModelConfig` as plain data; `weights_digest` is added here. `writer`: see `write_atomically`.
    Raises `InputError` if the folder of `path` does not exist.
    """
    path = Path(path)
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    card = {**card, "weights_digest": weights_digest(tensors)}
    write_atomically(path, save(tensors), writer)
    text = json.dumps(card, indent=1) + "\n"
    write_atomically(path.with_suffix(".json"), text.encode(), writer)


def _shape(tensors: Mapping[str, torch.Tensor], name: str) -> tuple[int, ...] | None:
    return tuple(tensors[name].shape) if name in tensors else None
