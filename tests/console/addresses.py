"""Every address of the site, and what it needs; whoever adds one adds a line here.

The operations of the API are in `tests/console/api/operations.py`.
"""

from django.urls import URLPattern, URLResolver, get_resolver, reverse

from accounts import models, roles
from annotation.models import Candidate, Item, Study, StudyMembership, Submission
from hits.models import Assignment, Batch, Connection, Recruiter, RecruiterCall, Recruitment
from metrics.models import JudgeConnection, ScoringRequest
from retrieval.models import CollectionFile
from simulation.models import StoredCatalogue, StoredRecommender
from work.models import Job

P = roles.Permission


def table(*rows):
    return {name: permission for permission, names in rows for name in names.split()}


def words(text):
    return set(text.split())


VIEWED = """
    study items item protocol protocol-preview try-item launch answers batch agreement
    search annotators disagreement agreement-picture adjudication labels reasons
    work members"""
OF_SYSTEMS = """
    results scores scores-picture validation validation-picture validation-table report report-file
    paper paper-participants paper-file"""
# What a page of the study `mine` needs, and an action that is posted to it.
SHOWN_OF_A_STUDY = table(
    (P.VIEW, VIEWED),
    (P.VIEW_SYSTEMS, OF_SYSTEMS),
    (P.EXPORT, "downloads download label-set study-table"),
    (P.REVIEW, "review review-send review-rules review-reasons review-messages"),
)
# Pages that ask first, and then do it.
ASKING_FIRST = table(
    (P.SPEND, "batch-change"),
    (P.EDIT, "archive add-items rename"),
    (P.ANALYSE, "add-scores scoring scoring-request"),
    (P.OWN, "delete"),
)
# They lead on to another page of the study.
LEADING_ON = table((P.VIEW, "try former-publish"))
# What a form that is not saved yet comes to, or what is saved; a rehearsal, which a post begins.
FOLLOWING = table((P.VIEW, "protocol-size rehearsal"))
PAGES_OF_A_STUDY = SHOWN_OF_A_STUDY | ASKING_FIRST | LEADING_ON | FOLLOWING
PAGES_OF_A_STUDY |= table((P.OWN, "recruit-file"), (P.SPEND, "batch-links-file"))
ACTIONS_OF_A_STUDY = table(
    (P.REVIEW, "review-draft review-note review-appeal review-undo review-retry review-clear"),
    (P.REVIEW, "review-withdraw review-rules-draft review-reason-add review-reason-delete"),
    (P.REVIEW, "review-sending review-answer flag unflag"),
    (P.EDIT, "preview-link preview-link-revoke"),
    (P.EDIT, "protocol-save protocol-yaml protocol-freeze protocol-begin protocol-discard"),
    (P.EDIT, "collect restore rehearsal-delete paper-datasheet"),
    (P.ADJUDICATE, "decision comment-add comment-edit comment-delete"),
    (P.ANALYSE, "label score scoring-confirm stop again"),
    (P.MANAGE, "study-invite study-invitation-revoke study-member-role study-member-remove"),
    (P.MANAGE, "study-budget launch-connect"),
    (P.OWN, "give launch-team"),
    (P.SPEND, "publish recruit-draft recruit-act recruit-settle recruit-put-away"),
    (P.SPEND, "batch-links batch-link-revoke"),
)
API_OF_A_STUDY = table(
    (P.VIEW, "api-study-detail api-study-agreement api-study-disputes"),
    (P.VIEW_SYSTEMS, "api-study-validation"),
)
# Of the team `lab`.
PAGES_OF_A_TEAM = table(
    (P.VIEW, "team connecting"),
    (P.MANAGE, "team-tokens"),
    (P.VIEW_AUDIT_LOG, "audit-log audit-log-file"),
    (P.VIEW_MONEY, "connections judge-connections"),
)
ACTIONS_OF_A_TEAM = table(
    (P.MANAGE, "wage-floor team-budget connect connect-site connection-close recruiter-connect"),
    (P.MANAGE, "recruiter-disconnect judge-connection-close invite invitation-revoke"),
    (P.MANAGE, "team-token-revoke member-role member-password"),
    # Members may leave by themselves; who may remove another, test_team_pages.py says.
    (P.VIEW, "member-remove"),
)
# Of the collection `tracks`.
PAGES_OF_A_COLLECTION = table(
    (P.VIEW, "collection collection-files collection-file collection-evaluation"),
    (P.VIEW, "collection-picture collection-work collection-pools collection-pool"),
    (P.VIEW, "collection-reuse-picture collection-trust-picture collection-machine-picture"),
    (P.VIEW, "collection-audit-picture collection-judgments collection-trust collection-reuse"),
    (P.VIEW, "collection-audit collection-machine collection-targets collection-report"),
    (P.VIEW, "collection-result collection-result-picture"),
    (P.EXPORT, "collection-file-content collection-download collection-pool-file"),
    (P.EXPORT, "collection-table collection-targets-file collection-report-file"),
    (P.OWN, "collection-delete"),
)
ACTIONS_OF_A_COLLECTION = table(
    (P.EDIT, "collection-studies collection-file-remove collection-file-confirm"),
    (P.EDIT, "collection-source collection-vectors"),
    (P.EDIT, "collection-pool-study collection-study-qrels collection-file-qrels"),
    # Of a job that evaluates.
    (P.ANALYSE, "collection-stop collection-again"),
)
# Of the experiment `shoes`, and of the first recommender and catalogue.
PAGES_OF_AN_EXPERIMENT = table(
    (P.VIEW, "experiment experiment-progress experiment-picture"),
    (P.VIEW, "recommender recommender-progress catalogue"),
    (P.EXPORT, "experiment-download catalogue-download"),
    (P.OWN, "experiment-delete"),
)
ACTIONS_OF_AN_EXPERIMENT = table(
    (P.ANALYSE, "experiment-stop experiment-again recommender-stop recommender-again"),
    # The last, because the others need the recommender.
    (P.EDIT, "catalogue-delete recommender-delete"),
)
# Of the study of dialogues `outcomes`.
PAGES_OF_DIALOGUES = table(
    (P.VIEW, "dialogues dialogues-picture"), (P.EXPORT, "dialogues-download")
)
PAGES = (
    *(PAGES_OF_A_STUDY, API_OF_A_STUDY, PAGES_OF_A_TEAM, PAGES_OF_A_COLLECTION),
    PAGES_OF_AN_EXPERIMENT,
)
ACTIONS = (
    *(ACTIONS_OF_A_STUDY, ACTIONS_OF_A_TEAM, ACTIONS_OF_A_COLLECTION),
    ACTIONS_OF_AN_EXPERIMENT,
)

