"""The addresses of the API under /api/v1/, and those from before it had versions."""

from django.urls import URLPattern, URLResolver, include, path
from drf_spectacular.views import SpectacularAPIView
from rest_framework.authentication import SessionAuthentication
from rest_framework.permissions import IsAuthenticated
from rest_framework.urlpatterns import format_suffix_patterns

from console.api import (
    assignments,
    batches,
    collection_results,
    collections,
    comments,
    decisions,
    downloads,
    experiments,
    items,
    jobs,
    judgments,
    labels,
    launch,
    members,
    metric_results,
    own,
    protocols,
    results,
    runs,
    scores,
    scoring,
    studies,
    teams,
    upload_settings,
    uploads,
)
from console.api.authentication import BearerToken

app_name = "api"

# Of one version: one that an address names would stand in a header.
schema = SpectacularAPIView.as_view(
    authentication_classes=[BearerToken, SessionAuthentication],
    permission_classes=[IsAuthenticated],
    api_version="1",
)

INVITATION = "invitations/<int:invitation_id>/"
SUBMISSION = "submissions/<int:submission_id>/"
of_a_study: list[URLPattern | URLResolver] = [
    path("", studies.OneStudy.as_view(), name="study"),
    path("archive/", studies.Archive.as_view(), name="archive"),
    path("jobs/", jobs.Jobs.as_view(), name="jobs"),
    path("jobs/<int:job_id>/", jobs.OneJob.as_view(), name="job"),
    path("jobs/<int:job_id>/stop/", jobs.Stop.as_view(), name="job-stop"),
    path("jobs/<int:job_id>/resume/", jobs.Resume.as_view(), name="job-resume"),
    path("agreement/", results.Agreement.as_view(), name="agreement"),
    path("validation/", results.Validation.as_view(), name="validation"),
    path("validation/best/", metric_results.BestMetricsEndpoint.as_view(), name="best-metrics"),
    path(
        "validation/<slug:kind>/", metric_results.ValidationRows.as_view(), name="validation-rows"
    ),
    path("disputes/", results.Disputes.as_view(), name="disputes"),
    path("adjudications/", labels.Adjudications.as_view(), name="adjudications"),
    path("items/", items.Items.as_view(), name="items"),
    path("items/<int:item_id>/", items.OneItem.as_view(), name="item"),
    path("submissions/", judgments.Submissions.as_view(), name="submissions"),
    path(SUBMISSION, judgments.OneSubmission.as_view(), name="submission"),
    path(f"{SUBMISSION}flag/", judgments.Flag.as_view(), name="flag"),
    path("judgments/", judgments.Judgments.as_view(), name="judgments"),
    path("protocols/", protocols.Protocols.as_view(), name="protocols"),
    path("protocols/<int:number>/", protocols.OneProtocol.as_view(), name="protocol"),
    path("protocols/draft/", protocols.Draft.as_view(), name="protocol-draft"),
    path("protocols/check/", protocols.Check.as_view(), name="protocol-check"),
    path("protocols/publish/", protocols.Publishing.as_view(), name="protocol-publish"),
    path("scores/", scores.Runs.as_view(), name="scoring-runs"),
    path("scores/<int:run_id>/", scores.Scores.as_view(), name="scores"),
    path("metrics/", scoring.Metrics.as_view(), name="metrics"),
    path("scoring-requests/", scoring.ScoringRequests.as_view(), name="scoring-requests"),
    path(
        "scoring-requests/<int:request_id>/",
        scoring.OneScoringRequest.as_view(),
        name="scoring-request",
    ),
    path(
        "scoring-requests/<int:request_id>/confirm/",
        scoring.Confirmation.as_view(),
        name="scoring-confirm",
    ),
    path("comments/", comments.Comments.as_view(), name="comments"),
    path("comments/<int:comment_id>/", comments.OneComment.as_view(), name="comment"),
    path("label-sets/", labels.LabelSets.as_view(), name="label-sets"),
    path("label-sets/<int:version>/", labels.OneLabelSet.as_view(), name="label-set"),
    path("label-sets/<int:version>/labels/", labels.Labels.as_view(), name="labels"),
    path("budget/", teams.StudyBudget.as_view(), name="study-budget"),
    path("results/", results.Results.as_view(), name="results"),
    path("team/", members.TeamOfStudy.as_view(), name="team-of-study"),
    path("members/", members.StudyMembers.as_view(), name="study-members"),
    path("members/<int:member_id>/", members.StudyMember.as_view(), name="study-member"),
    path("invitations/", members.StudyInvitations.as_view(), name="study-invitations"),
    path(INVITATION, members.StudyInvitation.as_view(), name="study-invitation"),
    path("files/", downloads.Files.as_view(), name="files"),
    path("files/<str:name>", downloads.OneFile.as_view(), name="file"),
]

