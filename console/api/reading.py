"""The report of reading a file."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers


class LeftOutSerializer(serializers.Serializer[Any]):
    """Rows or values that are not used, for one reason."""

    code = serializers.CharField()
    reason = serializers.CharField()
    n = serializers.IntegerField()
    places = serializers.ListField(child=serializers.CharField(), help_text="The first three.")


class NoteSerializer(serializers.Serializer[Any]):
    code = serializers.CharField()
    text = serializers.CharField()


class FaultGroupSerializer(serializers.Serializer[Any]):
    """Equal faults: the first one's problem, their number and the first places."""

    code = serializers.CharField()
    column = serializers.CharField(allow_blank=True)
    problem = serializers.CharField()
    value = serializers.CharField(allow_blank=True)
    n = serializers.IntegerField()
    places = serializers.ListField(child=serializers.CharField())


class CountsSerializer(serializers.Serializer[Any]):
    """Counts of the last reading: rows read = rows used + rows left out."""

    n_rows = serializers.IntegerField()
    n_used = serializers.IntegerField()
    left_out = LeftOutSerializer(many=True, help_text="Rows.")
    parts = LeftOutSerializer(many=True, help_text="Values of rows that are used.")
    missing = serializers.DictField(
        child=serializers.IntegerField(), help_text="Missing labels by their word in the file."
    )
    notes = NoteSerializer(many=True, help_text="What was guessed or skipped.")
    policies = serializers.DictField(child=serializers.CharField())


class ReadingSerializer(CountsSerializer):
    """Counts of the last reading, with the faults."""

    faults = FaultGroupSerializer(many=True)
