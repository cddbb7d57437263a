"""The addresses of this app under /api/v1/."""

from django.urls import URLPattern, URLResolver, path

from lazy_views import LazyPackage

endpoints = LazyPackage("annotation.api")

of_a_study: list[URLPattern | URLResolver] = [
    path("jobs/", endpoints.jobs.Jobs.as_view(), name="jobs"),
    path("jobs/<int:job_id>/", endpoints.jobs.OneJob.as_view(), name="job"),
    path("jobs/<int:job_id>/stop/", endpoints.jobs.Stop.as_view(), name="job-stop"),
    path("jobs/<int:job_id>/resume/", endpoints.jobs.Resume.as_view(), name="job-resume"),
    path("items/", endpoints.items.Items.as_view(), name="items"),
    path("items/<int:item_id>/", endpoints.items.OneItem.as_view(), name="item"),
    path("submissions/", endpoints.items.Submissions.as_view(), name="submissions"),
    path(
        "submissions/<int:submission_id>/",
        endpoints.items.OneSubmission.as_view(),
        name="submission",
    ),
    path("submissions/<int:submission_id>/flag/", endpoints.items.Flag.as_view(), name="flag"),
    path("judgments/", endpoints.items.Judgments.as_view(), name="judgments"),
    path("protocols/", endpoints.protocols.Protocols.as_view(), name="protocols"),
    path("protocols/<int:number>/", endpoints.protocols.OneProtocol.as_view(), name="protocol"),
    path("protocols/draft/", endpoints.protocols.Draft.as_view(), name="protocol-draft"),
    path("protocols/check/", endpoints.protocols.Check.as_view(), name="protocol-check"),
    path("protocols/publish/", endpoints.protocols.Publishing.as_view(), name="protocol-publish"),
    path("comments/", endpoints.labels.Comments.as_view(), name="comments"),
    path("comments/<int:comment_id>/", endpoints.labels.OneComment.as_view(), name="comment"),
    path("team/", endpoints.teams.TeamOfStudy.as_view(), name="team-of-study"),
    path("members/", endpoints.teams.StudyMembers.as_view(), name="study-members"),
    path("members/<int:member_id>/", endpoints.teams.StudyMember.as_view(), name="study-member"),
    path("invitations/", endpoints.teams.StudyInvitations.as_view(), name="study-invitations"),
    path(
        "invitations/<int:invitation_id>/",
        endpoints.teams.StudyInvitation.as_view(),
        name="study-invitation",
    ),
    path("files/", endpoints.jobs.Files.as_view(), name="files"),
    path("files/<str:name>", endpoints.jobs.OneFile.as_view(), name="file"),
    path("adjudications/", endpoints.labels.Adjudications.as_view(), name="adjudications"),
    path("label-sets/", endpoints.labels.LabelSets.as_view(), name="label-sets"),
    path("label-sets/<int:version>/", endpoints.labels.OneLabelSet.as_view(), name="label-set"),
    path("label-sets/<int:version>/labels/", endpoints.labels.Labels.as_view(), name="labels"),
]

of_a_team: list[URLPattern | URLResolver] = [
    path("members/", endpoints.teams.TeamMembers.as_view(), name="team-members"),
    path("members/<int:member_id>/", endpoints.teams.TeamMember.as_view(), name="team-member"),
    path("invitations/", endpoints.teams.TeamInvitations.as_view(), name="team-invitations"),
    path(
        "invitations/<int:invitation_id>/",
        endpoints.teams.TeamInvitation.as_view(),
        name="team-invitation",
    ),
    path("", endpoints.teams.OneTeam.as_view(), name="team"),
    path("audit-log/", endpoints.teams.AuditLog.as_view(), name="audit-log"),
]

of_the_site: list[URLPattern | URLResolver] = [
    path("uploads/", endpoints.uploads.Uploads.as_view(), name="uploads"),
    path("uploads/<uuid:token>/", endpoints.uploads.OneUpload.as_view(), name="upload"),
    path(
        "uploads/<uuid:token>/mapping/", endpoints.uploads.Mapping.as_view(), name="upload-mapping"
    ),
    path(
        "uploads/<uuid:token>/label-settings/",
        endpoints.uploads.LabelSettingsEndpoint.as_view(),
        name="upload-label-settings",
    ),
    path(
        "uploads/<uuid:token>/score-settings/",
        endpoints.uploads.ScoreSettingsEndpoint.as_view(),
        name="upload-score-settings",
    ),
    path("uploads/<uuid:token>/import/", endpoints.uploads.Import.as_view(), name="upload-import"),
    path("teams/", endpoints.teams.Teams.as_view(), name="teams"),
]