# A file's, by who may import into its team; test_uploads.py tries them in every role.
OF_UPLOADS = words("""
    upload upload-progress upload-read upload-map upload-import upload-discard upload-picture
    upload-item""")
# For anybody signed in.
COLLECTIONS = words("collections new-collection")
EXPERIMENTS = words("experiments new-experiment recommenders new-recommender catalogues")
LISTS = COLLECTIONS | EXPERIMENTS | {"new-dialogue-study"}
SIGNED_IN = words("""
    studies teams new-team new-study api-root api-study-list schema how-many how-many-curve
    how-many-pilot letter-keys""")
# Whose tests say what they do: sign-in, invitations by a secret link, pictures by their hash.
OPEN = words("login logout picture invitation accept join join-anew trial-page trial-sent") | words(
    "shared-preview shared-preview-page shared-preview-sent"
)
ACCOUNT = words("""
    account account_login account_reauthenticate account_change_password account_reset_password
    account_reset_password_done account_reset_password_from_key
    account_reset_password_from_key_done account_email account_email_verification_sent
    account_confirm_email mfa_index mfa_authenticate mfa_reauthenticate mfa_activate_totp
    mfa_deactivate_totp mfa_view_recovery_codes mfa_generate_recovery_codes
    mfa_download_recovery_codes usersessions_list usersessions_end password_links api_tokens
    revoke_token""")
# The marketplace, by who may open it; its own tests say what each does.
WORKERS = words("""
    profile dashboard earnings inbox contact mark_read accept_next next_hit accept_hit assignment
    return_assignment submit_form auto_accept qualifications qualification qualification_test
    hand_in_test mturk_preview_and_accept appeal submitted draft report more_time your_data
    your_data_json your_data_page erase payout_method""")
