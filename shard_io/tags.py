"""The tags of a microbatch that `where` may use, and the values that each can have."""

import ast
import difflib
import re
from typing import get_args

from puicl_config import EXTENSIONS, InputError, PriorConfig

# The paper's symbols for tags.
SYMBOLS = {
    "d": "n_features",
    "P": "n_labeled",
    "n_u": "n_unlabeled",
    "h": "hidden_width",
    "L_g": "hidden_layers",
    "k": "n_causes",
}
TAGS = (
    *("stage", "step", "index", "n_features", "n_labeled", "n_unlabeled", "eta", "pi"),
    *("hidden_layers", "hidden_width", "n_causes", "sigma_noise", "input_distribution"),
    *("activations", "causal", "source", "label_position", "ordering", "extensions"),
)


def _allowed(key: str) -> tuple[str, ...]:
    """The words that the list `prior.<key>` may contain."""
    return get_args(get_args(PriorConfig.model_fields[key].annotation)[0])


# The words that a tag can be or contain. All other tags are numbers, except `causal`, a bool.
WORDS = {
    "input_distribution": _allowed("input_distributions"),
    "activations": _allowed("activations"),
    "source": (*_allowed("noncausal_sources"), *_allowed("causal_sources")),
    "label_position": _allowed("label_positions"),
    "ordering": _allowed("feature_orderings"),
    "extensions": ("ranges", *EXTENSIONS),
}
_LISTS = ("activations", "extensions")
_NUMBER, _TEXT, _LIST, _TRUTH = "a number", "a text", "a list", "true or false"


def check_comparable(left: ast.expr, operation: ast.cmpop, right: ast.expr, text: str) -> None:
    """Raise `InputError` if `==`, `!=`, `in` or `not in` has the same result for all microbatches.

    This is so if the two sides are of different kinds, or if a tag never has the word. None is
    comparable with everything, and 0 and 1 are comparable with true and false.
    """
    match operation, right:
        case ast.Eq() | ast.NotEq(), _:
            _check_equal(left, right, text, ast.Compare(left, [operation], [right]))
        case ast.In() | ast.NotIn(), ast.Tuple(elts=items) | ast.List(elts=items):
            for item in items:
                _check_equal(left, item, text)
        case ast.In() | ast.NotIn(), ast.Name() if _kind(right) == _LIST:
            _check_item(left, right, text)


def _check_equal(
    left: ast.expr, right: ast.expr, text: str, pair: ast.Compare | None = None
) -> None:
    """Check a comparison for equality.

    `pair` is the comparison by `==` or `!=`; None if `right` is an item of a list.
    """
    kinds = _kind(left), _kind(right)
    tag, other = (left, right) if isinstance(left, ast.Name) else (right, left)
    if None in kinds or (set(kinds) == {_TRUTH, _NUMBER} and _is_bit(left, right)):
        return
    if kinds[0] != kinds[1]:
        what = [f"{ast.unparse(node)} is {_kind(node)}" for node in (tag, other)]
        raise InputError(
            f"where {text!r}: {what[0]} and {what[1]}, which are never equal; "
            f"{_remedy(tag, other, pair)}"
        )
    if isinstance(tag, ast.Name) and kinds[0] == _TEXT:
        _check_word(other, tag, text)
    if isinstance(tag, ast.Name) and isinstance(other, ast.Tuple | ast.List):
        for item in other.elts:
            _check_item(item, tag, text)


def _check_item(item: ast.expr, tag: ast.Name, text: str) -> None:
    """Raise `InputError` unless the list `tag` can contain `item`."""
    if _kind(item) not in (None, _TEXT):
        raise InputError(
            f"where {text!r}: {tag.id} is a list of words, which never holds {ast.unparse(item)}; "
            f"write for example {WORDS[tag.id][0]!r} in {tag.id}"
        )
    _check_word(item, tag, text)


def _check_word(node: ast.expr, tag: ast.Name, text: str) -> None:
    words = WORDS[tag.id]
    match node:
        case ast.Constant(value=str(word)) if word not in words:
            near = difflib.get_close_matches(word, words, n=1, cutoff=0.5)
            known = ", ".join(map(repr, words)) + (", None" if tag.id == "label_position" else "")
            hint = f"did you mean {near[0]!r}?" if near else f"known: {known}"
            never = "never holds" if tag.id in _LISTS else "is never"
            raise InputError(f"where {text!r}: {tag.id} {never} {word!r}; {hint}")


def _kind(node: ast.expr) -> str | None:
    """The kind of an expression's value; None if the value is None."""
    match node:
        case ast.Name(id=name) if name in _LISTS:
            return _LIST
        case ast.Name(id=name) if name in WORDS:
            return _TEXT
        case ast.Constant(value=None):
            return None
        case ast.Constant(value=str()):
            return _TEXT
        case ast.Tuple() | ast.List():
            return _LIST
        case ast.Name(id="causal") | ast.Constant(value=bool()):
            return _TRUTH
        case ast.Name() | ast.Constant() | ast.UnaryOp(op=ast.USub()):
            return _NUMBER
    return _TRUTH


def _is_bit(*nodes: ast.expr) -> bool:
    """Whether one of the nodes is 0 or 1, which Python compares with True and False."""
    return any(isinstance(node, ast.Constant) and node.value in (0, 1) for node in nodes)


def _remedy(tag: ast.expr, other: ast.expr, pair: ast.Compare | None) -> str:
    """A hint at what to write instead of a comparison of different kinds."""
    name, value, kinds = ast.unparse(tag), ast.unparse(other), (_kind(tag), _kind(other))
    negated = pair is not None and isinstance(pair.ops[0], ast.NotEq)
    contained = "not in" if negated else "in"
    if pair and kinds == (_LIST, _TEXT):
        return f"write {value} {contained} {name}"
    if pair and isinstance(other, ast.Tuple | ast.List):
        return f"write {name} {contained} {value}"
    if isinstance(tag, ast.Name) and kinds[0] == _TRUTH:
        return f"write {name} or not {name}"
    match other:
        case ast.Constant(value=str(quoted)) if kinds[0] == _NUMBER and _is_number(quoted):
            right = f"{name} {'!=' if negated else '=='} {quoted}"
            return f"write {right if pair else f'{quoted} instead of {value}'}"
    return f"compare {name} with {kinds[0]}"


def _is_number(text: str) -> bool:
    return re.fullmatch(r"-?\d+(\.\d+)?", text) is not None
