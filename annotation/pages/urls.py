from django.urls import URLPattern, URLResolver, path

from lazy_views import LazyPackage

pages = LazyPackage("annotation.pages")

of_a_study: list[URLPattern | URLResolver] = [
    path("work/<int:job_id>/", pages.downloads.job, name="work"),
    path("work/<int:job_id>/stop/", pages.downloads.stop, name="stop"),
    path("work/<int:job_id>/again/", pages.downloads.resume, name="again"),
    path("items/", pages.items.items, name="items"),
    path("items/add/", pages.uploads.add_items, name="add-items"),
    path("items/<int:item_id>/", pages.items.item, name="item"),
    path("submissions/<int:submission_id>/flag/", pages.items.flag, name="flag"),
    path("submissions/<int:submission_id>/unflag/", pages.items.unflag, name="unflag"),
    path("agreement/", pages.agreement.agreement, name="agreement"),
    path("agreement/annotators/", pages.agreement.annotators, name="annotators"),
    path("agreement/disagreement/", pages.agreement.disagreement, name="disagreement"),
    path("agreement/<slug:chart>.<slug:form>", pages.agreement.picture, name="agreement-picture"),
    path("adjudication/", pages.adjudication.adjudication, name="adjudication"),
    path("adjudication/<int:candidate_id>/", pages.adjudication.decision, name="decision"),
    path("adjudication/<int:candidate_id>/comments/", pages.adjudication.add, name="comment-add"),
    path(
        "adjudication/comments/<int:comment_id>/edit/",
        pages.adjudication.edit,
        name="comment-edit",
    ),
    path(
        "adjudication/comments/<int:comment_id>/delete/",
        pages.adjudication.delete,
        name="comment-delete",
    ),
    path("labels/", pages.downloads.labels, name="labels"),
    path("labels/make/", pages.downloads.label, name="label"),
    path("labels/<int:version>.<slug:form>", pages.downloads.label_set, name="label-set"),
    path("members/", pages.members.study_members, name="members"),
    path("members/invite/", pages.members.invite_to_study, name="study-invite"),
    path(
        "members/invitations/<int:invitation_id>/revoke/",
        pages.members.revoke_of_study,
        name="study-invitation-revoke",
    ),
    path(
        "members/<int:member_id>/role/", pages.members.change_study_role, name="study-member-role"
    ),
    path(
        "members/<int:member_id>/remove/",
        pages.members.remove_from_study,
        name="study-member-remove",
    ),
    path("give/", pages.members.give_study, name="give"),
    path("downloads/", pages.downloads.downloads, name="downloads"),
    path("<str:name>", pages.downloads.download, name="download"),
]

of_a_team: list[URLPattern | URLResolver] = [
    path("", pages.teams.team, name="team"),
    path("wage-floor/", pages.teams.wage_floor, name="wage-floor"),
    path("audit-log/", pages.teams.audit_log, name="audit-log"),
    path("audit-log.csv", pages.teams.audit_log_file, name="audit-log-file"),
    path("invite/", pages.members.invite_to_team, name="invite"),
    path(
        "invitations/<int:invitation_id>/revoke/",
        pages.members.revoke_of_team,
        name="invitation-revoke",
    ),
    path("members/<int:member_id>/role/", pages.members.change_role, name="member-role"),
    path("members/<int:member_id>/remove/", pages.members.remove, name="member-remove"),
    path("members/<int:member_id>/password/", pages.members.password_link, name="member-password"),
]

of_the_site: list[URLPattern | URLResolver] = [
    path("new-study/", pages.uploads.new_study, name="new-study"),
    path("uploads/<uuid:token>/", pages.uploads.upload, name="upload"),
    path("uploads/<uuid:token>/progress/", pages.uploads.upload_progress, name="upload-progress"),
    path("uploads/<uuid:token>/picture/", pages.uploads.upload_picture, name="upload-picture"),
    path("uploads/<uuid:token>/read/", pages.uploads.read_upload_again, name="upload-read"),
    path("uploads/<uuid:token>/columns/", pages.uploads.map_upload, name="upload-map"),
    path("uploads/<uuid:token>/import/", pages.uploads.import_upload_now, name="upload-import"),
    path("uploads/<uuid:token>/discard/", pages.uploads.discard_upload, name="upload-discard"),
    path("teams/", pages.teams.teams, name="teams"),
    path("new-team/", pages.teams.new_team, name="new-team"),
    path("invitation/", pages.members.accept, name="accept"),
    path("invitation/join/", pages.members.join_signed_in, name="join"),
    path("invitation/join/new/", pages.members.join_anew, name="join-anew"),
    path("invited/<str:token>/", pages.members.invitation, name="invitation"),
    path("pictures/<str:sha256>", pages.downloads.picture, name="picture"),
]
