from django.urls import URLPattern, URLResolver, path

from lazy_views import LazyPackage

pages = LazyPackage("hits.pages")

of_a_study: list[URLPattern | URLResolver] = [
    path("rename/", pages.studies.rename, name="rename"),
    path("delete/", pages.studies.delete, name="delete"),
    path("items/<int:item_id>/try/", pages.protocol.try_item, name="try-item"),
    path("try/", pages.protocol.try_first, name="try"),
    path("protocol/", pages.protocol.protocol, name="protocol"),
    path("protocol/save/", pages.protocol.save, name="protocol-save"),
    path("protocol/yaml/", pages.protocol.save_yaml, name="protocol-yaml"),
    path("protocol/freeze/", pages.protocol.freeze_draft, name="protocol-freeze"),
    path("protocol/begin/", pages.protocol.begin_draft, name="protocol-begin"),
    path("protocol/discard/", pages.protocol.discard, name="protocol-discard"),
    path("protocol/preview/", pages.protocol.preview, name="protocol-preview"),
    path("protocol/size/", pages.study_sizes.size, name="protocol-size"),
    path("protocol/preview-links/", pages.previews.create, name="preview-link"),
    path(
        "protocol/preview-links/<int:link_id>/revoke/",
        pages.previews.revoke,
        name="preview-link-revoke",
    ),
    path("launch/", pages.launch.launch, name="launch"),
    path("launch/publish/", pages.launch.publish, name="publish"),
    path("launch/team/", pages.launch.team, name="launch-team"),
    path("launch/connect/", pages.launch.connect, name="launch-connect"),
    path("launch/budget/", pages.launch.budget, name="study-budget"),
    path("rehearsal/", pages.rehearsals.rehearsal, name="rehearsal"),
    path("rehearsal/delete/", pages.rehearsals.delete, name="rehearsal-delete"),
    path("publish/", pages.launch.former_address, name="former-publish"),
    path("answers/", pages.batches.answers, name="answers"),
    path("batches/<int:batch_id>/", pages.batches.batch, name="batch"),
    path("batches/<int:batch_id>/recruit/", pages.batches.draft, name="recruit-draft"),
    path(
        "batches/<int:batch_id>/recruit/calls/<int:call_id>/",
        pages.batches.settle,
        name="recruit-settle",
    ),
    path(
        "batches/<int:batch_id>/recruit/calls/<int:call_id>/away/",
        pages.batches.put_away,
        name="recruit-put-away",
    ),
    path(
        "batches/<int:batch_id>/recruit/<int:recruitment_id>/<slug:name>.csv",
        pages.batches.file,
        name="recruit-file",
    ),
    path(
        "batches/<int:batch_id>/recruit/<int:recruitment_id>/<slug:action>/",
        pages.batches.act,
        name="recruit-act",
    ),
    path("batches/<int:batch_id>/links/", pages.batches.invite_people, name="batch-links"),
    path("batches/<int:batch_id>/links.csv", pages.batches.links_file, name="batch-links-file"),
    path(
        "batches/<int:batch_id>/links/<int:person_id>/revoke/",
        pages.batches.revoke_link,
        name="batch-link-revoke",
    ),
    path("batches/<int:batch_id>/<slug:name>/", pages.batches.batch_change, name="batch-change"),
    path("collect/", pages.batches.collect, name="collect"),
    path("review/", pages.review.review, name="review"),
    path("review/<int:assignment_id>/draft/", pages.review.draft, name="review-draft"),
    path("review/<int:assignment_id>/note/", pages.review.note, name="review-note"),
    path("review/<int:assignment_id>/clear/", pages.review.clear, name="review-clear"),
    path("review/<int:assignment_id>/appeal/", pages.review.appeal, name="review-appeal"),
    path("review/messages/", pages.inquiries.inquiries, name="review-messages"),
    path("review/messages/<int:inquiry_id>/", pages.inquiries.answer, name="review-answer"),
    path("review/undo/", pages.review.undo, name="review-undo"),
    path("review/send/", pages.review.send, name="review-send"),
    path("review/sending/", pages.review.send_progress, name="review-sending"),
    path(
        "review/<int:assignment_id>/withdraw/",
        pages.review.withdraw,
        name="review-withdraw",
    ),
    path("review/retry/", pages.review.retry, name="review-retry"),
    path("review/rules/", pages.rules.rules, name="review-rules"),
    path("review/rules/draft/", pages.rules.draft_by_rule, name="review-rules-draft"),
    path("review/reasons/", pages.rules.reasons, name="review-reasons"),
    path("review/reasons/add/", pages.rules.add_reason, name="review-reason-add"),
    path(
        "review/reasons/<int:reason_id>/delete/",
        pages.rules.delete_reason,
        name="review-reason-delete",
    ),
    path("", pages.studies.study, name="study"),
    path("archive/", pages.studies.archive, name="archive"),
    path("search/", pages.studies.search, name="search"),
    path("restore/", pages.studies.restore, name="restore"),
]

of_a_team: list[URLPattern | URLResolver] = [
    path("marketplaces/", pages.connections.connections, name="connections"),
    path("marketplaces/connecting/", pages.connections.connection_progress, name="connecting"),
    path("marketplaces/this-site/", pages.connections.connect_site, name="connect-site"),
    path("marketplaces/new/", pages.connections.connect, name="connect"),
    path(
        "marketplaces/<int:connection_id>/close/", pages.connections.close, name="connection-close"
    ),
    path("recruiters/", pages.connections.connect_recruiter, name="recruiter-connect"),
    path(
        "recruiters/<int:recruiter_id>/disconnect/",
        pages.connections.disconnect_recruiter,
        name="recruiter-disconnect",
    ),
    path("budget/", pages.connections.team_budget, name="team-budget"),
]

of_the_site: list[URLPattern | URLResolver] = [
    path("trials/<str:token>", pages.protocol.trial_page, name="trial-page"),
    path("trials/<str:token>/mturk/externalSubmit", pages.protocol.trial_sent, name="trial-sent"),
    path("previews/<str:token>/", pages.previews.shared_preview, name="shared-preview"),
    path("previews/<str:token>/page", pages.previews.shared_page, name="shared-preview-page"),
    path(
        "previews/<str:token>/page/mturk/externalSubmit",
        pages.previews.shared_sent,
        name="shared-preview-sent",
    ),
    path("uploads/<uuid:token>/item/", pages.upload_preview.upload_item, name="upload-item"),
    path("letter-keys/", pages.rules.letter_keys, name="letter-keys"),
    path("", pages.studies.studies, name="studies"),
]
