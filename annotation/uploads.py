import json
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import timedelta
from hashlib import sha256
from itertools import chain, count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

from django.conf import settings
from django.db import transaction
from django.db.models import Sum
from django.utils import timezone
from django.utils.text import slugify
from django.utils.translation import gettext as _, ngettext

from accounts.models import Team, User
from annotation.exceptions import AnnotationError, ImportRefused, require
from annotation.imports import ImportResult, import_study
from annotation.models import StoredMapping, Study, Upload, UploadPart
from annotation.protocols.templates import read_protocol
from annotation.readers.archives import is_small, short_file_name
from annotation.readers.drafts import Faults, ReadingReport
from annotation.readers.formats import FileFormat
from annotation.readers.mapped_items import MappedItems
from annotation.readers.mapping import Column, ColumnMapping, guess_mapping, mapping_faults
from annotation.readers.profiles import TableProfile, items_of, mapped_study, profile_table
from annotation.readers.rows import RowBlock, storable
from annotation.readers.tables import OpenTable, opened_table
from annotation.result_kinds.base import request_results
from work.execution import RunningJob, run_job
from work.models import Job
from work.tasks import request_job


class SentFile(Protocol):
    name: str | None

    @property
    def size(self) -> int | None: ...

    def chunks(self, chunk_size: int | None = None) -> Iterator[bytes]: ...


READ_UPLOAD, IMPORT_UPLOAD = "read_upload", "import_upload"
# What is done with a file of each content: it is read, and then imported.
JOBS = {
    Upload.Content.ITEMS: (READ_UPLOAD, IMPORT_UPLOAD),
    Upload.Content.LABELS: ("read_labels", "import_labels"),
    Upload.Content.SCORES: ("read_scores", "import_scores"),
}
PART_BYTES = 1024 * 1024
# A file so small, and so small once unpacked, is read and imported before the page answers.
AT_ONCE_BYTES, AT_ONCE_UNPACKED_BYTES = 512 * 1024, 4 * 1024 * 1024
LONGEST_SLUG = 80
# So many of the largest files may wait of one person.
MOST_WAITING = 3


@transaction.atomic
def store_upload(
    *,
    file: SentFile,
    uploaded_by: User,
    study: Study | None = None,
    team: Team | None = None,
    title: str = "",
    template: str = "",
    content: str = Upload.Content.ITEMS,
    mapping: dict[str, Any] | None = None,
) -> Upload:
    require_size(file)
    _require_room(uploaded_by, file.size or 0)
    upload = Upload.objects.create(
        uploaded_by=uploaded_by,
        study=study,
        team=study.team if study else team,
        title=title,
        template=template,
        content=content,
        mapping=mapping or {},
        file_name=plain_file_name(file.name),
        n_bytes=file.size or 0,
    )
    for position, part in enumerate(file.chunks(PART_BYTES)):
        UploadPart.objects.create(upload=upload, position=position, content=part)
    return upload


def plain_file_name(name: str | None) -> str:
    return short_file_name(re.sub(r"[\x00-\x1f/\\]", "_", Path(name or "").name)) or "table"


def require_size(file: SentFile) -> None:
    n_bytes = file.size or 0
    require(n_bytes, AnnotationError(_("The file is empty."), code="empty_file"))
    require(
        n_bytes <= settings.UPLOAD_MAX_MEGABYTES * 1024**2,
        AnnotationError(
            _(
                "The file has more than {n} MiB. Send it in parts, or ask the site's operator."
            ).format(n=settings.UPLOAD_MAX_MEGABYTES),
            code="too_large",
        ),
    )


def _require_room(user: User, n_bytes: int) -> None:
    n_waiting = (
        Upload.objects.filter(uploaded_by=user, result=None).aggregate(n=Sum("n_bytes"))["n"] or 0
    )
    require(
        n_waiting + n_bytes <= MOST_WAITING * settings.UPLOAD_MAX_MEGABYTES * 1024**2,
        AnnotationError(
            _(
                "Your files that wait to be imported have {n} MiB already. Import or delete one "
                "of them first."
            ).format(n=round(n_waiting / 1024**2)),
            code="no_room",
        ),
    )


def jobs_of_upload(upload: Upload) -> Any:
    return Job.objects.about(f"upload:{upload.pk}")


