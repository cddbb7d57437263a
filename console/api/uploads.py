"""Files on their way into a study: sent, read, mapped, imported."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any
from uuid import UUID

from django.http import Http404
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.names import require_visible
from accounts.roles import Permission
from annotation.models import Study, Upload
from annotation.protocols.templates import template_names
from annotation.readers.column_mapping import ColumnMapping, Use
from annotation.uploads import (
    jobs_of_upload,
    request_import,
    request_reading,
    set_mapping,
    store_upload,
)
from console.api.endpoint import Endpoint, Input, address_of
from console.api.errors import Conflict
from console.api.jobs import JobSerializer
from console.api.operations import reads, writes
from console.pages.uploads import upload_for
from console.upload_view import preview_of


class UploadInput(Input):
    """A file, and the study it is added to or the new one it makes."""

    file = serializers.FileField(allow_empty_file=True, max_length=255)
    study = serializers.SlugField(required=False, help_text="To add items to.")
    title = serializers.CharField(
        required=False, max_length=128, help_text="Of a new study.", validators=[require_visible]
    )
    team = serializers.SlugField(required=False, help_text="Whose the new study is.")
    template = serializers.ChoiceField(
        choices=template_names(), required=False, help_text="Protocol of the new study."
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Of one study, or of a new one."""
        of_new = {"title", "team", "template"} & attrs.keys()
        if ("study" in attrs and of_new) or ("study" not in attrs and "title" not in attrs):
            raise serializers.ValidationError("Send either study, or the title of a new one.")
        return attrs


class ColumnSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    first = serializers.CharField(help_text="Its first value.")


class FaultSerializer(serializers.Serializer[Any]):
    line = serializers.IntegerField(allow_null=True)
    column = serializers.CharField(allow_null=True)
    problem = serializers.CharField()


class PreviewSerializer(serializers.Serializer[Any]):
    """What the mapping makes of the file."""

    problems = serializers.ListField(child=serializers.CharField(), help_text="Of the mapping.")
    n_items = serializers.IntegerField()
    n_responses = serializers.IntegerField()
    n_systems = serializers.IntegerField()
    n_faults = serializers.IntegerField()


class MappingSerializer(serializers.Serializer[Any]):
    uses = serializers.DictField(child=serializers.ChoiceField(choices=list(Use)))
    systems = serializers.DictField(child=serializers.CharField())


class UploadSerializer(serializers.ModelSerializer[Upload]):
    token = serializers.UUIDField()
    columns = ColumnSerializer(many=True)
    mapping = serializers.SerializerMethodField(help_text="Empty until the file is read.")
    faults = FaultSerializer(many=True, help_text="The first of them, each at its cell.")
    preview = serializers.SerializerMethodField()
    job = serializers.SerializerMethodField(help_text="What was last done with it.")
    study = serializers.CharField(source="result.slug", default=None, allow_null=True)

    class Meta:
        model = Upload
        fields = [
            *("token", "file_name", "n_bytes", "title", "n_rows", "columns", "mapping"),
            *("is_mapping_known", "faults", "n_faults", "preview", "job", "study", "created_at"),
        ]

    @extend_schema_field(MappingSerializer)
    def get_mapping(self, upload: Upload) -> Any:
        return ColumnMapping.of(upload.mapping).plain

    @extend_schema_field(PreviewSerializer(allow_null=True))
    def get_preview(self, upload: Upload) -> Any:
        if upload.n_rows is None or upload.result is not None:
            return None
        return PreviewSerializer(preview_of(upload)).data

    @extend_schema_field(JobSerializer(allow_null=True))
    def get_job(self, upload: Upload) -> Any:
        job = jobs_of_upload(upload).first()
        return JobSerializer(job).data if job else None


