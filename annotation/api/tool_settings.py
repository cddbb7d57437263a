"""What is said of a file of labels or scores on its way into a study; it is read anew by that."""

from collections.abc import Iterable
from http import HTTPStatus
from typing import Any, get_args
from uuid import UUID

from django.utils.translation import gettext as _
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from annotation.api.uploads import (
    UploadSerializer,
    upload_answer,
    waiting_for,
)
from annotation.label_uploads import LEFT_OUT, WORDS, LabelSettings, QuestionOverride
from annotation.models import Question, Upload
from annotation.pages.previews import map_anew
from annotation.pages.tool_settings import LONGEST_WORDING, MOST_QUESTIONS, TOOL_NAMES
from annotation.readers.policies import REPEATS, Categories, Missing, Unmatched
from annotation.readers.tool_exports.recognition import LabelUse, uses_of
from annotation.score_settings import (
    LONGEST_SIGNATURE,
    ScoreSettings,
    ScoreUse,
)
from console.api.endpoint import Endpoint, Input
from console.api.operations import writes

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
