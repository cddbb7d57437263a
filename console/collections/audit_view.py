"""An audit of files as its page shows it: what can be used, and what is wrong, file by file."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property, partial
from itertools import groupby

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop, ngettext

from console.code_names import code_name
from console.collections.audit_words import counted_cell, fact_cell, name_of, words_of
from console.collections.result_charts import Chart
from console.collections.result_view import Fold, ResultView, text_column
from error_codes import CodedText
from presentation.documents import Column, Number, Table
from retrieval.charts.audit import counted_findings, findings_in_words
from retrieval.models import AuditedFile, AuditFact

FILE = text_column(gettext_noop("File"))


class AuditedFileView:
    """A file with its findings, claims and numbers."""

    def __init__(self, file: AuditedFile) -> None:
        self.file = file
        findings = list(file.findings.all())
        self.refused = [one for one in findings if one.severity == "refused"]
        self.defects = [one for one in findings if one.severity == "defect"]
        self.notes = [one for one in findings if one.severity == "note"]
        self.claims = list(file.claims.all())

    @cached_property
    def facts(self) -> list[AuditFact]:
        """Without lists of records, which an earlier form has as text: no page can show them."""
        return [one for one in self.file.facts.all() if not one.text.startswith("{'")]

    def fact(self, section: str, name: str) -> float:
        """A number that was counted of the file; 0 where it was not."""
        numbers = (one.number for one in self.facts if (one.section, one.name) == (section, name))
        return next(numbers, None) or 0

    @property
    def kind(self) -> str:
        return {
            "judged pools": _("judged pools"),
            "alternatives": _("alternatives"),
            "dialogue starts": _("dialogue starts"),
            "batch": _("a Mechanical Turk batch"),
            "qrels": _("qrels"),
            "assessors": _("several assessors' grades"),
            "run": _("a run"),
            "unknown": _("not recognised, not audited"),
        }[self.file.kind]

    @property
    def sign(self) -> str:
        """As the stages' signs: done, look, needs you."""
        if self.is_unknown:
            return "later"
        return "needs-you" if self.refused else "warning" if self.defects else "done"

    @property
    def is_unknown(self) -> bool:
        """Whether nothing was looked at, and nothing may be said to be well."""
        return bool(self.file.kind == "unknown")

    @property
    def finding(self) -> str:
        """What is wrong, in a few words."""
        if self.file.kind == "unknown":
            return self.kind
        if self.refused:
            n = len(self.refused)
            text = ngettext("%(n)d line refused", "%(n)d lines refused", n) % {"n": n}
        elif self.defects:
            n = len(self.defects)
            text = ngettext("%(n)d kind of defect", "%(n)d kinds of defects", n) % {"n": n}
        else:
            text = _("no defect")
        return f"{self.kind}: {text}"

    @property
    def numbers(self) -> list[Table]:
        """What was counted: a table for each section that has rows, and one of single numbers."""
        single = [one for one in self.facts if one.row is None]
        tables = [self._single(single)] if single else []
        rows = sorted(
            (one for one in self.facts if one.row is not None), key=lambda one: one.section
        )
        for section, of_section in groupby(rows, key=lambda one: one.section):
            tables.append(self._section(section, list(of_section)))
        return tables

    def _single(self, facts: list[AuditFact]) -> Table:
        name = f"numbers-{self.file.pk}"
        rows = [
            (words_of(one.section), name_of(one), fact_cell(one))
            for one in facts
            if one.number is not None or one.text
        ]
        columns = (text_column(_("Of")), text_column(_("Name")), Column(_("Value")))
        caption = _("Counted in {name}").format(name=self.file.file_name)
        return Table(name, caption, columns, rows)

    def _section(self, section: str, facts: list[AuditFact]) -> Table:
        names = list(dict.fromkeys(one.name for one in facts))
        by_row: dict[int, dict[str, AuditFact]] = {}
        for one in facts:
            by_row.setdefault(one.row or 0, {})[one.name] = one
        rows = [
            tuple(fact_cell(each[name]) if name in each else "" for name in names)
            for _number, each in sorted(by_row.items())
        ]
        texts = {one.name for one in facts if one.text}
        columns = tuple(Column(words_of(name), is_number=name not in texts) for name in names)
        name = f"{section}-{self.file.pk}".replace("_", "-").replace(" ", "-")
        caption = _("{section} of {name}").format(
            section=words_of(section), name=self.file.file_name
        )
        return Table(name, caption, columns, rows)