def request_reading(*, upload: Upload, requested_by: User, form: FileFormat | None = None) -> None:
    if form is not None:
        upload.form = form.plain
    upload.n_rows, upload.faults, upload.n_faults = None, [], 0
    upload.save()
    _request(upload, 0, requested_by, {})


def request_import(*, upload: Upload, requested_by: User, leaves_out: bool = False) -> None:
    _request(upload, 1, requested_by, {"leaves_out": leaves_out})


def _request(upload: Upload, step: int, requested_by: User, arguments: dict[str, Any]) -> None:
    job = request_job(
        kind=JOBS[Upload.Content(upload.content)][step],
        subject=f"upload:{upload.pk}",
        arguments=arguments | {"upload": upload.pk},
        requested_by=requested_by,
    )
    if _is_quick(upload):
        run_job(job.pk)


def _is_quick(upload: Upload) -> bool:
    if upload.n_bytes > AT_ONCE_BYTES:
        return False
    content = b"".join(bytes(part.content) for part in upload.parts.all())
    return is_small(content, most_bytes=AT_ONCE_UNPACKED_BYTES)


@contextmanager
def stored_file(upload: Upload) -> Iterator[Path]:
    with TemporaryDirectory(prefix="assay-upload-") as folder:
        path = Path(folder) / short_file_name(upload.file_name)
        with path.open("wb") as copy:
            for part in upload.parts.order_by("position").iterator(chunk_size=4):
                copy.write(part.content)
        yield path


@contextmanager
def opened_upload(upload: Upload, report: ReadingReport | None = None) -> Iterator[OpenTable]:
    with (
        stored_file(upload) as path,
        opened_table(
            path,
            FileFormat.of(upload.form),
            most_bytes=5 * settings.UPLOAD_MAX_MEGABYTES * 1024**2,
            report=report,
        ) as table,
    ):
        yield table


def read_upload(running: RunningJob) -> str:
    upload = Upload.objects.get(pk=running.arguments["upload"])
    progress, report = running.progress(_("row")), ReadingReport()
    try:
        with opened_upload(upload, report) as table:
            profile = profile_table(table, passed=lambda blocks: progress(blocks, 0, len))
            upload.form, upload.has_pictures = table.form.plain, table.has_pictures
    except ImportRefused as refused:
        note_refusal(upload, refused, report)
        return ""
    upload.n_rows = profile.n_rows
    upload.columns = [vars(column) for column in profile.columns]
    upload.sample = [[row.line, row.fields, row.is_csv] for row in profile.sample]
    upload.mapping = _first_mapping(upload, profile)
    note_faults(upload, profile.faults, report)
    n = profile.n_rows
    return ngettext("%(n)s row read.", "%(n)s rows read.", n) % {"n": f"{n:,}"}


def note_faults(upload: Upload, faults: Faults, report: ReadingReport | None = None) -> None:
    upload.faults = [asdict(fault) for fault in faults.first]
    reading = upload.reading if report is None else report.plain()
    if reading:
        upload.reading = reading | {"faults": [asdict(each) for each in faults.groups.values()]}
    for name in ("columns", "sample", "summary", "faults", "reading"):
        setattr(upload, name, storable(getattr(upload, name)))
    upload.n_faults = faults.n
    upload.save()


def note_refusal(
    upload: Upload, refused: ImportRefused, report: ReadingReport | None = None
) -> None:
    faults = Faults()
    faults.add(refused)
    note_faults(upload, faults, report)


def require_no_faults(upload: Upload, faults: Faults) -> None:
    if n := faults.n:
        note_faults(upload, faults)
        raise AnnotationError(
            " ".join(
                [
                    ngettext("%(n)s fault in the file.", "%(n)s faults in the file.", n)
                    % {"n": f"{n:,}"},
                    _("Nothing was imported."),
                ]
            ),
            code="faults",
        )


def _first_mapping(upload: Upload, profile: TableProfile) -> dict[str, Any]:
    columns = [column["name"] for column in upload.columns]
    stored = find_stored_mapping(upload)
    if stored is not None:
        return ColumnMapping.of(stored).among(columns).plain
    return profile.guess().plain


def find_stored_mapping(upload: Upload, *kind: str) -> dict[str, Any] | None:
    stored = StoredMapping.objects.filter(
        **StoredMapping.owner_of(upload), columns_digest=columns_digest(upload, *kind)
    ).first()
    upload.is_mapping_known = stored is not None
    return stored.mapping if stored else None


