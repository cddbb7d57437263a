"""Background jobs, and the reports of reading files, as the API answers them."""

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request

from console.registrations import message_for
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
    # The job, with as much of its message as whoever asks may read.
    return dict(JobSerializer(job, context={"request": request}).data)


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
