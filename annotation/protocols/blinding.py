"""Protocols for somebody who may not see which system a candidate is of.

Cases of checks and pages of practice name candidates of the study by their keys, which often are
the systems' names.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from annotation.models import Candidate, Study
from annotation.protocols.faults import Fault
from annotation.protocols.records import Check, CheckCase, PracticeItem, ProtocolDocument


def blind_document(study: Study, document: ProtocolDocument) -> ProtocolDocument:
    """The document with the blind names of the study's candidates instead of their keys. Keys that
    are of no candidate are left out."""
    practice = document.qualifications.practice
    items = () if practice is None else practice.items
    cases = [case for check in document.checks for case in check.cases]
    keys = {case.source_item for case in cases} | {item.item for item in items}
    named = Candidate.objects.filter(item__study=study, item__key__in=keys - {""})
    rows = named.select_related("item").only("item__key", "key", "blind_key", "system")
    names = {(row.item.key, row.key): row.blind_name for row in rows}

    def blind_case(case: CheckCase) -> CheckCase:
        name = names.get((case.source_item, case.source_candidate), "")
        return replace(case, source_candidate=name)

    def blind_check(check: Check) -> Check:
        return replace(check, cases=tuple(map(blind_case, check.cases)))

    def blind_item(item: PracticeItem) -> PracticeItem:
        candidates = tuple(
            replace(each, candidate=names.get((item.item, each.candidate), ""))
            for each in item.candidates
        )
        return replace(item, candidates=candidates)

    document = replace(document, checks=tuple(map(blind_check, document.checks)))
    if practice is None:
        return document
    practice = replace(practice, items=tuple(map(blind_item, items)))
    return replace(document, qualifications=replace(document.qualifications, practice=practice))


def blind_faults(faults: Iterable[Fault]) -> list[Fault]:
    return [fault for fault in faults if fault.code != "unknown_candidate"]
