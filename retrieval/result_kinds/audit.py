from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

from django.db import transaction
from django.utils.translation import gettext as _, gettext_lazy, ngettext

from accounts.models import User
from annotation.readers.rows import storable
from annotation.uploads import SentFile
from results.computing import request_result
from results.kinds import (
    Chart,
    Computed,
    Count,
    Given,
    Record,
    Row,
    Table,
    Text,
    Value,
    register_kind,
    sentence,
)
from results.models import Result
from retrieval.audit.collections import audit_collection
from retrieval.audit.records import Claims
from retrieval.charts import counted_findings, findings_in_words
from retrieval.exceptions import CollectionUnfit
from retrieval.file_readings import subject_of
from retrieval.models import Collection, CollectionFile, ResultType
from retrieval.result_kinds.base import CollectionKind
from retrieval.stored_files import files_on_disk, require_bearable, store_file
from stats.libraries import pd
from work.models import Job

AUDIT = "audit_collection"
Kind = CollectionFile.Kind
FILE = Text(gettext_lazy("File"))
SEVERITIES = ("refused", "defect", "note")


def request_audit(
    *,
    collection: Collection,
    files: Sequence[CollectionFile],
    actor: User | None,
    claims: Mapping[str, Claims] | None = None,
) -> Job:
    if not files:
        raise CollectionUnfit(_("Choose at least one file to audit."), code="no_file")
    return request_result(
        kind=AuditKind(),
        subject=collection,
        chosen={"files": files},
        settings={"claims": dict(claims)} if claims else {},
        actor=actor,
    )


@transaction.atomic
def request_audit_of_uploads(
    *,
    collection: Collection,
    uploads: Iterable[SentFile],
    files: Sequence[CollectionFile],
    actor: User | None,
    claims: Mapping[str, Claims] | None = None,
) -> Job:
    """Keep files until they are audited, with others that are here; all are kept, or none.

    What one person sends and the job that waits for it are stored while nobody else's are, or
    the files would pass for leftovers.
    """
    Collection.objects.select_for_update().get(pk=collection.pk)
    # Files sent for audits that failed, unless an unfinished job still needs them.
    if not Job.objects.about(subject_of(collection)).of_kind(AUDIT).unfinished().exists():
        collection.files.filter(kind=Kind.AUDITED).delete()
    kept = [_store_audited(collection, file, actor) for file in uploads]
    return request_audit(collection=collection, files=[*kept, *files], claims=claims, actor=actor)


def _store_audited(collection: Collection, file: SentFile, actor: User | None) -> CollectionFile:
    try:
        return store_file(collection=collection, file=file, actor=actor, kind=Kind.AUDITED)
    except CollectionUnfit as refused:
        raise CollectionUnfit(f"{file.name}: {refused}", code=refused.code) from None


def list_findings(record: Record) -> list[Row]:
    return [
        finding | {"file": file["file"], "lines": ", ".join(map(str, finding["lines"]))}
        for file in record["files"]
        for finding in sorted(file["findings"], key=lambda one: SEVERITIES.index(one["severity"]))
    ]


def list_claims(record: Record) -> list[Row]:
    return [claim | {"file": file["file"]} for file in record["files"] for claim in file["claims"]]


def count_findings(file: Row, severity: str) -> int:
    return sum(one["severity"] == severity for one in file["findings"])


