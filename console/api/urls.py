"""The addresses of the API under /api/v1/, and those from before it had versions."""

from django.urls import URLPattern, URLResolver, include, path

from lazy_views import LazyPackage

endpoints = LazyPackage("console.api")

INVITATION = "invitations/<int:invitation_id>/"
SUBMISSION = "submissions/<int:submission_id>/"
of_a_study: list[URLPattern | URLResolver] = [
    path("", endpoints.studies.OneStudy.as_view(), name="study"),
    path("archive/", endpoints.studies.Archive.as_view(), name="archive"),
    path("jobs/", endpoints.jobs.Jobs.as_view(), name="jobs"),
    path("jobs/<int:job_id>/", endpoints.jobs.OneJob.as_view(), name="job"),
    path("jobs/<int:job_id>/stop/", endpoints.jobs.Stop.as_view(), name="job-stop"),
    path("jobs/<int:job_id>/resume/", endpoints.jobs.Resume.as_view(), name="job-resume"),
    path("agreement/", endpoints.results.Agreement.as_view(), name="agreement"),
    path("position-effects/", endpoints.results.PositionEffects.as_view(), name="position-effects"),
    path("validation/", endpoints.results.Validation.as_view(), name="validation"),
    path(
        "validation/best/",
        endpoints.metric_results.BestMetricsEndpoint.as_view(),
        name="best-metrics",
    ),
    path(
        "validation/<slug:kind>/",
        endpoints.metric_results.ValidationRows.as_view(),
        name="validation-rows",
    ),
    path("disputes/", endpoints.results.Disputes.as_view(), name="disputes"),
    path("adjudications/", endpoints.labels.Adjudications.as_view(), name="adjudications"),
    path("items/", endpoints.items.Items.as_view(), name="items"),
    path("items/<int:item_id>/", endpoints.items.OneItem.as_view(), name="item"),
    path("submissions/", endpoints.judgments.Submissions.as_view(), name="submissions"),
    path(SUBMISSION, endpoints.judgments.OneSubmission.as_view(), name="submission"),
    path(f"{SUBMISSION}flag/", endpoints.judgments.Flag.as_view(), name="flag"),
    path("judgments/", endpoints.judgments.Judgments.as_view(), name="judgments"),
    path("protocols/", endpoints.protocols.Protocols.as_view(), name="protocols"),
    path("protocols/<int:number>/", endpoints.protocols.OneProtocol.as_view(), name="protocol"),
    path("protocols/draft/", endpoints.protocols.Draft.as_view(), name="protocol-draft"),
    path("protocols/check/", endpoints.protocols.Check.as_view(), name="protocol-check"),
    path("protocols/publish/", endpoints.protocols.Publishing.as_view(), name="protocol-publish"),
    path("scores/", endpoints.scores.Runs.as_view(), name="scoring-runs"),
    path("scores/<int:run_id>/", endpoints.scores.Scores.as_view(), name="scores"),
    path("metrics/", endpoints.scoring.Metrics.as_view(), name="metrics"),
    path("scoring-requests/", endpoints.scoring.ScoringRequests.as_view(), name="scoring-requests"),
    path(
        "scoring-requests/<int:request_id>/",
        endpoints.scoring.OneScoringRequest.as_view(),
        name="scoring-request",
    ),
    path(
        "scoring-requests/<int:request_id>/confirm/",
        endpoints.scoring.Confirmation.as_view(),
        name="scoring-confirm",
    ),
    path("comments/", endpoints.comments.Comments.as_view(), name="comments"),
    path("comments/<int:comment_id>/", endpoints.comments.OneComment.as_view(), name="comment"),
    path("label-sets/", endpoints.labels.LabelSets.as_view(), name="label-sets"),
    path("label-sets/<int:version>/", endpoints.labels.OneLabelSet.as_view(), name="label-set"),
    path("label-sets/<int:version>/labels/", endpoints.labels.Labels.as_view(), name="labels"),
    path("results/", endpoints.results.Results.as_view(), name="results"),
    path("team/", endpoints.members.TeamOfStudy.as_view(), name="team-of-study"),
    path("members/", endpoints.members.StudyMembers.as_view(), name="study-members"),
    path("members/<int:member_id>/", endpoints.members.StudyMember.as_view(), name="study-member"),
    path("invitations/", endpoints.members.StudyInvitations.as_view(), name="study-invitations"),
    path(INVITATION, endpoints.members.StudyInvitation.as_view(), name="study-invitation"),
    path("files/", endpoints.downloads.Files.as_view(), name="files"),
    path("files/<str:name>", endpoints.downloads.OneFile.as_view(), name="file"),
]

of_a_team: list[URLPattern | URLResolver] = [
    path("", endpoints.teams.OneTeam.as_view(), name="team"),
    path("members/", endpoints.members.TeamMembers.as_view(), name="team-members"),
    path("members/<int:member_id>/", endpoints.members.TeamMember.as_view(), name="team-member"),
    path("invitations/", endpoints.members.TeamInvitations.as_view(), name="team-invitations"),
    path(INVITATION, endpoints.members.TeamInvitation.as_view(), name="team-invitation"),
    path("audit-log/", endpoints.teams.AuditLog.as_view(), name="audit-log"),
]