of_a_team: list[URLPattern | URLResolver] = [
    path("", teams.OneTeam.as_view(), name="team"),
    path("members/", members.TeamMembers.as_view(), name="team-members"),
    path("members/<int:member_id>/", members.TeamMember.as_view(), name="team-member"),
    path("invitations/", members.TeamInvitations.as_view(), name="team-invitations"),
    path(INVITATION, members.TeamInvitation.as_view(), name="team-invitation"),
    path("connections/", teams.Connections.as_view(), name="connections"),
    path("connections/<int:connection_id>/", teams.OneConnection.as_view(), name="connection"),
    path("judges/", teams.JudgeConnections.as_view(), name="judge-connections"),
    path(
        "judges/<int:connection_id>/",
        teams.OneJudgeConnection.as_view(),
        name="judge-connection",
    ),
    path("budget/", teams.TeamBudget.as_view(), name="budget"),
    path("audit-log/", teams.AuditLog.as_view(), name="audit-log"),
]

# What is launched of a study, and what is decided on the work that came in.
of_its_work: list[URLPattern | URLResolver] = [
    path("launch/preview/", launch.LaunchPreview.as_view(), name="launch-preview"),
    path("batches/", launch.Batches.as_view(), name="batches"),
    path("batches/<int:batch_id>/", batches.OneBatch.as_view(), name="batch"),
    path(
        "batches/<int:batch_id>/<slug:change>/preview/",
        batches.ChangePreview.as_view(),
        name="batch-change-preview",
    ),
    path(
        "batches/<int:batch_id>/<slug:change>/",
        batches.BatchChange.as_view(),
        name="batch-change",
    ),
    path("collect/", batches.Collection.as_view(), name="collect"),
    path("assignments/", assignments.Assignments.as_view(), name="assignments"),
    path("assignments/<int:assignment_id>/note/", assignments.Note.as_view(), name="note"),
    path("assignments/<int:assignment_id>/clear/", assignments.Clearance.as_view(), name="clear"),
    path("appeals/", assignments.Appeals.as_view(), name="appeals"),
    path(
        "appeals/<int:assignment_id>/answer/",
        assignments.AppealAnswer.as_view(),
        name="appeal-answer",
    ),
    path("drafts/", decisions.Drafts.as_view(), name="drafts"),
    path("drafts/undo/", decisions.Undo.as_view(), name="drafts-undo"),
    path("drafts/rules/", decisions.RuleDrafts.as_view(), name="rule-drafts"),
    path("drafts/rules/preview/", decisions.RulePreviewEndpoint.as_view(), name="rule-preview"),
    path("drafts/send/", decisions.Send.as_view(), name="drafts-send"),
    path("drafts/retry/", decisions.Retry.as_view(), name="drafts-retry"),
]

