"""What every model shares: frozen, JSON names, no unknown field; and the scalar types of Kubernetes.

Models say what may be written and where; they check a manifest and never rewrite it (what is stored is the user's own
JSON). A field that may be left out is ``X | None = None``: a null counts as left out, as the API server drops it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, GetCoreSchemaHandler, PlainValidator
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from vcnb.resources.duration import DurationError, parse_nanoseconds
from vcnb.resources.quantity import Quantity, QuantityError

__all__ = [
    "DNS_LABEL",
    "DNS_NAME",
    "Amount",
    "AmountMap",
    "DnsName",
    "Duration",
    "Int32",
    "Int64",
    "IntOrText",
    "LocalRef",
    "Model",
    "NonNegative",
    "NonNegative64",
    "Number",
    "OneOf",
    "Plugins",
    "Port",
    "Positive",
    "TextMap",
    "UniqueBy",
    "json_name",
]

DNS_LABEL: Final = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
DNS_NAME: Final = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"

_CAPITALS: Final = {
    word.lower(): word
    for word in ("API", "CIDR", "CIDRs", "FQDN", "ID", "IO", "IP", "IPC", "IPs", "PID", "URI", "UUID", "WWNs")
}


def json_name(field: str) -> str:
    """The JSON name of a Python field name: ``host_ip`` is ``hostIP``, ``min_available`` is ``minAvailable``."""
    first, *rest = field.rstrip("_").split("_")
    return first + "".join(_CAPITALS.get(word, word.capitalize()) for word in rest)


class Model(BaseModel):
    """Base of every model."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, alias_generator=json_name, defer_build=True, protected_namespaces=()
    )


@dataclass(frozen=True)
class OneOf:
    """Text that is one of a few; the error suggests the nearest."""

    values: Sequence[str]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._check, handler(source))

    def _check(self, value: str) -> str:
        if value not in self.values:
            raise PydanticCustomError("one_of", "must be one of {values}", {"values": tuple(self.values)})
        return value


class UniqueBy:
    """Marks a list whose items must differ in these keys (in themselves, when no key is given).

    The rule is Volcano's CRDs'. In a core Pod, Kubernetes lets some of these lists repeat a key (``in_pods=False``).
    """

    def __init__(self, *keys: str, in_pods: bool = True, defaults: Mapping[str, Any] | None = None) -> None:
        self.keys = keys
        self.in_pods = in_pods
        self.defaults = dict(defaults or {})


def _quantity(value: Any) -> Quantity:
    try:
        return Quantity.parse(value)
    except QuantityError as error:
        raise PydanticCustomError("quantity", "{reason}", {"reason": str(error)}) from None


def _duration(value: Any) -> str:
    if not isinstance(value, str):
        raise PydanticCustomError("duration_type", "must be a duration")
    try:
        parse_nanoseconds(value)
    except DurationError as error:
        raise PydanticCustomError("duration", "{reason}", {"reason": str(error)}) from None
    return value


def _int_or_text(value: Any) -> int | str:
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        raise PydanticCustomError("int_or_text", "must be a whole number or text")
    return value


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise PydanticCustomError("number", "must be a number")
    return value


def _arguments(value: Any) -> Any:
    if value is None:
        raise PydanticCustomError("plugin_null", "no arguments")
    return value


Int32: TypeAlias = Annotated[int, Field(ge=-(2**31), le=2**31 - 1)]
Int64: TypeAlias = Annotated[int, Field(ge=-(2**63), le=2**63 - 1)]
NonNegative: TypeAlias = Annotated[int, Field(ge=0, le=2**31 - 1)]
NonNegative64: TypeAlias = Annotated[int, Field(ge=0, le=2**63 - 1)]
Positive: TypeAlias = Annotated[int, Field(ge=1, le=2**31 - 1)]
Port: TypeAlias = Annotated[int, Field(ge=0, le=65535)]
Number: TypeAlias = Annotated[float, PlainValidator(_number)]
IntOrText: TypeAlias = Annotated[int | str, PlainValidator(_int_or_text)]
Amount: TypeAlias = Annotated[Quantity, PlainValidator(_quantity)]
Duration: TypeAlias = Annotated[str, PlainValidator(_duration)]
DnsName: TypeAlias = Annotated[str, Field(max_length=253, pattern=DNS_NAME)]
TextMap: TypeAlias = dict[str, str | None]
AmountMap: TypeAlias = dict[str, Amount | None]
Plugins: TypeAlias = dict[str, Annotated[list[str], BeforeValidator(_arguments)]]
"""Job plugins: name to arguments. ``env:`` with nothing behind it is refused: the API server would drop it."""


class LocalRef(Model):
    """An object of the same namespace, by name."""

    name: str | None = None
