"""Fields for candidates and systems that hide systems from users who may not view them."""

from rest_framework import serializers

from annotation.models import Candidate


class CandidateName(serializers.CharField):
    """A candidate's key; its blind name for users who may not view systems."""

    def to_representation(self, value: Candidate) -> str:  # type: ignore[override]
        return value.name_for(self.context["request"]._request.permissions)


class SystemName(serializers.CharField):
    """A candidate's system; null for users who may not view systems."""

    def to_representation(self, value: Candidate) -> str | None:  # type: ignore[override]
        return value.system_for(self.context["request"]._request.permissions)
