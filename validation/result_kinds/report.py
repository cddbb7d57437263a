from typing import Any

from django.utils.translation import gettext as _, gettext_lazy

from annotation.models import Study
from annotation.result_kinds.base import StudyKind
from annotation.study_facts import REPORT
from metrics.exceptions import NothingToValidate
from results.kinds import Computed, Given, NoSettings, register_kind
from validation.datasheet import whole_report
from validation.result_kinds.validation import make_validation
from validation.study_report import REPORT_FILES, is_of_scores


@register_kind
class ReportKind(StudyKind):
    """The files of a study's report, each a part of the result."""

    name = "validation_report"
    page = REPORT
    title = gettext_lazy("Report")
    form = 9
    settings = NoSettings
    depends_on = ("judgments_version", "scores_version")

    def compute(self, given: Given[Study]) -> Computed:
        study, number, names = given.subject, None, list(REPORT_FILES)
        facts: dict[str, Any] = {}
        try:
            number = facts["version"] = make_validation(study=study).version.number
        except NothingToValidate as nothing:
            facts["reason"] = str(nothing)
            names = [name for name in names if "tables" not in name]
            if not is_of_scores(study, nothing):
                return Computed(facts=facts)
        request = whole_report(study, number)
        progress = given.progress(_("file"))
        parts = {name: REPORT_FILES[name](request) for name in progress(names, len(names))}
        return Computed(facts=facts, parts=parts)
