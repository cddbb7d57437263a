from django.utils.translation import gettext as _, gettext_lazy

from annotation.models import Study
from annotation.result_kinds.base import StudyKind
from annotation.study_facts import REPORT
from metrics.exceptions import NothingToValidate
from results.kinds import Computed, Given, NoSettings, register_kind
from validation.datasheet import whole_report
from validation.result_kinds.validation import make_validation
from validation.study_report import REPORT_FILES


@register_kind
class ReportKind(StudyKind):
    """The files of a study's report, each a part of the result."""

    name = "validation_report"
    page = REPORT
    title = gettext_lazy("Report")
    form = 8
    settings = NoSettings
    depends_on = ("judgments_version", "scores_version")

    def compute(self, given: Given[Study]) -> Computed:
        study = given.subject
        try:
            version = make_validation(study=study).version
        except NothingToValidate as nothing:
            return Computed(facts={"reason": str(nothing)})
        request = whole_report(study, version.number)
        progress = given.progress(_("file"))
        parts = {
            name: REPORT_FILES[name](request) for name in progress(REPORT_FILES, len(REPORT_FILES))
        }
        return Computed(facts={"version": version.number}, parts=parts)
