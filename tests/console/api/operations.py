from django.db.models import Max
from django.urls import URLPattern, URLResolver, reverse

from accounts import models, roles
from annotation.models import DisputeComment, Invitation, Item, StudyMembership, Submission, Upload
from console.urls import api
from hits.models import Assignment, Batch, Connection
from metrics.models import JudgeConnection, ScoringRequest, ScoringRun
from work.models import Job

P = roles.Permission
METHODS = ("get", "post", "put", "patch", "delete")


def operations_in(text):
    lines = [word.split(":") for word in text.split()]
    return [(name, method) for name, *methods in lines for method in methods]


def table(*rows):
    return {operation: needed for needed, text in rows for operation in operations_in(text)}


# Without a study or a team: for everybody who is signed in. What writes need is in what they are
# sent: a team, or the scope of a token.
OF_ANYBODY = {
    *operations_in("""
        root:get me:get schema:get studies:get:post teams:get:post uploads:post collections:get
        experiments:get:post catalogues:get recommenders:get""")
}
# By who may import into the team of the file.
OF_UPLOADS = {
    *operations_in("""
        upload:get:delete upload-mapping:put upload-import:post upload-label-settings:put
        upload-score-settings:put""")
}
OF_A_STUDY = table(
    (
        P.VIEW,
        """
        study:get jobs:get job:get agreement:get disputes:get position-effects:get
        adjudications:get items:get item:get submissions:get submission:get protocols:get
        protocol:get scoring-runs:get comments:get label-sets:get label-set:get study-members:get
        batches:get batch:get""",
    ),
    (P.VIEW_SYSTEMS, "validation:get best-metrics:get validation-rows:get results:get"),
    (P.EXPORT, "judgments:get scores:get labels:get files:get file:get"),
    (P.VIEW_MONEY, "study-budget:get"),
    (P.ADJUDICATE, "adjudications:post comments:post comment:patch:delete"),
    (
        P.ANALYSE,
        """
        job-stop:post job-resume:post scoring-runs:post metrics:get scoring-requests:get:post
        scoring-request:get scoring-confirm:post label-sets:post results:post""",
    ),
    (
        P.EDIT,
        """
        study:patch archive:put:delete protocol-draft:put:delete protocol-check:post
        protocol-publish:post collect:post""",
    ),
    (
        P.REVIEW,
        """
        flag:put:delete assignments:get note:post clear:post appeals:get appeal-answer:post
        drafts:get:post drafts-undo:post rule-drafts:post rule-preview:post drafts-send:post""",
    ),
    (P.SPEND, "launch-preview:post batches:post batch-change-preview:post batch-change:post"),
    (frozenset({P.REVIEW, P.SPEND}), "drafts-retry:post"),
    (
        P.MANAGE,
        """
        study-budget:put study-member:patch:delete study-invitations:get:post
        study-invitation:delete""",
    ),
    (P.OWN, "study:delete team-of-study:put"),
)
OF_A_TEAM = table(
    (P.VIEW, "team:get team-members:get team-member:get"),
    (P.VIEW_MONEY, "connections:get judge-connections:get budget:get"),
    (P.VIEW_AUDIT_LOG, "audit-log:get"),
    (
        P.MANAGE,
        """
        team:patch team-member:patch:delete team-invitations:get:post team-invitation:delete
        connection:delete judge-connection:delete budget:put""",
    ),
)
OF_A_COLLECTION = table(
    (
        P.VIEW,
        """
        collection:get collection-files:get collection-jobs:get collection-job:get
        collection-evaluations:get collection-results:get collection-result:get
        collection-targets:get""",
    ),
    (P.EXPORT, "collection-topics:get collection-drawn:get"),
    (P.EDIT, "collection-targets:post"),
    (P.ANALYSE, "collection-evaluations:post collection-results:post"),
)
OF_AN_EXPERIMENT = table(
    (P.VIEW, "experiment:get runs:get run:get"),
    (P.ANALYSE, "runs:post run-stop:post run-resume:post"),
    (P.EXPORT, "run-turns:get run-targets:get run-choices:get"),
)
# What an address names beside the study or the team: a value, or a model whose last row it is.
PARTS = {
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
MEMBERS = {"team": models.Membership, "study": StudyMembership}


def operations():
    def walk(patterns, parts):
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

    return walk(api, [])


def address(name, slug=""):
    parts = next(found for found_name, _, found in operations() if found_name == name)
    values = {part: value_of(name, part, slug) for part in parts}
    return reverse(f"console:api:{name}", kwargs=values)


def value_of(name, part, slug):
    if part == "slug":
        return slug
    if name == "collection-job":
        return Job.objects.filter(kind="evaluate_collection").earliest("pk").pk
    there = MEMBERS[name.partition("-")[0]] if part == "member_id" else PARTS[part]
    if name == "judge-connection" and part == "connection_id":
        there = JudgeConnection
    if part == "token":
        return there.objects.get().token
    if there is models.Membership:
        people = models.Membership.objects.filter(user__api_tokens__team=None)
        return people.aggregate(last=Max("pk"))["last"]
    return there.objects.aggregate(last=Max("pk"))["last"] if isinstance(there, type) else there
