"""The files that a study offers to take away. Each app registers its own in a module
`study_files`."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from django.db.models import BooleanField, Exists, ExpressionWrapper
from django.utils.functional import Promise
from django.utils.module_loading import autodiscover_modules
from django.utils.translation import gettext_lazy as _

from accounts.roles import Permission
from annotation.dataset import dataset_zip
from annotation.exports import (
    check_rows,
    comment_rows,
    item_rows,
    judgment_rows,
    label_rows,
    missing_rows,
    written_rows,
)
from annotation.models import (
    CheckAnswer,
    DisputeComment,
    LabelSet,
    MissingAnswer,
    Study,
    Submission,
    WrittenAnswer,
)
from annotation.result_kinds.agreement import AgreementKind, agreement_records
from annotation.study_facts import AGREEMENT, has_simulated
from presentation.row_files import FORMS, RowFile

JSON, TEXT = "application/json", "text/plain; charset=utf-8"
DATASET = "dataset.zip"


@dataclass(frozen=True)
class Download:
    content_type: str
    about: str | Promise
    write: Callable[[Study], Iterator[str] | Iterator[bytes]]
    result: str = ""
    permission: Permission = Permission.EXPORT


@dataclass(frozen=True)
class RowDownload:
    about: str | Promise
    rows: Callable[[Study], RowFile]
    permission: Permission = Permission.EXPORT

    def forms(self, name: str) -> dict[str, Download]:
        return {
            f"{name}.{form}": Download(
                content_type, self.about, self._writer(write), permission=self.permission
            )
            for form, (content_type, write) in FORMS.items()
        }

    def _writer(
        self, write: Callable[[RowFile], Iterator[str] | Iterator[bytes]]
    ) -> Callable[[Study], Iterator[str] | Iterator[bytes]]:
        return lambda study: write(self.rows(study))


@dataclass(frozen=True)
class Offer:
    """Of which studies a file or table is offered, and its place among the others.

    `rows` is true of a study that has something to write, asked of all files in one statement;
    `fits` is asked once for all files that share it. Files of judgments are empty without any.
    """

    place: int
    rows: Callable[[Study], Any] | None = None
    fits: Callable[[Study], bool] | None = None
    is_of_judgments: bool = False


_tables: dict[str, RowDownload] = {}
_files: dict[str, Download] = {}
_offers: dict[str, Offer] = {}


def register_table(name: str, table: RowDownload, offer: Offer) -> None:
    _tables[name] = table
    for file_name, download in table.forms(name).items():
        register_file(file_name, download, offer)


def register_file(name: str, download: Download, offer: Offer) -> None:
    _files[name], _offers[name] = download, offer


def row_downloads() -> Mapping[str, RowDownload]:
    _import_files()
    return _tables


def study_downloads() -> Mapping[str, Download]:
    _import_files()
    return {name: _files[name] for name in sorted(_files, key=lambda name: _offers[name].place)}


def study_download(name: str) -> Download:
    _import_files()
    return _files[name]


def is_of_judgments(name: str) -> bool:
    return _offers[name].is_of_judgments


def file_names(study: Study) -> list[str]:
    names = list(study_downloads())
    asked = {f"has_{offer.place}": offer.rows(study) for offer in _offers.values() if offer.rows}
    has: dict[str, Any] = dict(Study.objects.filter(pk=study.pk).values(**asked).get())
    # Once per function: several files share one.
    fits = {fits: fits(study) for fits in {offer.fits for offer in _offers.values()} if fits}
    return [
        name
        for name in names
        for offer in [_offers[name]]
        if has.get(f"has_{offer.place}", True) and (offer.fits is None or fits[offer.fits])
    ]


@cache
def _import_files() -> None:
    autodiscover_modules("study_files")


def agreement_json(study: Study) -> Iterator[str]:
    version = AgreementKind().require(study)
    source = {"study": study.slug, "simulated": has_simulated(study)}
    yield json.dumps(source | agreement_records(version), indent=1)


def _has_words(study: Study) -> Any:
    return ExpressionWrapper(
        Exists(WrittenAnswer.objects.filter(submission__item__study=study).order_by())
        | Exists(Submission.objects.of(study).exclude(justification="").order_by()),
        output_field=BooleanField(),
    )


register_table(
    "judgments",
    RowDownload(_("every judgment but rejected ones, one long table"), judgment_rows),
    Offer(10, is_of_judgments=True),
)
register_table(
    "written",
    RowDownload(
        _("every answer in words, and every reason"), written_rows, Permission.VIEW_WORKERS
    ),
    Offer(30, _has_words),
)
register_table(
    "missing",
    RowDownload(
        _("every answer that is a missing value, with its reason"),
        missing_rows,
        Permission.VIEW_WORKERS,
    ),
    Offer(
        35,
        lambda study: Exists(
            MissingAnswer.objects.filter(submission__item__study=study).order_by()
        ),
    ),
)
register_table(
    "checks",
    RowDownload(_("every answer to a quality check"), check_rows, Permission.VIEW_WORKERS),
    Offer(
        40,
        lambda study: Exists(CheckAnswer.objects.filter(submission__item__study=study).order_by()),
    ),
)
register_table(
    "comments",
    RowDownload(_("what colleagues said about disputes"), comment_rows),
    Offer(60, lambda study: Exists(DisputeComment.objects.of(study).order_by())),
)
register_table(
    "items",
    RowDownload(_("every candidate with what annotators were shown"), item_rows),
    Offer(70),
)
register_table(
    "labels",
    RowDownload(_("the labels of every label set"), label_rows),
    Offer(80, lambda study: Exists(LabelSet.objects.of(study).order_by())),
)
register_file(
    "agreement.json",
    Download(JSON, _("coefficients with intervals and signatures"), agreement_json, AGREEMENT),
    Offer(160, is_of_judgments=True),
)
register_file(
    DATASET,
    Download(
        "application/zip",
        _("a dataset with its card, which the library datasets of Hugging Face loads"),
        dataset_zip,
        AGREEMENT,
    ),
    Offer(180, is_of_judgments=True),
)