def columns_digest(upload: Upload, *kind: str) -> str:
    names = sorted(column["name"] for column in upload.columns)
    return sha256(json.dumps([*kind, *names]).encode()).hexdigest()


def set_mapping(*, upload: Upload, mapping: ColumnMapping) -> None:
    upload.mapping = mapping.among([column["name"] for column in upload.columns]).plain
    upload.is_mapping_known = False
    upload.save(update_fields=["mapping", "is_mapping_known"])
    if not mapping_faults(mapping, has_pictures=True):
        keep_mapping(upload)


def guess_of(upload: Upload) -> ColumnMapping:
    """What the columns of an upload probably are, whatever was chosen since."""
    return guess_mapping(
        [Column(**column) for column in upload.columns],
        [fields for _line, fields, _is_csv in upload.sample],
        n_rows=upload.n_rows or 0,
    )


def import_upload(running: RunningJob) -> str:
    upload = Upload.objects.select_related("study", "team", "uploaded_by").get(
        pk=running.arguments["upload"]
    )
    mapping, faults = ColumnMapping.of(upload.mapping), Faults()
    progress = running.progress(_("row"))

    def passed(blocks: Iterable[RowBlock]) -> Iterable[RowBlock]:
        return progress(blocks, upload.n_rows or 0, len)

    with opened_upload(upload) as table:
        items = items_of(table, mapping, faults=faults, kind=upload.kind, passed=passed)
        leaves_out = running.arguments.get("leaves_out", False)
        if not len(items) or not (leaves_out or mapping.leaves_out(faults.groups.values())):
            require_no_faults(upload, faults)
        if not len(items):
            note_faults(upload, faults)
            raise AnnotationError(
                _("The file makes no item. Nothing was imported."), code="no_items"
            )
        try:
            with transaction.atomic():
                draft = mapped_study(items, kind=upload.kind, has_protocol=bool(upload.template))
                imported = write_upload(upload, draft, running)
                keep_mapping(upload)
                message = " ".join([str(imported), *_left_out(items)])
                running.complete(message)
        except ImportRefused as refused:
            note_refusal(upload, refused)
            raise
    if imported.n_submissions:
        request_results(Study.objects.get(pk=imported.study.pk))
    return message


def _left_out(items: MappedItems) -> Iterator[str]:
    if n := items.n_faulty:
        text = ngettext(
            "%(n)s item is left out: %(named)s.", "%(n)s items are left out: %(named)s.", n
        )
        named = items.faulty_names()
        yield text % {"n": f"{n:,}", "named": ", ".join([*named, *(["…"] * (n > len(named)))])}


def write_upload(upload: Upload, draft: Any, running: RunningJob) -> ImportResult:
    person = running.job.requested_by or upload.uploaded_by
    study = upload.study
    imported = import_study(
        draft=draft,
        path=Path(upload.file_name),
        slug=study.slug if study else free_slug(upload.title),
        title=upload.title,
        owner=upload.uploaded_by,
        team=None if study else upload.team,
        protocol=read_protocol(upload.template) if study is None and upload.template else None,
        actor=person,
    )
    Upload.objects.filter(pk=upload.pk).update(
        result=imported.study, faults=[], n_faults=0, sample=[]
    )
    upload.parts.all().delete()
    return imported


def keep_mapping(upload: Upload, *kind: str) -> None:
    StoredMapping.objects.update_or_create(
        **StoredMapping.owner_of(upload),
        columns_digest=columns_digest(upload, *kind),
        # What is done about the problems of one file is not done about those of the next.
        defaults={
            "mapping": {name: upload.mapping[name] for name in upload.mapping.keys() - {"fixes"}}
        },
    )


def free_slug(title: str) -> str:
    base = slugify(title)[: LONGEST_SLUG - 6].strip("-_") or "study"
    taken = set(Study.objects.filter(slug__startswith=base).values_list("slug", flat=True))
    return next(
        slug for slug in chain([base], (f"{base}-{n}" for n in count(2))) if slug not in taken
    )


def forget_uploads() -> int:
    rows = Upload.objects.filter(
        created_at__lt=timezone.now() - timedelta(days=settings.UPLOAD_KEEP_DAYS)
    )
    n = rows.count()
    rows.delete()
    return n
