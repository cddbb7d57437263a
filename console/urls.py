from django.urls import URLPattern, URLResolver, include, path
from drf_spectacular.views import SpectacularAPIView
from rest_framework.permissions import IsAuthenticated
from rest_framework.routers import DefaultRouter

from console.api import StudyViewSet
from console.pages import (
    adjudication,
    agreement,
    batches,
    collection,
    connections,
    downloads,
    invitations,
    items,
    labels,
    launch,
    members,
    review,
    review_rules,
    sign_in,
    studies,
    teams,
    validation,
    waiting,
)

app_name = "console"

router = DefaultRouter()
router.register("studies", StudyViewSet, basename="api-study")

# Of one version: one that an address names would stand in a header.
schema = SpectacularAPIView.as_view(permission_classes=[IsAuthenticated], api_version="1")

of_a_study: list[URLPattern | URLResolver] = [
    path("", studies.study, name="study"),
    path("items/", items.items, name="items"),
    path("items/<int:item_id>/", items.item, name="item"),
    path("submissions/<int:submission_id>/flag/", items.flag, name="flag"),
    path("submissions/<int:submission_id>/unflag/", items.unflag, name="unflag"),
    path("launch/", launch.launch, name="launch"),
    path("launch/publish/", launch.publish, name="publish"),
    path("launch/team/", launch.team, name="launch-team"),
    path("launch/connect/", launch.connect, name="launch-connect"),
    path("launch/budget/", launch.budget, name="study-budget"),
    path("answers/", collection.answers, name="answers"),
    path("batches/<int:batch_id>/", batches.batch, name="batch"),
    path("batches/<int:batch_id>/<slug:name>/", batches.batch_change, name="batch-change"),
    path("collect/", collection.collect, name="collect"),
    path("review/", review.review, name="review"),
    path("review/<int:assignment_id>/draft/", review.draft, name="review-draft"),
    path("review/<int:assignment_id>/note/", review.note, name="review-note"),
    path("review/<int:assignment_id>/appeal/", review.appeal, name="review-appeal"),
    path("review/undo/", review.undo, name="review-undo"),
    path("review/send/", review.send, name="review-send"),
    path("review/sending/", review.sending, name="review-sending"),
    path("review/retry/", review.retry, name="review-retry"),
    path("review/rules/", review_rules.rules, name="review-rules"),
    path("review/rules/draft/", review_rules.draft_by_rule, name="review-rules-draft"),
    path("review/reasons/", review_rules.reasons, name="review-reasons"),
    path("review/reasons/add/", review_rules.add_reason, name="review-reason-add"),
    path(
        "review/reasons/<int:reason_id>/delete/",
        review_rules.delete_reason,
        name="review-reason-delete",
    ),
    path("agreement/", agreement.agreement, name="agreement"),
    path("agreement/annotators/", agreement.annotators, name="annotators"),
    path("agreement/disagreement/", agreement.disagreement, name="disagreement"),
    path("agreement/<slug:chart>.<slug:form>", agreement.picture, name="agreement-picture"),
    path("adjudication/", adjudication.adjudication, name="adjudication"),
    path("adjudication/<int:candidate_id>/", adjudication.decision, name="decision"),
    path("labels/", labels.labels, name="labels"),
    path("labels/make/", labels.label, name="label"),
    path("labels/<int:version>.<slug:form>", labels.label_set, name="label-set"),
    path("validation/", validation.validation, name="validation"),
    path("validation/<slug:chart>.<slug:form>", validation.picture, name="validation-picture"),
    path("validation/tables/<slug:name>/", validation.table, name="validation-table"),
    path("report/", validation.report, name="report"),
    path("report/<str:name>", validation.report_file, name="report-file"),
    path("score/", validation.score, name="score"),
    path("work/<int:job_id>/", waiting.job, name="work"),
    path("work/<int:job_id>/stop/", waiting.stop, name="stop"),
    path("work/<int:job_id>/again/", waiting.again, name="again"),
    path("members/", members.study_members, name="members"),
    path("members/invite/", members.invite_to_study, name="study-invite"),
    path(
        "members/invitations/<int:invitation_id>/revoke/",
        members.revoke_of_study,
        name="study-invitation-revoke",
    ),
    path("members/<int:member_id>/role/", members.change_study_role, name="study-member-role"),
    path("members/<int:member_id>/remove/", members.remove_from_study, name="study-member-remove"),
    path("give/", members.give, name="give"),
    path("downloads/", downloads.downloads, name="downloads"),
    path("<str:name>", downloads.download, name="download"),
]

of_a_team: list[URLPattern | URLResolver] = [
    path("", teams.team, name="team"),
    path("wage-floor/", teams.wage_floor, name="wage-floor"),
    path("audit-log/", teams.audit_log, name="audit-log"),
    path("audit-log.csv", teams.audit_log_file, name="audit-log-file"),
    path("marketplaces/", connections.connections, name="connections"),
    path("marketplaces/connecting/", connections.connecting, name="connecting"),
    path("marketplaces/this-site/", connections.connect_site, name="connect-site"),
    path("marketplaces/new/", connections.connect, name="connect"),
    path("marketplaces/<int:connection_id>/close/", connections.close, name="connection-close"),
    path("budget/", connections.team_budget, name="team-budget"),
    path("invite/", members.invite_to_team, name="invite"),
    path(
        "invitations/<int:invitation_id>/revoke/", members.revoke_of_team, name="invitation-revoke"
    ),
    path("members/<int:member_id>/role/", members.change_role, name="member-role"),
    path("members/<int:member_id>/remove/", members.remove, name="member-remove"),
    path("members/<int:member_id>/password/", members.password_link, name="member-password"),
]

urlpatterns: list[URLPattern | URLResolver] = [
    path("", studies.studies, name="studies"),
    path("login/", sign_in.login, name="login"),
    path("logout/", sign_in.logout, name="logout"),
    path("studies/<slug:slug>/", include(of_a_study)),
    path("teams/", teams.teams, name="teams"),
    path("new-team/", teams.new_team, name="new-team"),
    path("teams/<slug:slug>/", include(of_a_team)),
    path("invitation/", invitations.accept, name="accept"),
    path("invitation/join/", invitations.join_signed_in, name="join"),
    path("invitation/join/new/", invitations.join_anew, name="join-anew"),
    path("invited/<str:token>/", invitations.invitation, name="invitation"),
    path("letter-keys/", review_rules.letter_keys, name="letter-keys"),
    path("pictures/<str:sha256>", downloads.picture, name="picture"),
    path("api/", include(router.urls)),
    path("api/schema/", schema, name="schema"),
]
