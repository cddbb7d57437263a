"""The scores of a study as files."""

from django.db.models import Exists
from django.utils.translation import gettext_lazy as _

from annotation.study_files import Offer, RowDownload, register_table
from metrics.exports import score_rows
from metrics.models import ScoringRun

register_table(
    "scores",
    RowDownload(_("every score with its signature"), score_rows),
    Offer(90, lambda study: Exists(ScoringRun.objects.of(study).order_by())),
)