@register_kind
class AuditKind(CollectionKind):
    """What of files would be misread, and which defects they have.

    Files that were sent for an audit are deleted with it, so that each audit is computed by
    itself.
    """

    name = ResultType.AUDIT.value
    title = gettext_lazy("Audit of files")
    job = AUDIT
    job_label = gettext_lazy("Auditing files")
    form = 3
    is_repeated = True
    tables = {
        "findings": Table(
            gettext_lazy("Findings"),
            {
                "file": FILE,
                "severity": Text(gettext_lazy("Severity")),
                "name": Text(gettext_lazy("Name")),
                "text": Text(gettext_lazy("Text")),
                "n": Count(gettext_lazy("n")),
                "of": Value(gettext_lazy("of"), digits=0),
                "lines": Text(gettext_lazy("Lines")),
            },
            rows=list_findings,
        ),
        "claims": Table(
            gettext_lazy("Published numbers"),
            {
                "file": FILE,
                "name": Text(gettext_lazy("Name")),
                "claimed": Value(gettext_lazy("Claimed"), digits=2),
                "counted": Value(gettext_lazy("Counted"), digits=4),
                "explanation": Text(gettext_lazy("Explanation")),
            },
            rows=list_claims,
        ),
    }

    def load_inputs(self, subject: Collection, keys: Sequence[int]) -> Sequence[CollectionFile]:
        files = list(subject.files.filter(pk__in=keys).order_by("file_name"))
        if len(files) != len(keys):
            raise CollectionUnfit(
                _("The files were removed meanwhile. Send them again."), code="files_removed"
            )
        return files

    def compute(self, given: Given[Collection]) -> Computed:
        with files_on_disk(given.inputs) as paths:
            for path in paths:
                require_bearable(path)
            claims = given.settings.get("claims")
            audit = audit_collection(paths, claims=claims, progress=given.progress(_("file")))
        return Computed(record=storable(audit.record()), facts={"n_files": len(audit.files)})

    def finish(self, subject: Collection, inputs: Sequence[CollectionFile]) -> None:
        subject.files.filter(pk__in=[file.pk for file in inputs], kind=Kind.AUDITED).delete()

    def answer(self, result: Result) -> str:
        files = [one for one in result.record["files"] if one["kind"] != "unknown"]
        n_refused = sum(count_findings(one, "refused") > 0 for one in files)
        n_defects = sum(count_findings(one, "defect") for one in files)
        if not files:
            return sentence("not_recognized", _("No file was recognised."))
        if n_refused:
            text = ngettext(
                "{n} file would be misread, and cannot be used as it is.",
                "{n} files would be misread, and cannot be used as they are.",
                n_refused,
            )
            return sentence("files_refused", text, n=n_refused)
        if n_defects:
            text = ngettext(
                "{n} kind of defect was found.", "{n} kinds of defects were found.", n_defects
            )
            return sentence("defects", text, n=n_defects)
        return sentence("no_defect", _("No defect was found."))

    def details(self, result: Result) -> Iterator[str]:
        files = result.record["files"]
        yield sentence(
            "files_read",
            ngettext("{n} file was read.", "{n} files were read.", len(files)),
            n=len(files),
        )
        yield from _describe_pools(files)
        if unknown := [one["file"] for one in files if one["kind"] == "unknown"]:
            yield sentence(
                "files_not_recognized", _("Not recognised: {names}."), names=", ".join(unknown)
            )
        yield from _describe_claims(list_claims(result.record))

    def charts(self, result: Result) -> Iterator[Chart]:
        rows = sorted(
            list_findings(result.record), key=lambda one: SEVERITIES.index(one["severity"])
        )
        frame = pd.DataFrame(rows, columns=["severity", "name", "file", "n"])
        frame = frame.rename(columns={"name": "finding"})
        frame["finding"] = [name.replace("_", " ") for name in frame["finding"]]
        if len(frame):
            words, draw = findings_in_words(frame), partial(counted_findings, frame)
            yield Chart("findings", _("What was found, and how often"), words, frame, draw)


def _describe_pools(files: Sequence[Row]) -> Iterator[str]:
    pools = [one for one in files if one["kind"] == "judged pools" and one["facts"]]
    n_refused = sum(count_findings(one, "refused") for one in pools)
    if pools:
        text = _(
            "{repeats} of {rows} rows of judged pools show a picture more than once, {targets} "
            "the target as its own candidate."
        )
        yield sentence(
            "pools_audited",
            text,
            rows=f"{sum(one['n_rows'] for one in pools) - n_refused:,}",
            repeats=f"{sum(one['facts']['repeats']['n_rows'] for one in pools):,}",
            targets=f"{sum(one['facts']['own_targets']['n_rows'] for one in pools):,}",
        )
    if n_refused:
        text = ngettext(
            "{n} more row could not be read: what it shows is not known.",
            "{n} more rows could not be read: what they show is not known.",
            n_refused,
        )
        yield sentence("rows_refused", text, n=n_refused)


def _describe_claims(claims: Sequence[Row]) -> Iterator[str]:
    n = sum(not claim["holds"] for claim in claims)
    if n:
        text = ngettext(
            "{n} published number is not what the files give.",
            "{n} published numbers are not what the files give.",
            n,
        )
        yield sentence("claims_differ", text, n=n)
    elif claims:
        yield sentence("claims_hold", _("Every published number is what the files give."))
