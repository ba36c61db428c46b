"""From a YAML file and `section.key=value` overrides to a checked `Config`."""

import difflib
import re
import reprlib
from collections.abc import Hashable, Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError

from puicl_config.errors import InputError
from puicl_config.schema import Config

# Keys whose values are expressions, which need not be valid YAML.
_EXPRESSIONS = ("train.where",)
# Abbreviates values in messages: with YAML's aliases, a few lines can make a list that would fill
# all memory when written out.
_SHOWN = reprlib.Repr()
_SHOWN.maxlevel, _SHOWN.maxlist, _SHOWN.maxtuple = 2, 20, 20
_SHOWN.maxstring = _SHOWN.maxlong = _SHOWN.maxother = 200
# Most keys of a mapping into which others are merged; all sections together have fewer.
_MOST_MERGED = 1000
# The shipped configs are inside the package in an installed wheel, and beside it in a checkout.
_SHIPPED = (Path(__file__).parent / "configs", Path(__file__).parent.parent / "configs")


def find_config(name: str | Path) -> Path:
    """Resolve `name`: a path, `configs/NAME[.yaml]` here, or a shipped config, in this order.

    Raises `InputError` if there is no such config.
    """
    wanted = Path(name)
    file_name = wanted.name if wanted.suffix else f"{wanted.name}.yaml"
    places = [wanted, Path("configs") / file_name, *(folder / file_name for folder in _SHIPPED)]
    if len(wanted.parts) > 1 and wanted.parts[0] != "configs":
        places = [wanted]  # an explicit path elsewhere must not fall back to a shipped file
    for place in places:
        if _is_file(place):
            return place
    if _is_file(wanted / "manifest.json"):
        raise InputError(f"{wanted} is a folder of shards: give {wanted}/manifest.json")
    if len(places) == 1:
        raise InputError(f"no config {str(name)!r}: there is no such file")
    known = sorted({path.stem for folder in _SHIPPED for path in folder.glob("*.yaml")})
    if near := difflib.get_close_matches(wanted.stem, known):
        raise InputError(f"no config {str(name)!r}: did you mean {' or '.join(near)}?")
    raise InputError(f"no config {str(name)!r}: give a YAML file or one of {', '.join(known)}")


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a name too long for the file system
        return False


def load_config(name: str | Path = "paper", overrides: Sequence[str] = ()) -> Config:
    """Read a config, apply `section.key=value` overrides, and check everything at once.

    Raises `InputError` if the file is missing or cannot be read, if an override is malformed, or if
    the config is invalid; the message then lists every unknown key (with the most similar known
    one) and every invalid value.
    """
    path = find_config(name)
    try:
        raw = yaml.load(path.read_text(encoding="utf-8"), Loader=_YamlLoader)
    except (yaml.YAMLError, ValueError) as error:  # ValueError: not UTF-8, a bad date or number
        raise InputError(f"{path} is not valid YAML: {' '.join(str(error).split())}") from error
    except RecursionError:
        raise InputError(f"{path} is not valid YAML: it is nested too deeply") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from None
    if raw is None:
        raw = {}
    if not isinstance(raw, dict):
        raise InputError(f"{path} must hold a mapping of sections, not a {type(raw).__name__}")
    for override in overrides:
        _apply(raw, override)
    return parse_config(raw, where=str(path), overrides=overrides)


def parse_config(raw: dict[str, Any], where: str, overrides: Sequence[str] = ()) -> Config:
    """Validate plain data.

    In error messages, `where` names the origin of the data; those of `overrides` (already applied)
    that set an invalid key, a section with one, or a key in an invalid section are named, too.
    Raises `InputError` listing every problem, as `load_config` does.
    """
    try:
        return Config.model_validate(raw)
    except ValidationError as error:
        # What concerns several sections has no path, and its sentence names the keys itself.
        paths = [[str(step) for step in problem["loc"]] for problem in error.errors()]
        wrong = [path for path in paths if path]
        given = [
            override
            for override in overrides
            if any(_one_holds_the_other(path, _steps_of(override)) for path in wrong)
        ]
        if given:
            where += f" with {', '.join(given)}"
        problems = "; ".join(_sentences(error))
        raise InputError(f"{where}: {problems}") from None


def config_yaml(config: Config) -> str:
    """The resolved config as YAML text: all keys, but newer ones only where they are used."""
    return yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False)


_INT, _FLOAT = "tag:yaml.org,2002:int", "tag:yaml.org,2002:float"


