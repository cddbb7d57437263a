"""What endpoints of results share: their serializers, and requests for results by name.

Endpoints of a kind of subjects inherit `ResultsEndpoint`; what a request may hold follows from the
declared inputs and settings (`input_class`).
"""

from collections.abc import Sequence
from functools import cache
from http import HTTPStatus
from typing import Any, ClassVar

from django.db import models
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from console.api.endpoint import Endpoint, Input, address_of
from console.api.job_records import job_record
from results.computing import request_result, sign_result
from results.kinds import ResultKind
from results.models import Result
from results.settings import Inputs, list_settings
from work.models import Job


class ResultRowSerializer(serializers.ModelSerializer[Result]):
    """A computed result, which never changes."""

    kind = serializers.CharField()
    n_topics = serializers.IntegerField(source="facts.n_topics", default=0)
    settings = serializers.DictField()
    signature = serializers.SerializerMethodField(help_text="Settings and files, on one line.")

    class Meta:
        model = Result
        fields = [
            *("number", "kind", "created_at", "n_topics", "seed", "settings", "fingerprint"),
            "signature",
        ]

    def get_signature(self, version: Result) -> str:
        return sign_result(version)


class ShownResultSerializer(ResultRowSerializer):
    """A result with what the page says of it, and its tables."""

    answer = serializers.CharField(help_text="The first sentence of its page.")
    details = serializers.ListField(child=serializers.CharField())
    tables = serializers.DictField(
        child=serializers.ListField(child=serializers.DictField()),
        help_text="Rows by the table's name; each kind of result has its own.",
    )
    notes = serializers.ListField(child=serializers.CharField())

    class Meta(ResultRowSerializer.Meta):
        fields = [*ResultRowSerializer.Meta.fields, "answer", "details", "tables", "notes"]


@cache
def input_class(declared: type[ResultKind[Any]]) -> type[Input]:
    kind = declared()
    fields: dict[str, Any] = {name: one.api_field() for name, one in kind.inputs.items()}
    for name, (described, default) in list_settings(kind.settings).items():
        fields[name] = described.api_field(default)
    doc = f"Files and settings of a result of the kind {kind.name}; defaults are those of its form."
    return type(f"{kind.name.title()}Input", (Input,), {**fields, "__doc__": doc})


class ResultsEndpoint(Endpoint):
    job_address: ClassVar[str]

    def request_by_names(
        self,
        request: Request,
        slug: str,
        subject: models.Model,
        kind: ResultKind[Any],
        values: dict[str, Any],
    ) -> Response:
        offered = kind.offer_inputs(subject)
        chosen = {
            name: choose_inputs(one, offered[name], values.pop(name, None), name)
            for name, one in kind.inputs.items()
        }
        job = request_result(
            kind=kind, subject=subject, chosen=chosen, settings=values, actor=self.person
        )
        return self.accept(request, slug, job)

    def accept(self, request: Request, slug: str, job: Job) -> Response:
        where = address_of(request, self.job_address, slug, job.pk)
        headers = {"Location": where, "Retry-After": "2"}
        return Response(job_record(request, job), status=HTTPStatus.ACCEPTED, headers=headers)


def choose_inputs(
    one: Inputs, offered: Sequence[Any], named: str | list[str] | None, field: str
) -> list[Any]:
    try:
        return one.choose(offered, named)
    except ValueError as unknown:
        raise serializers.ValidationError({field: [str(unknown)]}) from None
