"""Every operation of the API, with what it needs; one without a line here fails a test."""

from collections.abc import Iterator
from typing import Any

from django.db.models import Max
from django.urls import URLPattern, URLResolver, reverse

from accounts.models import Membership
from accounts.roles import Permission
from annotation.models import DisputeComment, Invitation, Item, StudyMembership, Submission, Upload
from console.api.urls import urlpatterns
from hits.models import Assignment, Batch, Connection
from metrics.models import JudgeConnection, ScoringRequest, ScoringRun
from work.models import Job

P = Permission
METHODS = ("get", "post", "put", "patch", "delete")
# Without a study or a team: for everybody who is signed in.
OF_ANYBODY = {
    *(("root", "get"), ("me", "get"), ("schema", "get"), ("studies", "get"), ("teams", "get")),
    *(("collections", "get"), ("experiments", "get"), ("catalogues", "get")),
    ("recommenders", "get"),
    # What these need is in what they are sent: a team, or the scope of a token.
    *(("studies", "post"), ("teams", "post"), ("uploads", "post")),
    ("experiments", "post"),
}
# By who may import into the team of the file.
OF_UPLOADS = {
    *(
        ("upload", "get"),
        ("upload", "delete"),
        ("upload-mapping", "put"),
        ("upload-import", "post"),
        ("upload-label-settings", "put"),
        ("upload-score-settings", "put"),
    ),
}
OF_A_STUDY = {
    ("study", "get"): P.VIEW,
    ("study", "patch"): P.EDIT,
    ("study", "delete"): P.OWN,
    ("archive", "put"): P.EDIT,
    ("archive", "delete"): P.EDIT,
    ("jobs", "get"): P.VIEW,
    ("job", "get"): P.VIEW,
    ("job-stop", "post"): P.ANALYSE,
    ("job-resume", "post"): P.ANALYSE,
    ("agreement", "get"): P.VIEW,
    ("validation", "get"): P.VIEW_SYSTEMS,
    ("best-metrics", "get"): P.VIEW_SYSTEMS,
    ("validation-rows", "get"): P.VIEW_SYSTEMS,
    ("disputes", "get"): P.VIEW,
    ("position-effects", "get"): P.VIEW,
    ("adjudications", "get"): P.VIEW,
    ("adjudications", "post"): P.ADJUDICATE,
    ("items", "get"): P.VIEW,
    ("item", "get"): P.VIEW,
    ("submissions", "get"): P.VIEW,
    ("submission", "get"): P.VIEW,
    ("flag", "put"): P.REVIEW,
    ("flag", "delete"): P.REVIEW,
    ("judgments", "get"): P.EXPORT,
    ("protocols", "get"): P.VIEW,
    ("protocol", "get"): P.VIEW,
    ("protocol-draft", "put"): P.EDIT,
    ("protocol-draft", "delete"): P.EDIT,
    ("protocol-check", "post"): P.EDIT,
    ("protocol-publish", "post"): P.EDIT,
    ("scoring-runs", "get"): P.VIEW,
    ("scoring-runs", "post"): P.ANALYSE,
    ("scores", "get"): P.EXPORT,
    ("metrics", "get"): P.ANALYSE,
    ("scoring-requests", "get"): P.ANALYSE,
    ("scoring-requests", "post"): P.ANALYSE,
    ("scoring-request", "get"): P.ANALYSE,
    ("scoring-confirm", "post"): P.ANALYSE,
    ("comments", "get"): P.VIEW,
    ("comments", "post"): P.ADJUDICATE,
    ("comment", "patch"): P.ADJUDICATE,
    ("comment", "delete"): P.ADJUDICATE,
    ("label-sets", "get"): P.VIEW,
    ("label-sets", "post"): P.ANALYSE,
    ("label-set", "get"): P.VIEW,
    ("labels", "get"): P.EXPORT,
    ("study-budget", "get"): P.VIEW_MONEY,
    ("study-budget", "put"): P.MANAGE,
    ("results", "get"): P.VIEW_SYSTEMS,
    ("results", "post"): P.ANALYSE,
    ("files", "get"): P.EXPORT,
    ("file", "get"): P.EXPORT,
    ("team-of-study", "put"): P.OWN,
    ("study-members", "get"): P.VIEW,
    ("study-member", "patch"): P.MANAGE,
    ("study-member", "delete"): P.MANAGE,
    ("study-invitations", "get"): P.MANAGE,
    ("study-invitations", "post"): P.MANAGE,
    ("study-invitation", "delete"): P.MANAGE,
}
OF_A_TEAM = {
    ("team", "get"): P.VIEW,
    ("team", "patch"): P.MANAGE,
    ("team-members", "get"): P.VIEW,
    ("team-member", "get"): P.VIEW,
    ("team-member", "patch"): P.MANAGE,
    ("team-member", "delete"): P.MANAGE,
    ("team-invitations", "get"): P.MANAGE,
    ("team-invitations", "post"): P.MANAGE,
    ("team-invitation", "delete"): P.MANAGE,
    ("connections", "get"): P.VIEW_MONEY,
    ("connection", "delete"): P.MANAGE,
    ("judge-connections", "get"): P.VIEW_MONEY,
    ("judge-connection", "delete"): P.MANAGE,
    ("budget", "get"): P.VIEW_MONEY,
    ("budget", "put"): P.MANAGE,
    ("audit-log", "get"): P.VIEW_AUDIT_LOG,
}
OF_ITS_WORK = {
    **dict.fromkeys(
        [
            *(("launch-preview", "post"), ("batches", "post")),
            *(("batch-change-preview", "post"), ("batch-change", "post")),
        ],
        P.SPEND,
    ),
    ("batches", "get"): P.VIEW,
    ("batch", "get"): P.VIEW,
    ("collect", "post"): P.EDIT,
    **dict.fromkeys(
        [
            *(("assignments", "get"), ("note", "post"), ("clear", "post")),
            *(("appeals", "get"), ("appeal-answer", "post")),
            *(("drafts", "get"), ("drafts", "post"), ("drafts-undo", "post")),
            *(("rule-drafts", "post"), ("rule-preview", "post"), ("drafts-send", "post")),
        ],
        P.REVIEW,
    ),
    ("drafts-retry", "post"): frozenset({P.REVIEW, P.SPEND}),
}
OF_A_STUDY |= OF_ITS_WORK
# test_collections.py tries them.
OF_A_COLLECTION = {
    **dict.fromkeys(
        [
            *(("collection", "get"), ("collection-files", "get"), ("collection-jobs", "get")),
            *(("collection-job", "get"), ("collection-evaluations", "get")),
            *(("collection-results", "get"), ("collection-result", "get")),
            ("collection-targets", "get"),
        ],
        P.VIEW,
    ),
    ("collection-topics", "get"): P.EXPORT,
    ("collection-drawn", "get"): P.EXPORT,
    ("collection-targets", "post"): P.EDIT,
    ("collection-evaluations", "post"): P.ANALYSE,
}
# test_experiments.py tries them.
OF_AN_EXPERIMENT = {
    **dict.fromkeys([("experiment", "get"), ("runs", "get"), ("run", "get")], P.VIEW),
    **dict.fromkeys([("runs", "post"), ("run-stop", "post"), ("run-resume", "post")], P.ANALYSE),
    **dict.fromkeys(
        [("run-turns", "get"), ("run-targets", "get"), ("run-choices", "get")], P.EXPORT
    ),
}
# What an address names beside the study or the team: a value, or a model whose last row it is.
PARTS: dict[str, Any] = {
    "job_id": Job,
    "batch_id": Batch,
    "assignment_id": Assignment,
    "change": "close",
    "item_id": Item,
    "submission_id": Submission,
    "number": 1,
    "kind": "comparisons",
    "run_id": ScoringRun,
    "version": 1,
    "name": "judgments.csv",
    "token": Upload,
    "invitation_id": Invitation,
    "request_id": ScoringRequest,
    "comment_id": DisputeComment,
    "connection_id": Connection,
}
MEMBERS = {"team": Membership, "study": StudyMembership}


