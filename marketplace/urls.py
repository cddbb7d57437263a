from django.urls import URLPattern, URLResolver, include, path, register_converter
from django.urls.converters import StringConverter

from lazy_views import LazyPackage

api = LazyPackage("marketplace.api")
web = LazyPackage("marketplace.web")
requester = LazyPackage("marketplace.web.requester")
worker = LazyPackage("marketplace.web.worker")


class EntityIdConverter(StringConverter):
    regex = "[A-Z0-9]{1,64}"


register_converter(EntityIdConverter, "entity_id")

requester_patterns: list[URLPattern | URLResolver] = [
    path("", requester.pages.overview, name="requester"),
    path("keys/", requester.pages.issue_key, name="issue_key"),
    path("keys/<entity_id:access_key_id>/revoke/", requester.pages.revoke_key, name="revoke_key"),
    path("more-time/", requester.pages.more_time, name="set_more_time"),
    path("statement/", requester.pages.statement, name="statement"),
    path("channels/", requester.channels.channels, name="channels"),
    path("channels/<slug:token>/", requester.channels.channel, name="channel"),
    path("channels/<slug:token>/invite/", requester.channels.invite, name="invite"),
    path(
        "channels/<slug:token>/participants.csv",
        requester.channels.participants,
        name="participants_file",
    ),
    path("channels/<slug:token>/join.csv", requester.channels.join, name="join_file"),
    path(
        "channels/<slug:token>/demographics/",
        requester.channels.fetch_demographics,
        name="ask_demographics",
    ),
    path(
        "channels/<slug:token>/demographics.csv",
        requester.channels.demographics,
        name="demographics_file",
    ),
    path("channels/<slug:token>/ways-back/", requester.channels.ways_back, name="ways_back"),
    path("channels/<slug:token>/statuses/", requester.channels.statuses, name="import_statuses"),
    path("channels/<slug:token>/close/", requester.channels.close, name="close_channel"),
    path("channels/<slug:token>/links.csv", requester.channels.links, name="channel_links"),
]
operator_patterns: list[URLPattern | URLResolver] = [
    path("", web.operator.requesters, name="operator_requesters"),
    path(
        "requesters/<entity_id:requester_id>/",
        web.operator.requester,
        name="operator_requester",
    ),
    path(
        "requesters/<entity_id:requester_id>/deposits/<entity_id:deposit_id>/reverse/",
        web.operator.reverse_deposit,
        name="reverse_deposit",
    ),
    path("payouts/", web.operator.payout_batches, name="operator_payouts"),
    path("payouts/make/", web.operator.make_payouts, name="make_payouts"),
    path("payouts/<int:batch_id>/export/", web.operator.export_payouts, name="export_payouts"),
    path("payouts/<int:batch_id>/paid/", web.operator.mark_payouts_paid, name="payouts_paid"),
    path("audit/", web.operator.audit_log, name="operator_audit"),
    path("status/", web.operator.status, name="operator_status"),
]

