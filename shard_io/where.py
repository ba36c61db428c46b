"""`where`: a small language over the tags of a microbatch, such as `causal and n_features <= 10`.

`prior-gen slice --where` and the trainer's `train.where` use it. An expression compares tags with
numbers, strings, True, False and None, joined by and, or, not and parentheses. Python parses the
expression and this module evaluates the syntax tree; nothing is ever executed.
"""

import ast
import difflib
import operator
from collections.abc import Callable, Mapping
from typing import Any

from puicl_config import InputError
from shard_io.tags import SYMBOLS, TAGS, check_comparable

_COMPARISONS = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.In: lambda item, container: item in container,
    ast.NotIn: lambda item, container: item not in container,
}
_LONGEST = 2000
Tags = Mapping[str, Any]


def parse_where(text: str) -> Callable[[Tags], bool]:
    """Compile the expression to a test of one microbatch's tags.

    In it, `pi` is the mean over the microbatch's tasks, and `extensions` holds the names of the
    microbatch's extensions (none for the paper's prior).

    Raises `InputError` if the text is not such an expression, names an unknown tag, or compares a
    tag with something it can never be. The test raises `InputError` if a comparison is undefined
    for a tag's value.
    """
    if len(text) > _LONGEST:
        raise InputError(f"where is {len(text)} characters long; at most {_LONGEST} are read")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
        _check(tree, text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"where {text!r} cannot be read; write for example 'causal and n_features <= 10'"
        ) from None

    def test(tags: Tags) -> bool:
        pi, names = sum(tags["pi"]) / len(tags["pi"]), tuple(tags.get("extensions") or ())
        return _truth(tree, {**tags, "pi": pi, "extensions": names})

    return test


def _check(node: ast.expr, text: str) -> None:
    """Raise `InputError` for anything outside the language and for unknown tags."""
    match node:
        case ast.Name(id=name):
            if SYMBOLS.get(name, name) not in TAGS:
                known = [*TAGS, *SYMBOLS]
                near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
                hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(known)}"
                raise InputError(f"where {text!r}: there is no tag {name!r}; {hint}")
        case ast.Constant(value=bool() | int() | float() | str() | None):
            pass
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float())):
            pass
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            _check(operand, text)
        case ast.BoolOp(values=values) | ast.Tuple(elts=values) | ast.List(elts=values):
            for value in values:
                _check(value, text)
        case ast.Compare(left=left, ops=ops, comparators=comparators):
            for operation in ops:
                if type(operation) not in _COMPARISONS:
                    raise InputError(f"where {text!r}: write == or != instead of `is`")
            values = [left, *comparators]
            for value in values:
                _check(value, text)
            for place, operation in enumerate(ops):
                check_comparable(values[place], operation, values[place + 1], text)
        case _:
            piece = ast.get_source_segment(text.strip(), node) or text
            raise InputError(
                f"where {text!r}: {piece!r} is not allowed; compare tags with values, and join "
                "comparisons by and, or, not"
            )


def _truth(node: ast.expr, tags: Tags) -> bool:
    match node:
        case ast.BoolOp(op=ast.And(), values=values):
            return all(_truth(value, tags) for value in values)
        case ast.BoolOp(values=values):
            return any(_truth(value, tags) for value in values)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return not _truth(operand, tags)
        case ast.Compare(left=left, ops=ops, comparators=comparators):
            return _compare([left, *comparators], ops, tags)
    value = _value(node, tags)
    if not isinstance(value, bool):
        raise InputError(
            f"where: {ast.unparse(node)} is {value!r}, neither true nor false; compare it with "
            "something"
        )
    return value


def _compare(nodes: list[ast.expr], ops: list[ast.cmpop], tags: Tags) -> bool:
    values = [_value(node, tags) for node in nodes]
    for place, operation in enumerate(ops):
        left, right = values[place], values[place + 1]
        try:
            if not _COMPARISONS[type(operation)](left, right):
                return False
        except TypeError:
            pair = ast.unparse(ast.Compare(nodes[place], [operation], [nodes[place + 1]]))
            raise InputError(f"where: {pair} compares {left!r} with {right!r}") from None
    return True


def _value(node: ast.expr, tags: Tags) -> Any:
    match node:
        case ast.Name(id=name):
            value = tags[SYMBOLS.get(name, name)]
            return tuple(value) if isinstance(value, list) else value
        case ast.Constant(value=value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
            return -value
        case ast.Tuple(elts=values) | ast.List(elts=values):
            return tuple(_value(value, tags) for value in values)
    return _truth(node, tags)
