from django.urls import URLPattern, URLResolver, include, path, register_converter
from django.urls.converters import StringConverter

from marketplace.api import appeals as appeals_api
from marketplace.api import devices as devices_api
from marketplace.api import enrolment, statements, testing_pages
from marketplace.api import recruiting as recruiting_api
from marketplace.api import webhook_secrets as webhook_secrets_api
from marketplace.api.dispatch import requester_api
from marketplace.api.recruited_files import recruited_file
from marketplace.api.recruiter_events import recruiter_events
from marketplace.web.operator import pages as operator_pages
from marketplace.web.operator import status as operator_status
from marketplace.web.requester import channels
from marketplace.web.requester import pages as requester_pages
from marketplace.web.worker import (
    accounts,
    appeals,
    arrivals,
    assignments,
    continuation,
    drafts,
    frames,
    groups,
    personal_data,
    qualifications,
    question_forms,
    records,
)


class EntityIdConverter(StringConverter):
    """An id of the marketplace's."""

    regex = "[A-Z0-9]{1,64}"


register_converter(EntityIdConverter, "entity_id")

requester_patterns: list[URLPattern | URLResolver] = [
    path("", requester_pages.overview, name="requester"),
    path("keys/", requester_pages.issue_key, name="issue_key"),
    path("keys/<entity_id:access_key_id>/revoke/", requester_pages.revoke_key, name="revoke_key"),
    path("more-time/", requester_pages.more_time, name="set_more_time"),
    path("statement/", requester_pages.statement, name="statement"),
    path("channels/", channels.channels, name="channels"),
    path("channels/<slug:token>/", channels.channel, name="channel"),
    path("channels/<slug:token>/invite/", channels.invite, name="invite"),
    path("channels/<slug:token>/participants.csv", channels.participants, name="participants_file"),
    path("channels/<slug:token>/join.csv", channels.join, name="join_file"),
    path(
        "channels/<slug:token>/demographics/", channels.fetch_demographics, name="ask_demographics"
    ),
    path("channels/<slug:token>/demographics.csv", channels.demographics, name="demographics_file"),
    path("channels/<slug:token>/ways-back/", channels.ways_back, name="ways_back"),
    path("channels/<slug:token>/statuses/", channels.statuses, name="import_statuses"),
    path("channels/<slug:token>/hand-over/", channels.let_pay, name="hand_over_study"),
    path("channels/<slug:token>/close/", channels.close, name="close_channel"),
    path("channels/<slug:token>/links.csv", channels.links, name="channel_links"),
]
operator_patterns: list[URLPattern | URLResolver] = [
    path("", operator_pages.requesters, name="operator_requesters"),
    path(
        "requesters/<entity_id:requester_id>/",
        operator_pages.requester,
        name="operator_requester",
    ),
    path(
        "requesters/<entity_id:requester_id>/deposits/<entity_id:deposit_id>/reverse/",
        operator_pages.reverse_deposit,
        name="reverse_deposit",
    ),
    path("payouts/", operator_pages.payout_batches, name="operator_payouts"),
    path("payouts/make/", operator_pages.make_payouts, name="make_payouts"),
    path("payouts/<int:batch_id>/export/", operator_pages.export_payouts, name="export_payouts"),
    path("payouts/<int:batch_id>/paid/", operator_pages.mark_payouts_paid, name="payouts_paid"),
    path("audit/", operator_pages.audit_log, name="operator_audit"),
    path("status/", operator_status.status, name="operator_status"),
]

