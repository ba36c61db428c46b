"""The frozen base class of config sections, and value types that several sections use."""

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationInfo,
    field_validator,
    model_serializer,
)
from pydantic_core import PydanticSerializationError


def _ordered(interval: tuple) -> tuple:
    if interval[0] > interval[1]:
        raise ValueError(f"the lower end {interval[0]} lies above the upper end {interval[1]}")
    return interval


def _not_empty(values: tuple) -> tuple:
    if not values:
        raise ValueError("at least one value is needed")
    return values


def _distinct(values: tuple) -> tuple:
    _not_empty(values)
    if len(set(values)) != len(values):
        raise ValueError("a value is listed twice")
    return values


Ordered = AfterValidator(_ordered)
NotEmpty = AfterValidator(_not_empty)
Distinct = AfterValidator(_distinct)

Positive = Annotated[int, Field(ge=1)]
AtLeastTwo = Annotated[int, Field(ge=2)]
AtLeastOne = Annotated[float, Field(ge=1)]
PositiveFloat = Annotated[float, Field(gt=0)]
NotNegative = Annotated[float, Field(ge=0)]
# Squares of values some times as large must stay finite in float32.
Scale = Annotated[float, Field(gt=0, le=1e6)]
Fraction = Annotated[float, Field(gt=0, lt=1)]
Probability = Annotated[float, Field(ge=0, le=1)]
Interval = Annotated[tuple[PositiveFloat, PositiveFloat], Ordered]
ScaleInterval = Annotated[tuple[Scale, Scale], Ordered]
FractionInterval = Annotated[tuple[Fraction, Fraction], Ordered]
IntInterval = Annotated[tuple[Positive, Positive], Ordered]
CountInterval = Annotated[tuple[AtLeastTwo, AtLeastTwo], Ordered]
FactorInterval = Annotated[tuple[AtLeastOne, AtLeastOne], Ordered]


@dataclass(frozen=True)
class Later:
    """Marks a key that is newer than digests of plans and runs, such as `Annotated[int, LATER]`.

    It is written to plain data only where it is used, so that what was made without it keeps its
    digest: if the key `used_by`, or else the key itself, is not at its default.
    """

    used_by: str | None = None


LATER = Later()


class Section(BaseModel):
    """A frozen section that refuses unknown keys and values that are not finite."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @field_validator("*", mode="before")
    @classmethod
    def _no_truth_for_a_number(cls, value: Any, info: ValidationInfo) -> Any:
        """Refuse booleans for numbers: Python takes true for 1, and YAML takes yes, on for true."""
        values = value if isinstance(value, list | tuple) else [value]
        field = cls.model_fields[str(info.field_name)]
        if any(isinstance(one, bool) for one in values) and field.annotation is not bool:
            raise ValueError("true and false are not allowed here")
        return value

    @model_serializer(mode="wrap")
    def _without_unused_later_keys(self, dump):
        plain = dump(self)
        for key, field in type(self).model_fields.items():
            for mark in field.metadata:
                if isinstance(mark, Later) and not self._is_used(key, mark):
                    plain.pop(key, None)
        return plain

    def _is_used(self, key: str, mark: Later) -> bool:
        """Whether a key with this mark is written."""
        return not self._is_default(mark.used_by or key)

    def _is_default(self, key: str) -> bool:
        return getattr(self, key) == type(self).model_fields[key].default

    def model_dump(self, **options: Any) -> dict[str, Any]:
        """Pydantic's `model_dump`, except that a signal's exception keeps its type."""
        try:
            return super().model_dump(**options)
        except PydanticSerializationError as error:
            # Pydantic wraps any exception raised within our serializers; from nested ones, only the
            # text is left.
            kinds: list[type[KeyboardInterrupt]] = [KeyboardInterrupt]
            for kind in kinds + KeyboardInterrupt.__subclasses__():
                if f": {kind.__name__}: " in str(error):
                    raise kind from None
            raise
