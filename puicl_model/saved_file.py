"""The file of a saved classifier: safetensors whose header holds JSON, with digests of both.

Nothing is pickled. What the JSON and the arrays mean is said in `saving`.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from puicl_config import InputError, write_atomically
from puicl_model.weights import weights_digest

_FAMILY = "puicl-classifier-"
# `saving` says what each adds that readers of earlier ones do not know or would misread.
_FORMATS = tuple(f"{_FAMILY}{number}" for number in range(1, 9))


def write_saved(
    path: str | Path, number: int, about: dict[str, Any], arrays: dict[str, np.ndarray]
) -> None:
    """Write plain data `about` and `arrays` to `path` in format `number`, atomically.

    Raises `ValueError` if `about` is not plain data, or exceeds the file's header (100 MB), and
    `InputError` if the folder of `path` does not exist.
    """
    arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    about = {"format": f"{_FAMILY}{number}", **about, "arrays_digest": _digest(arrays)}
    try:
        text = json.dumps(about, default=_plain)
    except TypeError as error:
        raise ValueError(f"a parameter is no plain data and cannot be saved: {error}") from None
    try:
        content = save(arrays, metadata={"puicl": text, "puicl_digest": _text_digest(text)})
    except SafetensorError as error:  # the header is limited to 100 MB
        raise ValueError(f"names and levels of columns exceed the file's header: {error}") from None
    write_atomically(Path(path), _in_order(content))


def read_saved(path: str | Path) -> tuple[dict[str, Any], dict[str, np.ndarray], bool]:
    """The file's JSON, its arrays, and whether it holds digests (which have then been checked).

    Raises `InputError` if the file is missing, damaged or something else.
    """
    if Path(path).is_dir():
        raise InputError(f"{path} is a folder, no saved classifier")
    try:
        with safe_open(path, framework="np") as file:
            header = file.metadata() or {}
            text = header.get("puicl", "{}")
            about = json.loads(text)
            # Other files, such as weights, may hold types that numpy lacks.
            names = file.keys() if "puicl" in header else ()
            arrays = {name: file.get_tensor(name) for name in names}
    except FileNotFoundError:
        raise InputError(f"no file {path}") from None
    except (OSError, ValueError, RecursionError, SafetensorError) as error:
        raise InputError(f"{path} is no saved classifier: {error}") from None
    if not isinstance(about, dict):
        about = {}
    if str(about.get("format")).startswith(_FAMILY) and about["format"] not in _FORMATS:
        raise InputError(
            f"{path} was saved by a newer version of puicl ({about['format']}): upgrade to read it"
        )
    if about.get("format") not in _FORMATS:
        hint = "" if "puicl" in header else "; weights go to PUICLClassifier(model=...)"
        raise InputError(f"{path} is no saved classifier: it lacks the format {_FORMATS[0]}{hint}")
    # Files of older versions have no digests.
    if header.get("puicl_digest") not in (None, _text_digest(text)):
        raise InputError(f"{path} is damaged: its JSON header has changed since it was saved")
    if about.get("arrays_digest") not in (None, _digest(arrays)):
        raise InputError(f"{path} is damaged: its arrays are not those that were saved")
    return about, arrays, "puicl_digest" in header


def packed(value: Any, name: str, arrays: dict[str, np.ndarray]) -> Any:
    """Move the arrays in `value` to `arrays`, and return `value` with references in their place."""
    if isinstance(value, np.ndarray):
        arrays[name] = value
        return {"array": name}
    if isinstance(value, dict):
        return {key: packed(each, f"{name}.{key}", arrays) for key, each in value.items()}
    if isinstance(value, list):
        return [packed(each, f"{name}.{place}", arrays) for place, each in enumerate(value)]
    return value


def unpacked(value: Any, arrays: dict[str, np.ndarray]) -> Any:
    """Undo `packed`."""
    if isinstance(value, dict):
        if value.keys() == {"array"}:
            return arrays[value["array"]]
        return {key: unpacked(each, arrays) for key, each in value.items()}
    if isinstance(value, list):
        return [unpacked(each, arrays) for each in value]
    return value


def _in_order(content: bytes) -> bytes:
    """Sort the metadata in the header of a safetensors file, whose order varies between calls.

    This way a classifier is saved as the same bytes, with the same digest, each time.
    """
    end = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:end])
    header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return b"".join((len(text).to_bytes(8, "little"), text, memoryview(content)[end:]))


def _digest(arrays: dict[str, np.ndarray]) -> str:
    # Copied, because arrays from a file may be read-only, about which torch warns.
    return weights_digest({name: torch.from_numpy(array.copy()) for name, array in arrays.items()})


def _text_digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _plain(value: Any) -> Any:
    """Convert numpy scalars and arrays for JSON; raise `TypeError` for anything else."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} {value!r}")
