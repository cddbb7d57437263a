"""Studies as the API answers them."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from annotation.access import loaded_permissions
from annotation.models import Question, Study
from console.access import within_scopes

SIMULATED = "Whether any answer of the study is simulated, and so nobody's opinion."


class QuestionSerializer(serializers.ModelSerializer[Question]):
    class Meta:
        model = Question
        fields = ["name", "wording", "level", "scale_min", "scale_max", "categories"]


class StudySerializer(serializers.ModelSerializer[Study]):
    team = serializers.SlugRelatedField[Any](slug_field="slug", read_only=True, allow_null=True)
    questions = QuestionSerializer(many=True, read_only=True)
    n_items = serializers.IntegerField(read_only=True)
    n_submissions = serializers.IntegerField(read_only=True)
    n_judgments = serializers.IntegerField(read_only=True)
    may = serializers.SerializerMethodField(help_text="What you may do in it, by permission.")

    class Meta:
        model = Study
        fields = [
            *("slug", "title", "kind", "team", "created_at", "archived_at", "questions"),
            *("n_items", "n_submissions", "n_judgments", "may"),
        ]

    def get_may(self, study: Study) -> list[str]:
        """By role, within the scopes of the token."""
        request = self.context["request"]._request
        return sorted(within_scopes(request, loaded_permissions(study, request.user)))
