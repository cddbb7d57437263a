from django.urls import URLPattern, URLResolver, path

from lazy_views import LazyPackage

endpoints = LazyPackage("hits.api")

of_a_study: list[URLPattern | URLResolver] = [
    path("launch/preview/", endpoints.launch.LaunchPreview.as_view(), name="launch-preview"),
    path("batches/", endpoints.launch.Batches.as_view(), name="batches"),
    path("batches/<int:batch_id>/", endpoints.batches.OneBatch.as_view(), name="batch"),
    path(
        "batches/<int:batch_id>/<slug:change>/preview/",
        endpoints.batches.ChangePreview.as_view(),
        name="batch-change-preview",
    ),
    path(
        "batches/<int:batch_id>/<slug:change>/",
        endpoints.batches.BatchChange.as_view(),
        name="batch-change",
    ),
    path("collect/", endpoints.batches.Collection.as_view(), name="collect"),
    path("assignments/", endpoints.assignments.Assignments.as_view(), name="assignments"),
    path(
        "assignments/<int:assignment_id>/note/", endpoints.assignments.Note.as_view(), name="note"
    ),
    path(
        "assignments/<int:assignment_id>/clear/",
        endpoints.assignments.Clearance.as_view(),
        name="clear",
    ),
    path("appeals/", endpoints.assignments.Appeals.as_view(), name="appeals"),
    path(
        "appeals/<int:assignment_id>/answer/",
        endpoints.assignments.AppealAnswer.as_view(),
        name="appeal-answer",
    ),
    path("drafts/", endpoints.assignments.Drafts.as_view(), name="drafts"),
    path("drafts/undo/", endpoints.assignments.Undo.as_view(), name="drafts-undo"),
    path("drafts/rules/", endpoints.assignments.RuleDrafts.as_view(), name="rule-drafts"),
    path(
        "drafts/rules/preview/",
        endpoints.assignments.RulePreviewEndpoint.as_view(),
        name="rule-preview",
    ),
    path("drafts/send/", endpoints.assignments.Send.as_view(), name="drafts-send"),
    path("drafts/retry/", endpoints.assignments.Retry.as_view(), name="drafts-retry"),
    path("budget/", endpoints.launch.StudyBudget.as_view(), name="study-budget"),
    path("", endpoints.studies.OneStudy.as_view(), name="study"),
    path("archive/", endpoints.studies.Archive.as_view(), name="archive"),
]

of_a_team: list[URLPattern | URLResolver] = [
    path("connections/", endpoints.launch.Connections.as_view(), name="connections"),
    path(
        "connections/<int:connection_id>/",
        endpoints.launch.OneConnection.as_view(),
        name="connection",
    ),
    path("budget/", endpoints.launch.TeamBudget.as_view(), name="budget"),
]

of_the_site: list[URLPattern | URLResolver] = [
    path("studies/", endpoints.studies.Studies.as_view(), name="studies"),
]

former: list[URLPattern | URLResolver] = [
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
]
