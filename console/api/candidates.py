"""Candidates and their systems in answers, which name no system to who may not view systems."""

from rest_framework import serializers

from annotation.models import Candidate


class CandidateName(serializers.CharField):
    """A candidate's key; its blind name for who may not view systems."""

    def to_representation(self, value: Candidate) -> str:  # type: ignore[override]
        return value.name_for(self.context["request"]._request.permissions)


class SystemName(serializers.CharField):
    """A candidate's system; null for who may not view systems."""

    def to_representation(self, value: Candidate) -> str | None:  # type: ignore[override]
        return value.system_for(self.context["request"]._request.permissions)