of_a_collection: list[URLPattern | URLResolver] = [
    path("", collections.OneCollection.as_view(), name="collection"),
    path("files/", collections.CollectionFiles.as_view(), name="collection-files"),
    path("jobs/", collections.CollectionJobs.as_view(), name="collection-jobs"),
    path("jobs/<int:job_id>/", collections.OneCollectionJob.as_view(), name="collection-job"),
    path("evaluations/", collection_results.Evaluations.as_view(), name="collection-evaluations"),
    path(
        "evaluations/<int:number>/topics/",
        collection_results.TopicValues.as_view(),
        name="collection-topics",
    ),
    path("targets/", collection_results.TargetSamples.as_view(), name="collection-targets"),
    path(
        "targets/<int:number>/drawn/",
        collection_results.SampledTargets.as_view(),
        name="collection-drawn",
    ),
    path("<slug:kind>/", collection_results.CollectionResults.as_view(), name="collection-results"),
    path(
        "<slug:kind>/<int:number>/",
        collection_results.OneCollectionResult.as_view(),
        name="collection-result",
    ),
]

of_an_experiment: list[URLPattern | URLResolver] = [
    path("", experiments.OneExperiment.as_view(), name="experiment"),
    path("runs/", runs.Runs.as_view(), name="runs"),
    path("runs/<int:number>/", runs.OneRun.as_view(), name="run"),
    path("runs/<int:number>/stop/", runs.StopRun.as_view(), name="run-stop"),
    path("runs/<int:number>/resume/", runs.ResumeRun.as_view(), name="run-resume"),
    path("runs/<int:number>/turns/", runs.Turns.as_view(), name="run-turns"),
    path("runs/<int:number>/targets/", runs.TargetValues.as_view(), name="run-targets"),
    path("runs/<int:number>/choices/", runs.Sensitivity.as_view(), name="run-choices"),
]

urlpatterns: list[URLPattern | URLResolver] = [
    path("", own.Root.as_view(), name="root"),
    path("me/", own.Own.as_view(), name="me"),
    path("schema/", schema, name="schema"),
    path("studies/", studies.Studies.as_view(), name="studies"),
    path("studies/<slug:slug>/", include([*of_a_study, *of_its_work])),
    path("collections/", collections.Collections.as_view(), name="collections"),
    path("collections/<slug:slug>/", include(of_a_collection)),
    path("experiments/", experiments.Experiments.as_view(), name="experiments"),
    path("experiments/<slug:slug>/", include(of_an_experiment)),
    path("catalogues/", experiments.Catalogues.as_view(), name="catalogues"),
    path("recommenders/", experiments.Recommenders.as_view(), name="recommenders"),
    path("uploads/", uploads.Uploads.as_view(), name="uploads"),
    path("uploads/<uuid:token>/", uploads.OneUpload.as_view(), name="upload"),
    path("uploads/<uuid:token>/mapping/", uploads.Mapping.as_view(), name="upload-mapping"),
    path(
        "uploads/<uuid:token>/label-settings/",
        upload_settings.LabelSettingsEndpoint.as_view(),
        name="upload-label-settings",
    ),
    path(
        "uploads/<uuid:token>/score-settings/",
        upload_settings.ScoreSettingsEndpoint.as_view(),
        name="upload-score-settings",
    ),
    path("uploads/<uuid:token>/import/", uploads.Import.as_view(), name="upload-import"),
    path("teams/", teams.Teams.as_view(), name="teams"),
    path("teams/<slug:slug>/", include(of_a_team)),
]

# From before there were versions: they answer as the same addresses of version 1 do.
STUDY = "studies/<slug:slug>/"
# As then, they take nothing.
one_study = studies.OneStudy.as_view(http_method_names=["get", "head"])
every_study = studies.Studies.as_view(http_method_names=["get", "head"])
FORMER = [
    path("", own.Root.as_view(), name="api-root"),
    path("studies/", every_study, name="api-study-list"),
    path(STUDY, one_study, name="api-study-detail"),
    path(f"{STUDY}agreement/", results.Agreement.as_view(), name="api-study-agreement"),
    path(f"{STUDY}validation/", results.Validation.as_view(), name="api-study-validation"),
    path(f"{STUDY}disputes/", results.Disputes.as_view(), name="api-study-disputes"),
]
former: list[URLPattern | URLResolver] = [
    *format_suffix_patterns(FORMER, allowed=["json"]),
    path("schema/", schema, name="schema"),
]
