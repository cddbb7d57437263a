"""The files of a study that know of a marketplace."""

from django.db.models import Exists
from django.utils.translation import gettext_lazy as _

from accounts.roles import Permission
from annotation.study_files import Offer, RowDownload, register_table
from hits.exports import submission_rows
from hits.models import PracticeAnswer
from hits.practice_exports import practice_answer_rows

register_table(
    "submissions",
    RowDownload(
        _("every submission: who, when, how long, reason, comment, status and flag"),
        submission_rows,
        Permission.VIEW_WORKERS,
    ),
    Offer(20, is_of_judgments=True),
)
register_table(
    "practice",
    RowDownload(
        _("every answer of practice, which is no submission, beside what is right"),
        practice_answer_rows,
        Permission.VIEW_WORKERS,
    ),
    Offer(
        50, lambda study: Exists(PracticeAnswer.objects.filter(hit__batch__study=study).order_by())
    ),
)
