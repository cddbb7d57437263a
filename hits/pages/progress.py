"""The progress of a study among the facts that its stages are made of."""

from __future__ import annotations

from dataclasses import fields

from annotation.models import Study
from annotation.pages.study import Facts, stage_facts
from hits.progress import StudyProgress


def progress_in(facts: Facts) -> StudyProgress:
    return StudyProgress(**{field.name: facts[field.name] for field in fields(StudyProgress)})


def progress_of(study: Study) -> StudyProgress:
    return progress_in(stage_facts(study))