def operations() -> Iterator[tuple[str, str, list[str]]]:
    """The name, the method and the parts of the address of every operation there is."""

    def walk(patterns: Any, parts: list[str]) -> Iterator[tuple[str, str, list[str]]]:
        for pattern in patterns:
            inner = parts + list(pattern.pattern.converters)
            if isinstance(pattern, URLResolver):
                yield from walk(pattern.url_patterns, inner)
            elif isinstance(pattern, URLPattern):
                view = getattr(pattern.callback, "cls", None)
                allowed = view.http_method_names if view else METHODS
                for method in METHODS:
                    if hasattr(view, method) and method in allowed:
                        yield str(pattern.name), method, inner

    return walk(urlpatterns, [])


def address(name: str, slug: str = "") -> str:
    """Of one thing that is there, of the study or the team of that slug."""
    parts = next(found for found_name, _, found in operations() if found_name == name)
    values = {part: value_of(name, part, slug) for part in parts}
    return reverse(f"console:api:{name}", kwargs=values)


def value_of(name: str, part: str, slug: str) -> Any:
    if part == "slug":
        return slug
    there = MEMBERS[name.partition("-")[0]] if part == "member_id" else PARTS[part]
    if name == "judge-connection" and part == "connection_id":
        there = JudgeConnection
    if part == "token":
        return there.objects.get().token
    if there is Membership:
        people = Membership.objects.filter(user__api_tokens__team=None)
        return people.aggregate(last=Max("pk"))["last"]
    return there.objects.aggregate(last=Max("pk"))["last"] if isinstance(there, type) else there