REQUESTERS = words("""
    requester issue_key revoke_key statement channels channel invite close_channel channel_links
    participants_file set_more_time join_file ask_demographics demographics_file
    ways_back import_statuses""")
OPERATORS = words("""
    operator_requesters operator_requester reverse_deposit operator_payouts make_payouts
    export_payouts payouts_paid operator_audit operator_status""")
SIGNED_REQUESTS = words("""
    requester_api enrol_requester enrol_worker statement_of_hits appeals answer_appeal
    shared_devices webhook_secret recruiting_standing recruiting_connect recruiting_disconnect
    recruiting_draft recruiting_demographics recruiting_bonus recruiting_erase recruited_file
    recruiting_act recruiting_hand_over recruiting_sessions recruiting_settle recruiter_events
    messages_of_workers recruiting_open recruiting_links shared_traits recruiting_decisions""")
MARKETPLACE_OPEN = words("""
    testing_clock testing_faults testing_sweep external_submit groups signup login logout group
    hit mturk_preview mturk_project arrive session leave_study your_study requester_index
    requester_login requester_logout requester_sign_up frame preview_frame privacy erased None""")
MARKETPLACE = WORKERS | REQUESTERS | OPERATORS | SIGNED_REQUESTS | MARKETPLACE_OPEN
# Of whoever signed in, and of no study: test_documentation_pages.py.
OTHERS = words("front_page healthz readyz metrics documentation documentation-page")


def last(model, **of_study):
    return lambda: model._default_manager.filter(**of_study).latest("pk").pk


def first(model, **which):
    return lambda: model._default_manager.filter(**which).earliest("pk").pk