class AuditView(ResultView):
    """All audited files together."""

    picture = "console:collection-audit-picture"

    @cached_property
    def charts(self) -> list[Chart]:
        """How often each kind of finding was found; what is refused first."""
        import pandas as pd

        rows = [
            (one.severity, code_name(one.name), each.file.file_name, one.n)
            for part in ("refused", "defects", "notes")
            for each in self.files
            for one in getattr(each, part)
        ]
        frame = pd.DataFrame(rows, columns=["severity", "finding", "file", "n"])
        if frame.empty:
            return []
        words, draw = findings_in_words(frame), partial(counted_findings, frame)
        return [Chart("findings", _("What was found, and how often"), words, frame, draw)]

    @cached_property
    def files(self) -> list[AuditedFileView]:
        rows = self.version.audited_files.prefetch_related("findings", "claims", "facts")
        return [AuditedFileView(row) for row in rows]

    @property
    def first_sentence(self) -> str:
        recognised = [one for one in self.files if one.file.kind != "unknown"]
        refused = [one for one in recognised if one.refused]
        n_defects = sum(len(one.defects) for one in recognised)
        if not recognised:
            return CodedText(_("No file was recognised."), code="not_recognized")
        if refused:
            return CodedText(
                ngettext(
                    "%(n)d file would be misread, and cannot be used as it is.",
                    "%(n)d files would be misread, and cannot be used as they are.",
                    len(refused),
                )
                % {"n": len(refused)},
                code="files_refused",
            )
        if n_defects:
            return CodedText(
                ngettext(
                    "%(n)d kind of defect was found.",
                    "%(n)d kinds of defects were found.",
                    n_defects,
                )
                % {"n": n_defects},
                code="defects",
            )
        return CodedText(_("No defect was found."), code="no_defect")

    @property
    def details(self) -> list[str]:
        unknown = [one.file.file_name for one in self.files if one.file.kind == "unknown"]
        n = len(self.files)
        sentences: list[str] = [
            CodedText(
                ngettext("%(n)d file was read.", "%(n)d files were read.", n) % {"n": n},
                code="files_read",
            )
        ]
        sentences += self._totals()
        if unknown:
            sentences.append(
                CodedText(
                    _("Not recognised: {names}.").format(names=", ".join(unknown)),
                    code="files_not_recognized",
                )
            )
        return [*sentences, *self._claims()]

    def _claims(self) -> Iterator[str]:
        claims = [claim for one in self.files for claim in one.claims]
        n = sum(1 for claim in claims if claim.explanation)
        if n:
            yield CodedText(
                ngettext(
                    "%(n)d published number is not what the files give.",
                    "%(n)d published numbers are not what the files give.",
                    n,
                )
                % {"n": n},
                code="claims_differ",
            )
        elif claims:
            yield CodedText(_("Every published number is what the files give."), code="claims_hold")

    @property
    def claims(self) -> Table | None:
        """The published numbers, claim by claim; None where there are none."""
        caption = _("Published numbers")
        columns = (
            *(FILE, text_column(_("Number")), Column(_("Published")), Column(_("Counted"))),
            text_column(_("What it is")),
        )
        rows = [
            (
                *(one.file.file_name, words_of(claim.name), f"{claim.claimed:,g}"),
                *(counted_cell(claim.counted), claim.explanation or _("so it is")),
            )
            for one in self.files
            for claim in one.claims
        ]
        return Table("published", caption, columns, rows) if rows else None

    def _totals(self) -> Iterator[str]:
        """Of all files of judged pools together."""
        pools = [one for one in self.files if one.file.kind == "judged pools" and one.facts]
        n_refused = sum(len(one.refused) for one in pools)
        if pools:
            yield CodedText(
                _(
                    "{repeats} of {rows} rows of judged pools show a picture more than once, "
                    "{targets} the target as its own candidate."
                ).format(
                    rows=f"{sum(one.file.n_rows for one in pools) - n_refused:,}",
                    repeats=f"{sum(one.fact('repeats', 'n_rows') for one in pools):,.0f}",
                    targets=f"{sum(one.fact('own_targets', 'n_rows') for one in pools):,.0f}",
                ),
                code="pools_audited",
            )
        if n_refused:
            yield CodedText(
                ngettext(
                    "%(n)d more row could not be read: what it shows is not known.",
                    "%(n)d more rows could not be read: what they show is not known.",
                    n_refused,
                )
                % {"n": n_refused},
                code="rows_refused",
            )

    def _folds(self) -> Iterator[Fold]:
        """For downloads; the page lists findings file by file."""
        caption = _("Findings")
        columns = (
            *(FILE, text_column(_("Severity")), text_column(_("Name")), text_column(_("Text"))),
            *(Column(_("n")), Column(_("of")), text_column(_("Lines"))),
        )
        rows = [
            (
                *(each.file.file_name, one.severity, one.name, one.text),
                *(one.n, Number(None if one.of is None else float(one.of), 0), one.lines),
            )
            for each in self.files
            for one in (*each.refused, *each.defects, *each.notes)
        ]
        yield Fold(caption, f"{len(rows)}", Table("findings", caption, columns, rows))
        caption = _("Published numbers")
        of_claims = (
            *(FILE, text_column(_("Name")), Column(_("Claimed")), Column(_("Counted"))),
            text_column(_("Explanation")),
        )
        claims = [
            (
                *(each.file.file_name, one.name, Number(one.claimed), Number(one.counted, 4)),
                one.explanation,
            )
            for each in self.files
            for one in each.claims
        ]
        yield Fold(caption, f"{len(claims)}", Table("claims", caption, of_claims, claims))
