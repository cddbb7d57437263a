"""The whole loop on the samples, headless, with its results written to files."""

from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from annotation.exceptions import FolderUnusable
from annotation.models import Study
from annotation.study_files import (
    file_names,
    study_download,
)
from annotation.study_results import (
    AGREEMENT,
    compute,
)
from config.samples import (
    Crowd,
    load_sample_studies,
    work_on_samples,
)
from hits.enrolment import enrol_requester
from hits.local_site import served_site
from hits.loop import Marketplace
from presentation.files import write_whole
from presentation.progress import Reporter, without_bars
from validation.datasheets.short import whole_report
from validation.report_files import REPORT_FILES


@dataclass(frozen=True)
class Demonstration:
    """The studies that went through the loop, and the files written of them."""

    studies: tuple[Study, ...]
    files: tuple[Path, ...]


def demonstrate(*, folder: Path, crowd: Crowd, reporter: Reporter = without_bars) -> Demonstration:
    """Import, publish, work, collect, approve, score; then write what a study's page offers."""
    # First, so that a slip in its name is told before the work and not after.
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FolderUnusable(f"{folder} cannot be made: {error.strerror}.") from None
    studies = load_sample_studies()
    with served_site() as site_url:
        key = enrol_requester(site_url=site_url, name="demo", test_funds_usd=Decimal(100))
        work_on_samples(
            studies=studies,
            marketplace=Marketplace(site_url, key),
            crowd=crowd,
            reporter=reporter,
        )
    return Demonstration(tuple(studies), tuple(_write_studies(studies, folder)))


def _write_studies(studies: list[Study], folder: Path) -> list[Path]:
    files = []
    for study in studies:
        names = file_names(study)
        for name in names:
            path = folder / f"{study.slug}-{name}"
            write_whole(path, study_download(name).write(study))
            files.append(path)
        if "scores.csv" in names:
            files.append(write_report(study, folder))
    return files


def write_report(study: Study, folder: Path) -> Path:
    """Write the report that *Report* in the study hands out, with its agreement."""
    compute(study, AGREEMENT)
    path = folder / f"{study.slug}-report.html"
    write_whole(path, [REPORT_FILES["report.html"](whole_report(study))])
    return path