app_name = "marketplace"
urlpatterns: list[URLPattern | URLResolver] = [
    path("requester", api.dispatch.requester_api, name="requester_api"),
    path("requester/", api.dispatch.requester_api),
    path("marketplace-api/v1/requesters", api.endpoints.requesters, name="enrol_requester"),
    path("marketplace-api/v1/workers", api.endpoints.workers, name="enrol_worker"),
    path("marketplace-api/v1/statement", api.endpoints.statement, name="statement_of_hits"),
    path(
        "marketplace-api/v1/webhook-secret",
        api.endpoints.webhook_secret,
        name="webhook_secret",
    ),
    path(
        "marketplace-api/v1/recruiters/<entity_id:connection_id>/events",
        api.recruiting.recruiter_events,
        name="recruiter_events",
    ),
    path("marketplace-api/v1/devices", api.endpoints.devices, name="shared_devices"),
    path("marketplace-api/v1/shared-traits", api.endpoints.traits, name="shared_traits"),
    path("marketplace-api/v1/appeals", api.endpoints.appeals, name="appeals"),
    path("marketplace-api/v1/appeals/answer", api.endpoints.answer, name="answer_appeal"),
    path("marketplace-api/v1/messages", api.endpoints.messages, name="messages_of_workers"),
    path("marketplace-api/v1/recruiting", api.recruiting.standing, name="recruiting_standing"),
    path(
        "marketplace-api/v1/recruiting/decisions",
        api.recruiting.decisions,
        name="recruiting_decisions",
    ),
    path(
        "marketplace-api/v1/recruiting/connect", api.recruiting.connect, name="recruiting_connect"
    ),
    path(
        "marketplace-api/v1/recruiting/disconnect",
        api.recruiting.end_connection,
        name="recruiting_disconnect",
    ),
    path(
        "marketplace-api/v1/recruiting/hand-over",
        api.recruiting.hand_over,
        name="recruiting_hand_over",
    ),
    path("marketplace-api/v1/recruiting/draft", api.recruiting.draft, name="recruiting_draft"),
    path(
        "marketplace-api/v1/recruiting/open", api.recruiting.open_own_study, name="recruiting_open"
    ),
    path("marketplace-api/v1/recruiting/links", api.recruiting.links, name="recruiting_links"),
    path("marketplace-api/v1/recruiting/act", api.recruiting.act, name="recruiting_act"),
    path(
        "marketplace-api/v1/recruiting/sessions",
        api.recruiting.sessions,
        name="recruiting_sessions",
    ),
    path("marketplace-api/v1/recruiting/bonus", api.recruiting.bonus, name="recruiting_bonus"),
    path("marketplace-api/v1/recruiting/settle", api.recruiting.settle, name="recruiting_settle"),
    path("marketplace-api/v1/recruiting/erase", api.recruiting.erase, name="recruiting_erase"),
    path(
        "marketplace-api/v1/recruiting/demographics",
        api.recruiting.demographics,
        name="recruiting_demographics",
    ),
    path(
        "marketplace-api/v1/recruiting/files/<slug:token>/<slug:name>.csv",
        api.recruiting.recruited_file,
        name="recruited_file",
    ),
    path("testing/clock", api.fault_injection.clock_page, name="testing_clock"),
    path("testing/faults", api.fault_injection.faults_page, name="testing_faults"),
    path("testing/sweep", api.fault_injection.sweep_page, name="testing_sweep"),
    path("mturk/externalSubmit", worker.hits.external_submit, name="external_submit"),
    path("worker/", worker.hits.groups, name="groups"),
    path("worker/signup/", worker.accounts.signup, name="signup"),
    path("worker/login/", worker.accounts.login, name="login"),
    path("worker/logout/", worker.accounts.logout, name="logout"),
    path("worker/profile/", worker.accounts.profile, name="profile"),
    path("worker/privacy/", worker.accounts.privacy, name="privacy"),
    path("worker/your-data/", worker.accounts.your_data, name="your_data"),
    path("worker/your-data/file.json", worker.accounts.as_json, name="your_data_json"),
    path("worker/your-data/file.html", worker.accounts.as_page, name="your_data_page"),
    path("worker/your-data/erase/", worker.accounts.erase, name="erase"),
    path("worker/erased/", worker.accounts.erased, name="erased"),
    path("worker/payout/", worker.accounts.payout_method, name="payout_method"),
    path("worker/dashboard/", worker.records.dashboard, name="dashboard"),
    path("worker/earnings/", worker.records.earnings, name="earnings"),
    path("worker/messages/", worker.records.inbox, name="inbox"),
    path(
        "worker/requesters/<entity_id:requester_id>/messages/",
        worker.records.contact,
        name="contact",
    ),
    path("worker/messages/read/", worker.records.mark_read, name="mark_read"),
    path("worker/groups/<entity_id:hit_type_id>/", worker.hits.group, name="group"),
    path(
        "worker/groups/<entity_id:hit_type_id>/accept/",
        worker.hits.accept_next,
        name="accept_next",
    ),
    path("worker/groups/<entity_id:hit_type_id>/next/", worker.arrivals.next_hit, name="next_hit"),
    path("worker/study/", worker.arrivals.your_study, name="your_study"),
    path("worker/studies/<entity_id:session_id>/", worker.arrivals.session, name="session"),
    path("worker/studies/<entity_id:session_id>/leave/", worker.arrivals.leave, name="leave_study"),
    path("worker/hits/<entity_id:hit_id>/", worker.hits.hit, name="hit"),
    path("worker/hits/<entity_id:hit_id>/accept/", worker.hits.accept_hit, name="accept_hit"),
    path(
        "worker/assignments/<entity_id:assignment_id>/",
        worker.hits.assignment,
        name="assignment",
    ),
    path(
        "worker/assignments/<entity_id:assignment_id>/submitted/",
        worker.records.submitted,
        name="submitted",
    ),
    path("worker/assignments/<entity_id:assignment_id>/draft/", worker.tasks.draft, name="draft"),
    path(
        "worker/assignments/<entity_id:assignment_id>/report/", worker.tasks.report, name="report"
    ),
    path(
        "worker/assignments/<entity_id:assignment_id>/more-time/",
        worker.tasks.more_time,
        name="more_time",
    ),
    path(
        "worker/assignments/<entity_id:assignment_id>/appeal/", worker.records.appeal, name="appeal"
    ),
    path(
        "worker/assignments/<entity_id:assignment_id>/return/",
        worker.hits.return_assignment,
        name="return_assignment",
    ),
    path(
        "worker/assignments/<entity_id:assignment_id>/submit/",
        worker.hits.submit_form,
        name="submit_form",
    ),
    path(
        "worker/assignments/<entity_id:assignment_id>/auto-accept/",
        worker.arrivals.auto_accept,
        name="auto_accept",
    ),
    path("worker/qualifications/", worker.records.qualifications, name="qualifications"),
    path(
        "worker/qualifications/<entity_id:type_id>/",
        worker.records.qualification,
        name="qualification",
    ),
    path(
        "worker/qualification-tests/<entity_id:request_id>/",
        worker.records.test,
        name="qualification_test",
    ),
    path(
        "worker/qualification-tests/<entity_id:request_id>/hand-in/",
        worker.records.hand_in,
        name="hand_in_test",
    ),
    path("mturk/preview", worker.arrivals.preview, name="mturk_preview"),
    path(
        "mturk/previewandaccept",
        worker.arrivals.preview_and_accept,
        name="mturk_preview_and_accept",
    ),
    path("projects/<entity_id:hit_type_id>/tasks", worker.arrivals.project, name="mturk_project"),
    path("requester-console/", requester.pages.index, name="requester_index"),
    path("requester-console/login/", requester.pages.login, name="requester_login"),
    path("requester-console/logout/", requester.pages.logout, name="requester_logout"),
    path("requester-console/sign-up/", requester.pages.sign_up, name="requester_sign_up"),
    path("requester-console/<entity_id:requester_id>/", include(requester_patterns)),
    path("marketplace-operator/", include(operator_patterns)),
    path("join/<slug:token>/", worker.arrivals.arrive, name="arrive"),
    path("worker/frame/<entity_id:assignment_id>/", worker.tasks.frame, name="frame"),
    path(
        "worker/frame/preview/<entity_id:hit_id>/",
        worker.tasks.preview_frame,
        name="preview_frame",
    ),
]