of_a_collection: list[URLPattern | URLResolver] = [
    path("", endpoints.collections.OneCollection.as_view(), name="collection"),
    path("files/", endpoints.collections.CollectionFiles.as_view(), name="collection-files"),
    path("jobs/", endpoints.collections.CollectionJobs.as_view(), name="collection-jobs"),
    path(
        "jobs/<int:job_id>/",
        endpoints.collections.OneCollectionJob.as_view(),
        name="collection-job",
    ),
    path(
        "evaluations/",
        endpoints.collection_results.Evaluations.as_view(),
        name="collection-evaluations",
    ),
    path(
        "evaluations/<int:number>/topics/",
        endpoints.collection_results.TopicValues.as_view(),
        name="collection-topics",
    ),
    path(
        "targets/", endpoints.collection_results.TargetSamples.as_view(), name="collection-targets"
    ),
    path(
        "targets/<int:number>/drawn/",
        endpoints.collection_results.SampledTargets.as_view(),
        name="collection-drawn",
    ),
    path(
        "<slug:kind>/",
        endpoints.collection_results.CollectionResults.as_view(),
        name="collection-results",
    ),
    path(
        "<slug:kind>/<int:number>/",
        endpoints.collection_results.OneCollectionResult.as_view(),
        name="collection-result",
    ),
]

of_an_experiment: list[URLPattern | URLResolver] = [
    path("", endpoints.experiments.OneExperiment.as_view(), name="experiment"),
    path("runs/", endpoints.runs.Runs.as_view(), name="runs"),
    path("runs/<int:number>/", endpoints.runs.OneRun.as_view(), name="run"),
    path("runs/<int:number>/stop/", endpoints.runs.StopRun.as_view(), name="run-stop"),
    path("runs/<int:number>/resume/", endpoints.runs.ResumeRun.as_view(), name="run-resume"),
    path("runs/<int:number>/turns/", endpoints.runs.Turns.as_view(), name="run-turns"),
    path("runs/<int:number>/targets/", endpoints.runs.TargetValues.as_view(), name="run-targets"),
    path("runs/<int:number>/choices/", endpoints.runs.Sensitivity.as_view(), name="run-choices"),
]

of_the_site: list[URLPattern | URLResolver] = [
    path("", endpoints.own.Root.as_view(), name="root"),
    path("me/", endpoints.own.Own.as_view(), name="me"),
    path("schema/", endpoints.own.Schema.as_view(api_version="1"), name="schema"),
    path("studies/", endpoints.studies.Studies.as_view(), name="studies"),
    path("collections/", endpoints.collections.Collections.as_view(), name="collections"),
    path("collections/<slug:slug>/", include(of_a_collection)),
    path("experiments/", endpoints.experiments.Experiments.as_view(), name="experiments"),
    path("experiments/<slug:slug>/", include(of_an_experiment)),
    path("catalogues/", endpoints.experiments.Catalogues.as_view(), name="catalogues"),
    path("recommenders/", endpoints.experiments.Recommenders.as_view(), name="recommenders"),
    path("uploads/", endpoints.uploads.Uploads.as_view(), name="uploads"),
    path("uploads/<uuid:token>/", endpoints.uploads.OneUpload.as_view(), name="upload"),
    path(
        "uploads/<uuid:token>/mapping/", endpoints.uploads.Mapping.as_view(), name="upload-mapping"
    ),
    path(
        "uploads/<uuid:token>/label-settings/",
        endpoints.upload_settings.LabelSettingsEndpoint.as_view(),
        name="upload-label-settings",
    ),
    path(
        "uploads/<uuid:token>/score-settings/",
        endpoints.upload_settings.ScoreSettingsEndpoint.as_view(),
        name="upload-score-settings",
    ),
    path("uploads/<uuid:token>/import/", endpoints.uploads.Import.as_view(), name="upload-import"),
    path("teams/", endpoints.teams.Teams.as_view(), name="teams"),
]

# From before there were versions: they answer as the same addresses of version 1 do.
former: list[URLPattern | URLResolver] = [
    path("", endpoints.own.Root.as_view(), name="api-root"),
    path(
        "studies/",
        endpoints.studies.Studies.as_view(http_method_names=["get", "head"]),
        name="api-study-list",
    ),
    path(
        "studies/<slug:slug>/",
        endpoints.studies.OneStudy.as_view(http_method_names=["get", "head"]),
        name="api-study-detail",
    ),
    path(
        "studies/<slug:slug>/agreement/",
        endpoints.results.Agreement.as_view(),
        name="api-study-agreement",
    ),
    path(
        "studies/<slug:slug>/validation/",
        endpoints.results.Validation.as_view(),
        name="api-study-validation",
    ),
    path(
        "studies/<slug:slug>/disputes/",
        endpoints.results.Disputes.as_view(),
        name="api-study-disputes",
    ),
]
former_files: list[URLPattern | URLResolver] = [
    path("schema/", endpoints.own.Schema.as_view(api_version="1"), name="schema"),
]
