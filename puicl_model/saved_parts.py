"""What a saved classifier is made of: its parts as arrays by name and, for the rest, plain data."""

from typing import Any

import numpy as np

from puicl_model.ensemble import NewRows, Reference
from puicl_model.kernel_axes import ForestAxes, GaussianAxes
from puicl_model.kernel_reading import KernelReader
from puicl_model.model import PUICL
from puicl_model.preprocessing import scaling_from_state
from puicl_model.trees import Forest


def put(prefix: str, part: Any, arrays: dict[str, np.ndarray]) -> None:
    """Put what `part` lists as its `arrays` among `arrays`."""
    arrays |= {f"{prefix}.{name}": getattr(part, name) for name in part.arrays}


def taken(prefix: str, kind: Any, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What `put` put there of one of this kind."""
    return {name: arrays[f"{prefix}.{name}"] for name in kind.arrays}


def put_references(
    new_rows: NewRows, prefix: str, arrays: dict[str, np.ndarray]
) -> tuple[list[list], bool]:
    """What is to be known of the references, and whether some column of them is turned."""
    known, turned = [], False
    for number, reference in enumerate(new_rows.references):
        for name in ("rows", "columns", "signs"):
            arrays[f"{prefix}.{number}.{name}"] = getattr(reference, name)
        turned |= bool((reference.signs < 0).any())
        known.append([reference.estimators, reference.scaling, reference.n_labeled])
    return known, turned


def new_rows_from(
    network: PUICL,
    references: list[list],
    scalings: list[dict[str, Any]],
    prefix: str,
    arrays: dict[str, np.ndarray],
) -> NewRows:
    """Scores against the references of which `put_references` knew that."""
    states = unpacked(scalings, arrays)
    found = []
    for number, (estimators, scaling, n_labeled) in enumerate(references):
        columns = arrays[f"{prefix}.{number}.columns"]
        found.append(
            Reference(
                # One number in files of older versions.
                tuple(estimators) if isinstance(estimators, list) else (estimators,),
                scaling,
                columns,
                # Older versions turned no column.
                arrays.get(f"{prefix}.{number}.signs", np.ones(len(columns))),
                n_labeled,
                arrays[f"{prefix}.{number}.rows"],
            )
        )
    return NewRows(network, found, {state["kind"]: scaling_from_state(state) for state in states})


def put_reader(reader: KernelReader, prefix: str, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """What is to be known of a reader; its arrays are put among `arrays`."""
    axes: Forest | GaussianAxes
    if isinstance(reader.axes, ForestAxes):
        kind, axes = "forest", reader.axes.forest
    else:
        kind, axes = "gaussian", reader.axes
    put(f"{prefix}.axes", axes, arrays)
    references, _ = put_references(reader.new_rows, f"{prefix}.reference", arrays)
    states = [scaling.state() for scaling in reader.new_rows.scalings.values()]
    scalings = packed(states, f"{prefix}.scaling", arrays)
    return {"kernel": kind, "references": references, "scalings": scalings}


def reader_from(
    network: PUICL, state: dict[str, Any], prefix: str, arrays: dict[str, np.ndarray]
) -> KernelReader:
    """The reader of which `put_reader` knew that."""
    axes: ForestAxes | GaussianAxes
    if state["kernel"] == "forest":
        axes = ForestAxes(Forest(**taken(f"{prefix}.axes", Forest, arrays)))
    else:
        axes = GaussianAxes(**taken(f"{prefix}.axes", GaussianAxes, arrays))
    new_rows = new_rows_from(
        network, state["references"], state["scalings"], f"{prefix}.reference", arrays
    )
    return KernelReader(axes, new_rows)


def packed(value: Any, name: str, arrays: dict[str, np.ndarray]) -> Any:
    """`value` with its arrays put among `arrays`, and their names there in their places."""
    if isinstance(value, np.ndarray):
        arrays[name] = value
        return {"array": name}
    if isinstance(value, dict):
        return {key: packed(each, f"{name}.{key}", arrays) for key, each in value.items()}
    if isinstance(value, list):
        return [packed(each, f"{name}.{place}", arrays) for place, each in enumerate(value)]
    return value


def unpacked(value: Any, arrays: dict[str, np.ndarray]) -> Any:
    """What `packed` made this of."""
    if isinstance(value, dict):
        if value.keys() == {"array"}:
            return arrays[value["array"]]
        return {key: unpacked(each, arrays) for key, each in value.items()}
    if isinstance(value, list):
        return [unpacked(each, arrays) for each in value]
    return value