class _YamlLoader(yaml.SafeLoader):
    """A safe loader that refuses duplicate keys and reads numbers without YAML 1.1's surprises.

    1e-4 is a number (YAML 1.1 requires 1.0e-4). 010 is text, which counts as ten, not eight, where
    a number is expected. 1:30 is not a number.
    """

    def __init__(self, stream):
        super().__init__(stream)
        self._checked = set()  # mappings whose own keys were checked

    def flatten_mapping(self, node):
        # Checked before it holds what is merged into it, too: a key of its own may replace one.
        self._refuse_keys_twice(node)
        before = len(node.value)
        super().flatten_mapping(node)
        # With aliases, merges of merges would make a few lines fill all memory.
        if len(node.value) > max(before, _MOST_MERGED):
            raise yaml.constructor.ConstructorError(
                None, None, f"`<<` merges more than {_MOST_MERGED} keys", node.start_mark
            )

    def _refuse_keys_twice(self, node):
        if node in self._checked:
            return
        self._checked.add(node)
        merge = "tag:yaml.org,2002:merge"  # `<<`, which may occur several times
        written = [key for key, _ in node.value if key.tag != merge]
        seen = set()
        for key in (self.construct_object(key, deep=True) for key in written):
            if not isinstance(key, Hashable):  # refused later, and not shown: it may be endless
                break
            if key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key!r} is written twice", node.start_mark
                )
            seen.add(key)


_YamlLoader.yaml_implicit_resolvers = {
    first: [resolver for resolver in resolvers if resolver[0] not in (_INT, _FLOAT)]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_YamlLoader.add_implicit_resolver(
    _INT,
    # Python writes out no number of more than 4,300 digits, and so no message could show it.
    re.compile(r"^[-+]?(0|[1-9][0-9_]*|0x[0-9a-fA-F_]{1,1000}|0b[01_]{1,1000})$"),
    list("-+0123456789"),
)
_YamlLoader.add_implicit_resolver(
    _FLOAT,
    re.compile(r"^[-+]?(([0-9][0-9_]*)?\.[0-9_]+|[0-9][0-9_]*\.)([eE][-+]?[0-9]+)?$"),
    list("-+0123456789."),
)
_YamlLoader.add_implicit_resolver(
    _FLOAT, re.compile(r"^([-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))$"), list("-+.")
)
_YamlLoader.add_implicit_resolver(
    _FLOAT,
    re.compile(r"^[-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+$"),
    list("-+0123456789"),
)


def _steps_of(override: str) -> list[str]:
    return override.partition("=")[0].strip().split(".")


def _one_holds_the_other(path: Sequence[str], other: Sequence[str]) -> bool:
    """Whether the paths are the same or one begins with the other; none of them is empty."""
    return all(step == its for step, its in zip(path, other, strict=False))


def _apply(raw: dict[str, Any], override: str) -> None:
    key, equals, text = override.partition("=")
    steps = _steps_of(override)
    if not equals or not all(steps):
        raise InputError(f"override {override!r} is not of the form section.key=value")
    if not text.strip():
        raise InputError(f"override {override!r} has no value; write null for none")
    try:
        value = yaml.load(text, Loader=_YamlLoader)
    except (yaml.YAMLError, ValueError, RecursionError):
        if key.strip() not in _EXPRESSIONS:
            raise InputError(f"override {override!r}: {text!r} is not a YAML value") from None
        # Such as 'tanh' in activations: to YAML, a quoted string and trailing text.
        value = text.strip()
    for step in steps[:-1]:
        section = raw.get(step, {})
        if not isinstance(section, dict):
            raise InputError(f"override {override!r}: {step} is a value, not a section")
        # A copy, since YAML's aliases may let several keys share one mapping.
        raw[step] = dict(section)
        raw = raw[step]
    raw[steps[-1]] = value


def _sentences(error: ValidationError) -> Iterator[str]:
    for problem in error.errors():
        path = [str(step) for step in problem["loc"]]
        if problem["type"] == "extra_forbidden":
            known = _known_keys(path[:-1])
            near = difflib.get_close_matches(path[-1], known, n=1, cutoff=0.5)
            # Most often a key of another section, written without it: `sampler=shuffled`.
            meant = list(_places_of(path[-1])) or [".".join([*path[:-1], word]) for word in near]
            hint = (
                f"did you mean {' or '.join(meant)}?"
                if meant
                else f"known there: {', '.join(known)}"
            )
            yield f"unknown key {'.'.join(path)}; {hint}"
        else:
            reason = problem["msg"].removeprefix("Value error, ")
            reason = reason[:1].lower() + reason[1:]
            got = problem["input"]
            shown = "" if isinstance(got, dict) else f", got {_SHOWN.repr(got)}"
            place = ".".join(_readable(path))
            yield f"{place}: {reason}{shown}" if place else f"{reason}{shown}"


def _known_keys(path: Sequence[str]) -> list[str]:
    model: Any = Config
    for step in path:
        model = model.model_fields[step].annotation
    return list(model.model_fields)


def _places_of(key: str, model: Any = Config, above: str = "") -> Iterator[str]:
    """The dotted paths of all keys with this name."""
    for name, field in model.model_fields.items():
        if name == key:
            yield above + name
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from _places_of(key, field.annotation, f"{above}{name}.")


def _readable(path: Sequence[str]) -> list[str]:
    """Drop the parts of a location that pydantic adds to name the branch of a union."""
    return [step for step in path if not any(sign in step for sign in "[(-")]
