"""A study's reports: what was found of its metrics, laid out to be written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd

from annotation.models import Study
from metrics.models import ValidationRecord
from metrics.prompts import prompt_effects, system_scores
from validation.analysis import Settings
from validation.documents.content import Content
from validation.documents.documents import Document, Section
from validation.documents.full import Cells, appendix, full_report, signed_document
from validation.documents.layouts import g_eval, lmstyle_correlations, lmstyle_people
from validation.documents.score_layouts import e2e, e2e_methods, lmstyle_scores
from validation.documents.tables import sensitivity_table
from validation.study_validation import study_material
from validation.versions import make_validation

PROMPTS = ("standard", "enhanced")


@dataclass(frozen=True)
class Asked:
    """What a report is asked to be: of which stored version (none: of now), which prompts."""

    study: Study
    version: int | None = None
    prompts: tuple[str, str] = PROMPTS

    def record(self) -> ValidationRecord:
        """The stored validation; without a version that of now, made if need be."""
        if self.version is None:
            return make_validation(study=self.study).record
        return ValidationRecord.objects.of(self.study).numbered(self.version)


def study_report_document(asked: Asked, layout: str = "full") -> Document:
    """A study's report in one of the layouts."""
    return LAYOUTS[layout](asked)


def content_of(record: ValidationRecord) -> Content:
    """A stored validation as tables and figures take it."""
    return Content(record.study.slug, record.content)


def title_of(record: ValidationRecord) -> str:
    study = record.study
    return f"Which metric agrees with people: {study.title or study.slug}, report {record.version}"


def full(asked: Asked) -> Document:
    """Everything, with a scatter for the best metric of each question."""
    record = asked.record()
    cells = candidate_cells(record)
    return full_report(content_of(record), title=title_of(record), cells=cells)


def candidate_cells(record: ValidationRecord) -> Cells:
    """The candidates' human values and scores; none where the study has changed since."""
    settings = Settings.of(record.rules)
    material = study_material(record.study, settings)
    if material.fingerprint != record.fingerprint:
        return {}
    return {
        (panel.question, metric.metric, metric.signature): pd.DataFrame(
            {
                "human": panel.human,
                "score": scores if metric.higher_is_better else -scores,
                "item": panel.places["item"],
                "candidate": panel.places["candidate"],
                "system": panel.places["system"],
            }
        )
        for panel in material.panels(settings, scopes=("all",))
        for metric, scores in zip(panel.metrics, panel.scores, strict=True)
    }


def lmstyle(asked: Asked) -> Document:
    """The LMStyle Benchmark's Tables 1 to 3."""
    record = asked.record()
    content = content_of(record)
    scores = [row.record() for row in system_scores(asked.study)]
    tables = [lmstyle_correlations(content), lmstyle_scores(scores), lmstyle_people(content)]
    other = sensitivity_table(content)
    sections = [
        Section("Metrics, systems and people", tables),
        Section("What other policies would give", [other] if other.rows else []),
    ]
    return signed_document(content, title_of(record), sections)


def of_g_eval(asked: Asked) -> Document:
    """G-Eval's tables: pooled, and by item."""
    record = asked.record()
    content = content_of(record)
    levels = [level for level in ("pooled", "item") if level in content.levels]
    sections = [Section("Metrics by question", [g_eval(content, level) for level in levels])]
    return signed_document(content, title_of(record), sections)


def of_e2e(asked: Asked) -> Document:
    """E2E's comparison of two prompts; it needs scores, and no judgments."""
    study, prompts = asked.study, asked.prompts
    effects = [effect.record() for effect in prompt_effects(study, prompts=prompts)]
    scores = [row.record() for row in system_scores(study)]
    tables = [e2e(effects, prompts), lmstyle_scores(scores)]
    methods = e2e_methods(effects, prompts)
    return Document(
        title=f"What a prompt changes: {study.title or study.slug}",
        sections=[
            Section("Prompts compared", tables),
            Section("Methods", [methods]),
            Section("Signatures", [appendix(tables)]),
        ],
        records={"systems": scores, "prompts": effects},
        about={"study": study.slug, "prompts": list(prompts), "methods": methods},
    )


LAYOUTS: dict[str, Callable[[Asked], Document]] = {
    "full": full,
    "lmstyle": lmstyle,
    "g-eval": of_g_eval,
    "e2e": of_e2e,
}