app_name = "marketplace"
urlpatterns: list[URLPattern | URLResolver] = [
    path("requester", requester_api, name="requester_api"),
    path("requester/", requester_api),
    path("marketplace-api/v1/requesters", enrolment.requesters, name="enrol_requester"),
    path("marketplace-api/v1/workers", enrolment.workers, name="enrol_worker"),
    path("marketplace-api/v1/statement", statements.statement, name="statement_of_hits"),
    path(
        "marketplace-api/v1/webhook-secret",
        webhook_secrets_api.webhook_secret,
        name="webhook_secret",
    ),
    path(
        "marketplace-api/v1/recruiters/<entity_id:connection_id>/events",
        recruiter_events,
        name="recruiter_events",
    ),
    path("marketplace-api/v1/devices", devices_api.devices, name="shared_devices"),
    path("marketplace-api/v1/shared-traits", devices_api.traits, name="shared_traits"),
    path("marketplace-api/v1/appeals", appeals_api.appeals, name="appeals"),
    path("marketplace-api/v1/appeals/answer", appeals_api.answer, name="answer_appeal"),
    path("marketplace-api/v1/recruiting", recruiting_api.standing, name="recruiting_standing"),
    path(
        "marketplace-api/v1/recruiting/decisions",
        recruiting_api.decisions,
        name="recruiting_decisions",
    ),
    path(
        "marketplace-api/v1/recruiting/connect", recruiting_api.connect, name="recruiting_connect"
    ),
    path(
        "marketplace-api/v1/recruiting/disconnect",
        recruiting_api.end_connection,
        name="recruiting_disconnect",
    ),
    path(
        "marketplace-api/v1/recruiting/hand-over",
        recruiting_api.hand_over,
        name="recruiting_hand_over",
    ),
    path("marketplace-api/v1/recruiting/draft", recruiting_api.draft, name="recruiting_draft"),
    path("marketplace-api/v1/recruiting/act", recruiting_api.act, name="recruiting_act"),
    path(
        "marketplace-api/v1/recruiting/sessions",
        recruiting_api.sessions,
        name="recruiting_sessions",
    ),
    path("marketplace-api/v1/recruiting/bonus", recruiting_api.bonus, name="recruiting_bonus"),
    path("marketplace-api/v1/recruiting/settle", recruiting_api.settle, name="recruiting_settle"),
    path("marketplace-api/v1/recruiting/erase", recruiting_api.erase, name="recruiting_erase"),
    path(
        "marketplace-api/v1/recruiting/demographics",
        recruiting_api.demographics,
        name="recruiting_demographics",
    ),
    path(
        "marketplace-api/v1/recruiting/files/<slug:token>/<slug:name>.csv",
        recruited_file,
        name="recruited_file",
    ),
    path("testing/clock", testing_pages.clock_page, name="testing_clock"),
    path("testing/faults", testing_pages.faults_page, name="testing_faults"),
    path("testing/sweep", testing_pages.sweep_page, name="testing_sweep"),
    path("mturk/externalSubmit", assignments.external_submit, name="external_submit"),
    path("worker/", groups.groups, name="groups"),
    path("worker/signup/", accounts.signup, name="signup"),
    path("worker/login/", accounts.login, name="login"),
    path("worker/logout/", accounts.logout, name="logout"),
    path("worker/profile/", accounts.profile, name="profile"),
    path("worker/privacy/", personal_data.privacy, name="privacy"),
    path("worker/your-data/", personal_data.your_data, name="your_data"),
    path("worker/your-data/file.json", personal_data.as_json, name="your_data_json"),
    path("worker/your-data/file.html", personal_data.as_page, name="your_data_page"),
    path("worker/your-data/erase/", personal_data.erase, name="erase"),
    path("worker/erased/", personal_data.erased, name="erased"),
    path("worker/payout/", accounts.payout_method, name="payout_method"),
    path("worker/dashboard/", records.dashboard, name="dashboard"),
    path("worker/earnings/", records.earnings, name="earnings"),
    path("worker/messages/", records.inbox, name="inbox"),
    path("worker/messages/read/", records.mark_read, name="mark_read"),
    path("worker/groups/<entity_id:hit_type_id>/", groups.group, name="group"),
    path(
        "worker/groups/<entity_id:hit_type_id>/accept/", assignments.accept_next, name="accept_next"
    ),
    path("worker/groups/<entity_id:hit_type_id>/next/", continuation.next_hit, name="next_hit"),
    path("worker/groups/<entity_id:hit_type_id>/finish/", arrivals.finish, name="finish"),
    path("worker/study/", arrivals.your_study, name="your_study"),
    path("worker/studies/<entity_id:session_id>/", arrivals.session, name="session"),
    path("worker/studies/<entity_id:session_id>/leave/", arrivals.leave, name="leave_study"),
    path("worker/hits/<entity_id:hit_id>/", groups.hit, name="hit"),
    path("worker/hits/<entity_id:hit_id>/accept/", assignments.accept_hit, name="accept_hit"),
    path(
        "worker/assignments/<entity_id:assignment_id>/", assignments.assignment, name="assignment"
    ),
    path(
        "worker/assignments/<entity_id:assignment_id>/submitted/",
        records.submitted,
        name="submitted",
    ),
    path("worker/assignments/<entity_id:assignment_id>/draft/", drafts.draft, name="draft"),
    path("worker/assignments/<entity_id:assignment_id>/report/", drafts.report, name="report"),
    path(
        "worker/assignments/<entity_id:assignment_id>/more-time/",
        drafts.more_time,
        name="more_time",
    ),
    path("worker/assignments/<entity_id:assignment_id>/appeal/", appeals.appeal, name="appeal"),
    path(
        "worker/assignments/<entity_id:assignment_id>/return/",
        assignments.return_assignment,
        name="return_assignment",
    ),
    path(
        "worker/assignments/<entity_id:assignment_id>/submit/",
        question_forms.submit_form,
        name="submit_form",
    ),
    path(
        "worker/assignments/<entity_id:assignment_id>/auto-accept/",
        continuation.auto_accept,
        name="auto_accept",
    ),
    path("worker/qualifications/", qualifications.qualifications, name="qualifications"),
    path(
        "worker/qualifications/<entity_id:type_id>/",
        qualifications.qualification,
        name="qualification",
    ),
    path(
        "worker/qualification-tests/<entity_id:request_id>/",
        qualifications.test,
        name="qualification_test",
    ),
    path(
        "worker/qualification-tests/<entity_id:request_id>/hand-in/",
        qualifications.hand_in,
        name="hand_in_test",
    ),
    path("mturk/preview", continuation.preview, name="mturk_preview"),
    path(
        "mturk/previewandaccept", continuation.preview_and_accept, name="mturk_preview_and_accept"
    ),
    path("projects/<entity_id:hit_type_id>/tasks", continuation.project, name="mturk_project"),
    path("requester-console/", requester_pages.index, name="requester_index"),
    path("requester-console/login/", requester_pages.login, name="requester_login"),
    path("requester-console/logout/", requester_pages.logout, name="requester_logout"),
    path("requester-console/sign-up/", requester_pages.sign_up, name="requester_sign_up"),
    path("requester-console/<entity_id:requester_id>/", include(requester_patterns)),
    path("marketplace-operator/", include(operator_patterns)),
    path("join/<slug:token>/", arrivals.arrive, name="arrive"),
    path("worker/frame/<entity_id:assignment_id>/", frames.frame, name="frame"),
    path("worker/frame/preview/<entity_id:hit_id>/", frames.preview_frame, name="preview_frame"),
]