class Uploads(Endpoint):
    parser_classes = [MultiPartParser]

    @writes("upload_file", UploadInput, UploadSerializer, status=HTTPStatus.CREATED)
    def post(self, request: Request) -> Response:
        """Send a file of items. It is read in the background, a small one at once; then map its
        columns, and import it.

        Access: those who may edit the study, or the team's studies.
        """
        wanted = self.input(UploadInput)
        upload = store_upload(
            file=wanted["file"], uploaded_by=self.person, **self._destination(wanted)
        )
        request_reading(upload=upload, requested_by=self.person)
        return _answer(request, upload, HTTPStatus.CREATED)

    def _destination(self, wanted: dict[str, Any]) -> dict[str, Any]:
        if "study" in wanted:
            study = self.study(wanted["study"], Permission.EDIT)
            return {"study": Study.objects.select_related("team").get(pk=study.pk)}
        team = self.team_to_edit(wanted.get("team"))
        texts = {"title": wanted["title"], "template": wanted.get("template", "")}
        return {"team": team} | texts


class OneUpload(Endpoint):
    @reads("get_upload", UploadSerializer)
    def get(self, request: Request, token: UUID) -> Response:
        """What is in a file, and what the mapping makes of it.

        Access: who uploaded the file, and those who may edit the team's studies.
        """
        return _answer(request, _of_items(upload_for(self.plain_request, token)))

    @writes("discard_upload", None, None, status=HTTPStatus.NO_CONTENT)
    def delete(self, request: Request, token: UUID) -> Response:
        """Forget a file.

        Access: as for the upload.
        """
        upload_for(self.plain_request, token).delete()
        return Response(status=HTTPStatus.NO_CONTENT)


class MappingInput(Input):
    uses = serializers.DictField(
        child=serializers.ChoiceField(choices=list(Use)), help_text="By the column's name."
    )
    systems = serializers.DictField(
        child=serializers.CharField(max_length=200),
        required=False,
        default=dict,
        help_text="By the name of a column of responses: the system that they are of.",
    )


class Mapping(Endpoint):
    @writes("map_upload", MappingInput, UploadSerializer)
    def put(self, request: Request, token: UUID) -> Response:
        """Say what the columns are.

        Access: as for the upload.
        """
        upload = _waiting(_of_items(upload_for(self.plain_request, token)))
        wanted = self.input(MappingInput)
        known = {column["name"] for column in upload.columns}
        if unknown := sorted(wanted["uses"].keys() - known):
            raise serializers.ValidationError({"uses": [f"No columns: {', '.join(unknown)}."]})
        set_mapping(upload=upload, mapping=ColumnMapping.of(wanted))
        return _answer(request, upload)


class ImportInput(Input):
    leaves_out = serializers.BooleanField(
        default=False, help_text="Import what is right, without rows at fault."
    )


class Import(Endpoint):
    @writes("import_upload", ImportInput, UploadSerializer, status=HTTPStatus.ACCEPTED)
    def post(self, request: Request, token: UUID) -> Response:
        """Import a file by its mapping: all of it or nothing. A small one is imported at once.

        Access: as for the upload.
        """
        upload = _waiting(_of_items(upload_for(self.plain_request, token)))
        if problems := preview_of(upload).problems:
            raise serializers.ValidationError({"mapping": problems})
        leaves_out = self.input(ImportInput)["leaves_out"]
        request_import(upload=upload, requested_by=self.person, leaves_out=leaves_out)
        return _answer(request, upload, HTTPStatus.ACCEPTED)


def _of_items(upload: Upload) -> Upload:
    """Not found for a file of labels or scores, which only its page reads so far."""
    if upload.content != Upload.Content.ITEMS:
        raise Http404("The file holds labels or scores: go on with it on its page.")
    return upload


def _waiting(upload: Upload) -> Upload:
    """Conflict for what is not read yet, could not be read, or is imported already."""
    if upload.result is not None:
        raise Conflict("The file is imported already.")
    if upload.n_rows is None:
        raise Conflict("The file is not read: look at its job and its faults.")
    return upload


def _answer(request: Request, upload: Upload, status: HTTPStatus = HTTPStatus.OK) -> Response:
    row = Upload.objects.select_related("study", "result").get(pk=upload.pk)
    headers = {"Location": address_of(request, "upload", row.token)}
    return Response(UploadSerializer(row).data, status=status, headers=headers)
