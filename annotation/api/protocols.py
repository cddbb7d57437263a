"""Versions of a study's protocol: a draft that changes, and published ones that never do."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from django.shortcuts import get_object_or_404
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.roles import Permission
from annotation.models import Protocol, Study
from annotation.protocols.documents import plain_document, read_document
from annotation.protocols.faults import Fault
from annotation.protocols.records import ProtocolDocument
from annotation.protocols.templates import (
    MOST_CHARACTERS,
    ParsedFile,
    parse_yaml,
    read_protocol,
    template_names,
    write_yaml,
)
from annotation.protocols.validation import document_faults
from annotation.protocols.versions import (
    blind_document,
    blind_faults,
    discard_draft,
    freeze,
    freezing_faults,
    numbered_version,
    save_draft,
    study_faults,
)
from console.api.endpoint import Endpoint, Input
from console.api.operations import lists, page, reads, writes
from error_codes import require


class ProtocolRowSerializer(serializers.ModelSerializer[Protocol]):
    frozen_by = serializers.CharField(allow_null=True)
    is_draft = serializers.SerializerMethodField()

    class Meta:
        model = Protocol
        fields = [
            *("number", "is_draft", "fingerprint", "created_at", "saved_at", "frozen_at"),
            "frozen_by",
        ]

    def get_is_draft(self, version: Protocol) -> bool:
        return version.frozen_at is None


class ProtocolSerializer(ProtocolRowSerializer):
    """A version with its document, which docs/protocol.schema.json describes."""

    document = serializers.DictField()
    yaml = serializers.SerializerMethodField(help_text="The same document, as a file to edit.")
    faults = serializers.SerializerMethodField(help_text="What keeps a draft from being published.")

    def get_yaml(self, version: Protocol) -> str:
        return write_yaml(read_document(version.document))

    class Meta(ProtocolRowSerializer.Meta):
        fields = [*ProtocolRowSerializer.Meta.fields, "document", "yaml", "faults"]

    def get_faults(self, version: Protocol) -> list[str]:
        if version.frozen_at is not None:
            return []
        return [
            str(fault) for fault in freezing_faults(version.study, read_document(version.document))
        ]


class Protocols(Endpoint):
    @lists("list_protocols", ProtocolRowSerializer)
    def get(self, request: Request, slug: str) -> Response:
        """The versions of a study's protocol, newest first.

        Access: whoever has a role in the study.
        """
        rows = Protocol.objects.of(self.study(slug)).select_related("frozen_by")
        return page(request, rows.defer("document").order_by("-number"), ProtocolRowSerializer)


class OneProtocol(Endpoint):
    @reads("get_protocol", ProtocolSerializer)
    def get(self, request: Request, slug: str, number: int) -> Response:
        """A version with its document.

        Access: whoever has a role in the study; keys of candidates for those who may view systems.
        """
        rows = Protocol.objects.of(self.study(slug)).select_related("frozen_by", "study")
        version = get_object_or_404(rows, number=number)
        record = dict(ProtocolSerializer(version).data)
        if Permission.VIEW_SYSTEMS not in self.permissions:
            record |= _blind_fields(version)
        return Response(record)


def _blind_fields(version: Protocol) -> dict[str, Any]:
    """The fields that name candidates by their keys, without these."""
    document = read_document(version.document)
    blind = blind_document(version.study, document)
    faults = freezing_faults(version.study, document) if version.frozen_at is None else []
    return {
        "document": plain_document(blind),
        "yaml": write_yaml(blind),
        "faults": list(map(str, blind_faults(faults))),
    }


class DraftInput(Input):
    """One of the four."""

    document = serializers.DictField(required=False, help_text="As docs/protocol.schema.json says.")
    yaml = serializers.CharField(required=False, max_length=MOST_CHARACTERS)
    template = serializers.ChoiceField(choices=template_names(), required=False)
    version = serializers.IntegerField(
        required=False, min_value=1, max_value=32_767, help_text="One that is published, to change."
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        require(
            len(attrs) == 1,
            serializers.ValidationError("Send one of document, yaml, template and version."),
        )
        return attrs


class Draft(Endpoint):
    @writes("save_draft", DraftInput, ProtocolSerializer)
    def put(self, request: Request, slug: str) -> Response:
        """Store the draft of the next version; what is wrong with a document is all said.

        Access: those who may edit the study.
        """
        study = self.study(slug, Permission.EDIT)
        body = self.input(DraftInput)
        return Response(
            ProtocolSerializer(
                save_draft(study=study, document=_document(study, body), is_copy="version" in body)
            ).data
        )

    @writes("discard_draft", None, None, status=HTTPStatus.NO_CONTENT)
    def delete(self, request: Request, slug: str) -> Response:
        """Go back to the version published last.

        Access: those who may edit the study.
        """
        discard_draft(study=self.study(slug, Permission.EDIT))
        return Response(status=HTTPStatus.NO_CONTENT)


def _document(study: Study, body: dict[str, Any]) -> ProtocolDocument:
    if "template" in body:
        return read_protocol(body["template"])
    if "version" in body:
        return read_document(numbered_version(study, body["version"]).document)
    if "yaml" in body:
        parsed = parse_yaml(body["yaml"])
        name, values, faults = "yaml", parsed.values, parsed.faults
    else:
        name, values = "document", body["document"]
        faults = tuple(document_faults(values))
    require(not faults, serializers.ValidationError({name: [str(fault) for fault in faults]}))
    return read_document(values)


class CheckInput(Input):
    """One of the two."""

    document = serializers.DictField(required=False, help_text="As docs/protocol.schema.json says.")
    yaml = serializers.CharField(required=False, max_length=MOST_CHARACTERS)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        require(len(attrs) == 1, serializers.ValidationError("Send document or yaml."))
        return attrs


class CheckedSerializer(serializers.Serializer[Any]):
    """What is wrong with a document: `faults` keep it from being stored, `freezing_faults` from
    being published."""

    faults = serializers.ListField(child=serializers.CharField())
    freezing_faults = serializers.ListField(child=serializers.CharField())


class Check(Endpoint):
    @writes("check_protocol", CheckInput, CheckedSerializer)
    def post(self, request: Request, slug: str) -> Response:
        """Say all that is wrong with a document; nothing is stored.

        Access: those who may edit the study.
        """
        study = self.study(slug, Permission.EDIT)
        body = self.input(CheckInput)
        if "yaml" in body:
            parsed = parse_yaml(body["yaml"])
        else:
            parsed = ParsedFile(body["document"], tuple(document_faults(body["document"])))
        freezing: list[Fault] = []
        if isinstance(parsed.values, Mapping):
            freezing = study_faults(study, read_document(parsed.values))
        if parsed.lines:
            freezing = parsed.at_lines(freezing)
        record = {"faults": parsed.faults, "freezing_faults": freezing}
        return Response({name: list(map(str, each)) for name, each in record.items()})


class Publishing(Endpoint):
    @writes("publish_protocol", None, ProtocolSerializer)
    def post(self, request: Request, slug: str) -> Response:
        """Make the draft a version for good; without a draft, the last version stands.

        Access: those who may edit the study.
        """
        study = self.study(slug, Permission.EDIT)
        return Response(ProtocolSerializer(freeze(study=study, actor=self.person)).data)
