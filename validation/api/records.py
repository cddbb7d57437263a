"""Serializers of records: their fields follow from the fields of a dataclass."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from rest_framework import serializers

FIELDS: dict[str, type[serializers.Field[Any, Any, Any, Any]]] = {
    "str": serializers.CharField,
    "int": serializers.IntegerField,
    "float": serializers.FloatField,
    "bool": serializers.BooleanField,
}


class RecordSerializer(serializers.Serializer[Any]):
    """The fields of `Meta.record` that `Meta.fields` names; those that need a help text, or are no
    fields of the record, are declared."""

    class Meta:
        record: type
        fields: list[str]

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        declared = super().get_fields()
        types = {one.name: str(one.type) for one in fields(self.Meta.record)}
        return {
            name: declared[name] if name in declared else _make_field(types[name])
            for name in self.Meta.fields
        }


def _make_field(annotation: str) -> serializers.Field[Any, Any, Any, Any]:
    name, *rest = annotation.split(" | ")
    return FIELDS[name](allow_null=bool(rest))
