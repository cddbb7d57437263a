"""Files on their way into a study: sent, read, mapped, imported."""

from collections.abc import Iterable
from http import HTTPStatus
from typing import Any, get_args
from uuid import UUID

from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.names import require_visible
from accounts.roles import Permission
from annotation.label_uploads import LEFT_OUT, WORDS, LabelSettings, QuestionOverride
from annotation.models import Question, Study, Upload
from annotation.pages.previews import import_problems, map_anew, preview_of
from annotation.pages.tool_settings import LONGEST_WORDING, MOST_QUESTIONS, TOOL_NAMES
from annotation.protocols.templates import template_names
from annotation.readers.mapping import ColumnMapping, Use
from annotation.readers.policies import REPEATS, Categories, Missing, Unmatched
from annotation.readers.tool_exports.recognition import LabelUse, uses_of
from annotation.score_settings import LONGEST_SIGNATURE, ScoreSettings, ScoreUse
from annotation.uploads import (
    jobs_of_upload,
    request_import,
    request_reading,
    set_mapping,
    store_upload,
)
from console.api.endpoint import Endpoint, Input, address_of
from console.api.errors import Conflict
from console.api.job_records import JobSerializer, ReadingSerializer
from console.api.operations import reads, writes
from error_codes import require


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
    content = serializers.ChoiceField(
        choices=Upload.Content.choices,
        default=Upload.Content.ITEMS,
        help_text="Items; labels collected elsewhere, which make a new study; or scores of a "
        "study's candidates.",
    )
    tool = serializers.ChoiceField(
        choices=list(TOOL_NAMES), required=False, help_text="That labels come from, if known."
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Of one study, or of a new one; scores of one, labels of a new one."""
        content = attrs["content"]
        require(
            content != Upload.Content.SCORES or "study" in attrs,
            serializers.ValidationError({"study": [_("Scores are of a study: name it.")]}),
        )
        require(
            content != Upload.Content.LABELS or ("study" not in attrs and "template" not in attrs),
            serializers.ValidationError(
                {
                    "content": [
                        _("Labels make a study of their own: send its title, and no template.")
                    ]
                }
            ),
        )
        require(
            "tool" not in attrs or content == Upload.Content.LABELS,
            serializers.ValidationError({"tool": [_("Only labels come from a tool.")]}),
        )
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
    place = serializers.CharField(default="", help_text="Line, record or row of a sheet.")


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
    fixes = serializers.DictField(
        child=serializers.CharField(), required=False, help_text="As in the request, if any."
    )


class QuestionOverrideSerializer(serializers.Serializer[Any]):
    """What is said of a question of labels; what is empty is found in the answers."""

    level = serializers.CharField(allow_blank=True)
    low = serializers.CharField(allow_blank=True)
    high = serializers.CharField(allow_blank=True)
    wording = serializers.CharField(allow_blank=True)


class LabelSettingsSerializer(serializers.Serializer[Any]):
    """How labels are read: what their fields hold, and what their questions are."""

    tool = serializers.CharField(allow_blank=True)
    uses = serializers.DictField(child=serializers.ChoiceField(choices=list(LabelUse)))
    answers = serializers.CharField(allow_blank=True)
    questions = serializers.DictField(child=QuestionOverrideSerializer())
    keeps_names = serializers.BooleanField()


class ScoreSettingsSerializer(serializers.Serializer[Any]):
    """What columns of scores hold, and of which metrics lower is better."""

    uses = serializers.DictField(child=serializers.ChoiceField(choices=list(ScoreUse)))
    lower = serializers.ListField(child=serializers.CharField())
    signature = serializers.CharField(allow_blank=True)
    missing = serializers.ChoiceField(choices=get_args(Missing))
    repeats = serializers.ChoiceField(choices=REPEATS)
    unmatched = serializers.ChoiceField(choices=get_args(Unmatched))


class UploadSerializer(serializers.ModelSerializer[Upload]):
    token = serializers.UUIDField()
    columns = ColumnSerializer(many=True)
    mapping = serializers.SerializerMethodField(help_text="Empty until the file is read.")
    faults = FaultSerializer(many=True, help_text="The first of them, each at its cell.")
    reading = serializers.SerializerMethodField(help_text="None until the file is read.")
    preview = serializers.SerializerMethodField(help_text="Of items.")
    label_settings = serializers.SerializerMethodField(help_text="Of labels.")
    score_settings = serializers.SerializerMethodField(help_text="Of scores.")
    summary = serializers.DictField(help_text="What labels or scores come to, once read.")
    problems = serializers.SerializerMethodField(help_text="What keeps it from being imported.")
    job = serializers.SerializerMethodField(help_text="What was last done with it.")
    study = serializers.CharField(source="result.slug", default=None, allow_null=True)

    class Meta:
        model = Upload
        fields = [
            *("token", "file_name", "n_bytes", "title", "n_rows", "columns", "mapping"),
            *("is_mapping_known", "faults", "n_faults", "preview", "job", "study", "created_at"),
            *("content", "label_settings", "score_settings", "summary", "problems", "reading"),
        ]

    @extend_schema_field(ReadingSerializer(allow_null=True))
    def get_reading(self, upload: Upload) -> Any:
        return upload.reading or None

    @extend_schema_field(MappingSerializer)
    def get_mapping(self, upload: Upload) -> Any:
        is_items = upload.content == Upload.Content.ITEMS
        return ColumnMapping.of(upload.mapping if is_items else {}).plain

    @extend_schema_field(LabelSettingsSerializer(allow_null=True))
    def get_label_settings(self, upload: Upload) -> Any:
        is_labels = upload.content == Upload.Content.LABELS
        return LabelSettings.of(upload.mapping).plain if is_labels else None

    @extend_schema_field(ScoreSettingsSerializer(allow_null=True))
    def get_score_settings(self, upload: Upload) -> Any:
        is_scores = upload.content == Upload.Content.SCORES
        return ScoreSettings.of(upload.mapping).plain if is_scores else None

    def get_problems(self, upload: Upload) -> list[str]:
        return [] if _is_settled(upload) else import_problems(upload)

    @extend_schema_field(PreviewSerializer(allow_null=True))
    def get_preview(self, upload: Upload) -> Any:
        if _is_settled(upload) or upload.content != Upload.Content.ITEMS:
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
        """Send a file of items, of labels collected elsewhere, or of scores. It is read in the
        background, a small one at once; then say what its columns hold, and import it.

        Access: those who may edit the study, or the team's studies; of scores, those who may
        analyse the study.
        """
        body = self.input(UploadInput)
        tool = body.get("tool", "")
        upload = store_upload(
            file=body["file"],
            uploaded_by=self.person,
            content=body["content"],
            mapping={"tool": tool} if body["content"] == Upload.Content.LABELS else None,
            **self._destination(body),
        )
        request_reading(upload=upload, requested_by=self.person)
        return upload_answer(request, upload, HTTPStatus.CREATED)

    def _destination(self, body: dict[str, Any]) -> dict[str, Any]:
        if "study" in body:
            is_scores = body["content"] == Upload.Content.SCORES
            study = self.study(body["study"], Permission.ANALYSE if is_scores else Permission.EDIT)
            return {"study": Study.objects.select_related("team").get(pk=study.pk)}
        return {"team": self.team_to_edit(body.get("team"))} | {
            "title": body["title"],
            "template": body.get("template", ""),
        }


class OneUpload(Endpoint):
    @reads("get_upload", UploadSerializer)
    def get(self, request: Request, token: UUID) -> Response:
        """What is in a file, and what the mapping makes of it.

        Access: who uploaded the file, and those who may edit the team's studies.
        """
        return upload_answer(request, self.subject("upload", str(token)))

    @writes("discard_upload", None, None, status=HTTPStatus.NO_CONTENT)
    def delete(self, request: Request, token: UUID) -> Response:
        """Forget a file.

        Access: as for the upload.
        """
        self.subject("upload", str(token)).delete()
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
    fixes = serializers.DictField(
        child=serializers.CharField(max_length=500),
        required=False,
        default=dict,
        help_text="What is done about a kind of problem, by its code: `keep` or `leave-out`; of "
        "`several_pictures`, the folder.",
    )


class Mapping(Endpoint):
    @writes("map_upload", MappingInput, UploadSerializer)
    def put(self, request: Request, token: UUID) -> Response:
        """Say what the columns are.

        Access: as for the upload.
        """
        upload = waiting_for(self.subject("upload", str(token)), Upload.Content.ITEMS)
        body = self.input(MappingInput)
        known = {column["name"] for column in upload.columns}
        if unknown := sorted(body["uses"].keys() - known):
            raise serializers.ValidationError({"uses": [f"No columns: {', '.join(unknown)}."]})
        set_mapping(upload=upload, mapping=ColumnMapping.of(body))
        return upload_answer(request, upload)


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
        upload = _waiting(self.subject("upload", str(token)))
        leaves_out = self.input(ImportInput)["leaves_out"]
        if problems := import_problems(upload):
            raise serializers.ValidationError({"mapping": problems})
        request_import(upload=upload, requested_by=self.person, leaves_out=leaves_out)
        return upload_answer(request, upload, HTTPStatus.ACCEPTED)


def _is_settled(upload: Upload) -> bool:
    """Whether there is nothing to say of it: it is not read yet, or imported."""
    return upload.n_rows is None or upload.result is not None


def waiting_for(upload: Upload, content: str) -> Upload:
    require(
        upload.content == content,
        Conflict(_("The file holds {content}.").format(content=upload.content)),
    )
    return _waiting(upload)


def _waiting(upload: Upload) -> Upload:
    """Conflict for what is not read yet, could not be read, or is imported already."""
    require(upload.result is None, Conflict("The file is imported already."))
    if upload.n_rows is None:
        raise Conflict("The file is not read: look at its job and its faults.")
    return upload


def upload_answer(request: Request, upload: Upload, status: HTTPStatus = HTTPStatus.OK) -> Response:
    row = Upload.objects.select_related("study", "result").get(pk=upload.pk)
    return Response(
        UploadSerializer(row).data,
        status=status,
        headers={"Location": address_of(request, "upload", row.token)},
    )


MOST_SCALE = 1e15


class QuestionOverrideInput(Input):
    """What is left out is found in the answers."""

    level = serializers.ChoiceField(
        choices=[*Question.Level.values, WORDS, LEFT_OUT], required=False
    )
    low = serializers.FloatField(required=False, min_value=-MOST_SCALE, max_value=MOST_SCALE)
    high = serializers.FloatField(required=False, min_value=-MOST_SCALE, max_value=MOST_SCALE)
    wording = serializers.CharField(required=False, max_length=LONGEST_WORDING, allow_blank=True)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        ends = [attrs[name] for name in ("low", "high") if name in attrs]
        if len(ends) == 1 or (ends and not ends[0] < ends[1]):
            raise serializers.ValidationError({"low": [_("Say low and high, low the smaller.")]})
        return attrs


class LabelSettingsInput(Input):
    """Where the tool changes, the rest is found out anew, and sent after that."""

    tool = serializers.ChoiceField(choices=list(TOOL_NAMES), required=False)
    uses = serializers.DictField(
        child=serializers.ChoiceField(choices=list(LabelUse)),
        required=False,
        help_text="By the field's name.",
    )
    answers = serializers.CharField(
        required=False,
        max_length=200,
        allow_blank=True,
        help_text="Of Mechanical Turk: the pattern of its answers' names, such as "
        "`{question}_{system}`.",
    )
    questions = serializers.DictField(child=QuestionOverrideInput(), required=False)
    keeps_names = serializers.BooleanField(
        required=False, help_text="Whether annotators keep their names, without pseudonyms."
    )
    repeats = serializers.ChoiceField(
        choices=REPEATS,
        required=False,
        help_text="Which of the answers that an annotator gave to a question about an item more "
        "than once is imported.",
    )
    missing = serializers.ChoiceField(
        choices=get_args(Missing),
        required=False,
        help_text="Whether words such as NA and null in cells of tables are missing answers, or "
        "only empty cells are.",
    )
    categories = serializers.ChoiceField(
        choices=get_args(Categories),
        required=False,
        help_text="Whether categories that differ only by case, space or Unicode form, or as 1 and "
        "1.0, stay as they are written or count as one.",
    )


class LabelSettingsEndpoint(Endpoint):
    @writes("set_label_settings", LabelSettingsInput, UploadSerializer, status=HTTPStatus.ACCEPTED)
    def put(self, request: Request, token: UUID) -> Response:
        """Say how labels are to be read; what is left out stays. The file is read anew.

        Access: as for the upload.
        """
        upload = waiting_for(self.subject("upload", str(token)), Upload.Content.LABELS)
        map_anew(upload, _label_settings(upload, self.input(LabelSettingsInput)), self.person)
        return upload_answer(request, upload, HTTPStatus.ACCEPTED)


def _label_settings(upload: Upload, body: dict[str, Any]) -> dict[str, Any]:
    known = LabelSettings.of(upload.mapping)
    tool = body.get("tool", known.tool)
    if tool != known.tool:
        return {"tool": tool}
    uses = body.get("uses", dict(known.uses))
    _require_columns(upload, uses)
    if unfit := sorted(set(uses.values()) - set(uses_of(tool))):
        raise serializers.ValidationError(
            {
                "uses": [
                    _("Not for labels of {tool}: {uses}.").format(tool=tool, uses=", ".join(unfit))
                ]
            }
        )
    return LabelSettings(
        tool=tool,
        uses=uses,
        answers=body.get("answers", known.answers).strip(),
        questions=_overrides(upload, body["questions"]) if "questions" in body else known.questions,
        keeps_names=body.get("keeps_names", known.keeps_names),
        repeats=body.get("repeats", known.repeats),
        missing=body.get("missing", known.missing),
        categories=body.get("categories", known.categories),
    ).plain


def _overrides(upload: Upload, body: dict[str, Any]) -> dict[str, QuestionOverride]:
    names = [row["name"] for row in upload.summary.get("questions", ())[:MOST_QUESTIONS]]
    _require_known("questions", body, names)
    return {
        name: QuestionOverride(**{field: _text(value) for field, value in each.items()})
        for name, each in body.items()
    }


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value).strip()


class ScoreSettingsInput(Input):
    uses = serializers.DictField(
        child=serializers.ChoiceField(choices=list(ScoreUse)),
        required=False,
        help_text="By the column's name.",
    )
    lower = serializers.ListField(
        child=serializers.CharField(max_length=200),
        required=False,
        max_length=500,
        help_text="Metrics of which lower is better.",
    )
    signature = serializers.CharField(
        required=False, max_length=LONGEST_SIGNATURE, allow_blank=True, help_text="Of all rows."
    )
    missing = serializers.ChoiceField(
        choices=get_args(Missing),
        required=False,
        help_text="Whether words such as NA and null are missing scores, or only empty cells are.",
    )
    repeats = serializers.ChoiceField(
        choices=REPEATS,
        required=False,
        help_text="Which of several scores of one metric and candidate counts.",
    )
    unmatched = serializers.ChoiceField(
        choices=get_args(Unmatched),
        required=False,
        help_text="What to do with rows about items or candidates that the study does not have.",
    )


class ScoreSettingsEndpoint(Endpoint):
    @writes("set_score_settings", ScoreSettingsInput, UploadSerializer, status=HTTPStatus.ACCEPTED)
    def put(self, request: Request, token: UUID) -> Response:
        """Say what the columns of scores hold; what is left out stays. The file is read anew.

        Access: as for the upload.
        """
        upload = waiting_for(self.subject("upload", str(token)), Upload.Content.SCORES)
        body, known = self.input(ScoreSettingsInput), ScoreSettings.of(upload.mapping)
        uses = body.get("uses", dict(known.uses))
        _require_columns(upload, uses)
        map_anew(
            upload,
            ScoreSettings(
                uses=uses,
                lower=tuple(sorted(set(body.get("lower", known.lower)))),
                signature=body.get("signature", known.signature).strip(),
                missing=body.get("missing", known.missing),
                repeats=body.get("repeats", known.repeats),
                unmatched=body.get("unmatched", known.unmatched),
            ).plain,
            self.person,
        )
        return upload_answer(request, upload, HTTPStatus.ACCEPTED)


def _require_columns(upload: Upload, uses: dict[str, Any]) -> None:
    _require_known("uses", uses, [column["name"] for column in upload.columns])


def _require_known(field: str, body: dict[str, Any], known: Iterable[str]) -> None:
    if unknown := sorted(body.keys() - set(known)):
        raise serializers.ValidationError(
            {field: [_("Not in the file: {names}.").format(names=", ".join(unknown))]}
        )
