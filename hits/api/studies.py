from http import HTTPStatus
from typing import Any

from django.db.models import Q
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.names import require_visible
from accounts.roles import Permission
from annotation.access import with_roles_of
from annotation.api.items import StudySerializer
from annotation.api.jobs import accepted
from annotation.models import Study
from annotation.new_studies import begin_study, copy_study, rename_study
from annotation.protocols.templates import template_names
from console.api.endpoint import Endpoint, Filters, Input, address_of
from console.api.job_records import JobSerializer
from console.api.operations import lists, page, reads, writes
from hits.studies import archive_study, remove_study, restore_study


class NewStudyInput(Input):
    title = serializers.CharField(max_length=128, validators=[require_visible])
    team = serializers.SlugField(
        required=False,
        allow_null=True,
        default=None,
        help_text="Whose it is; without one your own, or the team's whose token this is.",
    )
    template = serializers.ChoiceField(choices=template_names(), required=False)
    copy_of = serializers.SlugField(required=False, help_text="A study's short name.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if ("template" in attrs) == ("copy_of" in attrs):
            raise serializers.ValidationError("Send either template or copy_of.")
        return attrs


class NameInput(Input):
    title = serializers.CharField(max_length=128, validators=[require_visible])


class StudyFilters(Filters):
    q = serializers.CharField(required=False, help_text="Words in its name or short name.")
    kind = serializers.ChoiceField(choices=Study.Kind.choices, required=False)
    team = serializers.SlugField(required=False, help_text="A team's short name.")
    archived = serializers.BooleanField(
        required=False,
        allow_null=True,
        default=None,
        help_text="Only those in the archive, or only the others; all without it.",
    )


class Studies(Endpoint):
    @lists("list_studies", StudySerializer, filters=StudyFilters)
    def get(self, request: Request) -> Response:
        """The studies that one has a role in, newest first.

        Access: signed in.
        """
        return page(
            request,
            with_roles_of(Study.objects.visible_to(self.person), self.person)
            .counted()
            .select_related("team")
            .prefetch_related("questions")
            .filter(_chosen(self.filters(StudyFilters)))
            .order_by("-created_at", "-pk"),
            StudySerializer,
        )

    @writes("create_study", NewStudyInput, StudySerializer, status=HTTPStatus.CREATED)
    def post(self, request: Request) -> Response:
        """Begin a study with a template, or as a copy: its items and protocol, no answers.

        A file of items makes one too, as an upload does.
        Access: signed in; for a team, those who may edit its studies.
        """
        body = self.input(NewStudyInput)
        common: dict[str, Any] = {
            "title": body["title"],
            "owner": self.person,
            "team": self.team_to_edit(body["team"]),
        }
        if "copy_of" in body:
            study = copy_study(source=self.study(body["copy_of"]), **common)
        else:
            study = begin_study(template=body["template"], **common)
        return Response(
            StudySerializer(self.study(study.slug), context={"request": request}).data,
            status=HTTPStatus.CREATED,
            headers={"Location": address_of(request, "study", study.slug)},
        )


def _chosen(filters: dict[str, Any]) -> Q:
    chosen = Q()
    if words := filters.get("q"):
        chosen &= Q(title__icontains=words) | Q(slug__icontains=words)
    if "kind" in filters:
        chosen &= Q(kind=filters["kind"])
    if "team" in filters:
        chosen &= Q(team__slug=filters["team"])
    if filters["archived"] is not None:
        chosen &= Q(archived_at__isnull=not filters["archived"])
    return chosen


class OneStudy(Endpoint):
    @reads("get_study", StudySerializer)
    def get(self, request: Request, slug: str) -> Response:
        """A study with its questions and sizes.

        Access: whoever has a role in the study.
        """
        return self.answer(slug)

    @writes("rename_study", NameInput, StudySerializer)
    def patch(self, request: Request, slug: str) -> Response:
        """Call it something else; its short name stays.

        Access: those who may edit the study.
        """
        rename_study(
            study=self.study(slug, Permission.EDIT),
            title=self.input(NameInput)["title"],
            actor=self.person,
        )
        return self.answer(slug)

    @writes("delete_study", None, JobSerializer, status=HTTPStatus.ACCEPTED, or_nothing=True)
    def delete(self, request: Request, slug: str) -> Response:
        """Delete it with all that is of it: 204, or 202 with the job where there is much.

        Access: those who own the study.
        """
        study = self.study(slug, Permission.OWN)
        job = remove_study(study=study, actor=self.person)
        return accepted(request, study, job) if job else Response(status=HTTPStatus.NO_CONTENT)

    def answer(self, slug: str) -> Response:
        return Response(StudySerializer(self.study(slug), context={"request": self.request}).data)


class Archive(OneStudy):
    http_method_names = ["put", "delete"]

    @writes("archive_study", None, StudySerializer)
    def put(self, request: Request, slug: str) -> Response:
        """Put it into the archive, unless work of it goes on.

        Access: those who may edit the study.
        """
        archive_study(study=self.study(slug, Permission.EDIT), actor=self.person)
        return self.answer(slug)

    @writes("restore_study", None, StudySerializer)
    def delete(self, request: Request, slug: str) -> Response:
        """Take it out of the archive.

        Access: those who may edit the study.
        """
        restore_study(study=self.study(slug, Permission.EDIT), actor=self.person)
        return self.answer(slug)