# What the addresses name besides the study, the team, the collection or the experiment.
NAMED_PARTS = [
    ("item try-item", {"item_id": last(Item, study__slug="mine")}),
    ("batch recruit-draft batch-links batch-links-file", {"batch_id": last(Batch)}),
    ("batch-link-revoke", {"batch_id": last(Batch), "person_id": 1}),
    ("batch-change", {"batch_id": last(Batch), "name": "close"}),
    (
        "recruit-act",
        {"batch_id": last(Batch), "recruitment_id": last(Recruitment), "action": "stop"},
    ),
    (
        "recruit-file",
        {"batch_id": last(Batch), "recruitment_id": last(Recruitment), "name": "join"},
    ),
    ("recruit-settle recruit-put-away", {"batch_id": last(Batch), "call_id": last(RecruiterCall)}),
    ("recruiter-disconnect", {"recruiter_id": last(Recruiter)}),
    ("agreement-picture validation-picture", {"chart": "forest", "form": "json"}),
    ("scores-picture", {"chart": "bars-0-0", "form": "json"}),
    ("study-table", {"kind": "scores", "name": "all", "form": "json"}),
    ("validation-table", {"name": "worst"}),
    ("report-file", {"name": "report.html"}),
    ("paper-file", {"name": "people", "form": "csv"}),
    ("work stop again", {"job_id": last(Job, subject__startswith="study:")}),
    ("label-set", {"version": 1, "form": "csv"}),
    ("download", {"name": "judgments.csv"}),
    ("review-draft review-note review-clear", {"assignment_id": last(Assignment)}),
    ("review-withdraw review-appeal", {"assignment_id": last(Assignment)}),
    ("review-reason-delete", {"reason_id": 1}),
    ("review-answer", {"inquiry_id": 1}),
    ("flag unflag", {"submission_id": last(Submission, item__study__slug="mine")}),
    ("decision comment-add", {"candidate_id": last(Candidate, item__study__slug="mine")}),
    ("comment-edit comment-delete", {"comment_id": 1}),
    ("preview-link-revoke", {"link_id": 1}),
    ("connection-close", {"connection_id": last(Connection)}),
    ("judge-connection-close", {"connection_id": last(JudgeConnection)}),
    ("scoring-request scoring-confirm", {"request_id": last(ScoringRequest)}),
    ("study-invitation-revoke invitation-revoke", {"invitation_id": 1}),
    ("study-member-role study-member-remove", {"member_id": last(StudyMembership)}),
    ("team-token-revoke", {"token_id": 1}),
    ("member-role member-remove member-password", {"member_id": last(models.Membership)}),
    ("collection-file collection-file-remove", {"file_id": first(CollectionFile)}),
    ("collection-file-confirm", {"file_id": first(CollectionFile)}),
    ("collection-file-content collection-file-qrels", {"file_id": first(CollectionFile)}),
    (
        "collection-work collection-stop collection-again",
        {"job_id": first(Job, kind="evaluate_collection")},
    ),
    ("collection-study-qrels", {"study_id": first(Study, title="Pooled")}),
    ("collection-targets-file collection-report-file", {"number": 1}),
    ("collection-pool collection-pool-study", {"number": 1}),
    ("collection-pool-file", {"number": 1, "form": "csv"}),
    ("collection-picture", {"chart": "topics", "form": "json"}),
    ("collection-result", {"kind": "reuse"}),
    ("collection-result-picture", {"kind": "reuse", "chart": "left-out", "form": "json"}),
    ("collection-reuse-picture", {"chart": "left-out", "form": "json"}),
    ("collection-trust-picture", {"chart": "ranks", "form": "json"}),
    ("collection-machine-picture", {"chart": "means", "form": "json"}),
    ("collection-audit-picture", {"chart": "findings", "form": "json"}),
    ("collection-download", {"name": "means.csv"}),
    ("collection-table", {"kind": "comparison", "name": "rankings", "form": "csv"}),
    ("experiment-progress experiment-stop experiment-again", {"number": 1}),
    ("experiment-picture", {"chart": "turns", "form": "json"}),
    ("experiment-download", {"name": "results.csv"}),
    ("recommender recommender-progress recommender-stop", {"key": first(StoredRecommender)}),
    ("recommender-again recommender-delete", {"key": first(StoredRecommender)}),
    ("catalogue catalogue-delete", {"key": first(StoredCatalogue)}),
    ("catalogue-download", {"key": first(StoredCatalogue), "name": "items.csv"}),
    ("dialogues-picture", {"chart": "order", "form": "json"}),
    ("dialogues-download", {"name": "order.csv"}),
    ("how-many-curve", {"form": "json"}),
]
PARTS = {name: parts for names, parts in NAMED_PARTS for name in names.split()}
SLUGS = {
    **dict.fromkeys(PAGES_OF_A_STUDY | ACTIONS_OF_A_STUDY | API_OF_A_STUDY, "mine"),
    **dict.fromkeys(PAGES_OF_A_TEAM | ACTIONS_OF_A_TEAM, "lab"),
    **dict.fromkeys(PAGES_OF_A_COLLECTION | ACTIONS_OF_A_COLLECTION, "tracks"),
    **dict.fromkeys(PAGES_OF_AN_EXPERIMENT | ACTIONS_OF_AN_EXPERIMENT, "shoes"),
    **dict.fromkeys(PAGES_OF_DIALOGUES, "outcomes"),
}


def address(name, slug="", /, **more):
    parts = {
        part: value() if callable(value) else value
        for part, value in PARTS.get(name, {}).items()
        if part not in more
    }
    if name in SLUGS and "key" not in parts | more:
        parts["slug"] = slug or SLUGS[name]
    return reverse(f"console:{name}", kwargs=parts | more)


def lines():
    for tables, is_action in ((PAGES, False), (ACTIONS, True)):
        for names in tables:
            for name, permission in names.items():
                yield name, address(name), permission, is_action


def all_names():
    """Of the site's URL configuration, without the API's operations."""

    def walk(patterns, namespace=""):
        for pattern in patterns:
            if isinstance(pattern, URLResolver) and pattern.namespace == "api":
                continue
            if isinstance(pattern, URLResolver):
                inner = f"{pattern.namespace}:" if pattern.namespace else ""
                yield from walk(pattern.url_patterns, namespace + inner)
            elif isinstance(pattern, URLPattern):
                yield f"{namespace}{pattern.name}"

    return walk(get_resolver().url_patterns)
