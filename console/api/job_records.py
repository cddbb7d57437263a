"""Background jobs as the API answers them."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request

from console.job_permissions import message_for
from work.models import Job


class JobSerializer(serializers.ModelSerializer[Job]):
    """A job; `message` says what came of it, or why nothing did."""

    id = serializers.IntegerField()
    kind = serializers.CharField()
    state = serializers.ChoiceField(choices=Job.State.choices)
    is_unfinished = serializers.BooleanField()
    seconds_left = serializers.FloatField(allow_null=True)
    message = serializers.SerializerMethodField(
        help_text="Of what is done at a marketplace, for who may see costs and workers."
    )

    def get_message(self, job: Job) -> str:
        request = self.context.get("request")
        return message_for(job, request._request.permissions if request else frozenset())

    class Meta:
        model = Job
        fields = [
            *("id", "kind", "title", "state", "is_unfinished", "phase", "n_done", "n_total"),
            *("seconds_left", "message", "created_at", "started_at", "finished_at"),
        ]


def job_record(request: Request, job: Job) -> dict[str, Any]:
    """The job, with as much of its message as whoever asks may read."""
    return dict(JobSerializer(job, context={"request": request}).data)
