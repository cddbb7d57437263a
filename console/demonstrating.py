"""The whole loop on the samples, headless, with its results written to files."""

from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from annotation.models import Study
from annotation.progress import Reporter, without_bars
from console.downloads import DOWNLOADS, file_names
from console.loop import Marketplace, issue_key
from console.samples import Crowd, load_sample_studies, work_on_samples
from console.serving import served_site


@dataclass(frozen=True)
class Demonstration:
    """The studies that went through the loop, and the files written of them."""

    studies: tuple[Study, ...]
    files: tuple[Path, ...]


def demonstrate(*, folder: Path, crowd: Crowd, reporter: Reporter = without_bars) -> Demonstration:
    """Import, publish, work, collect, approve, score; then write what a study's page offers."""
    studies = load_sample_studies()
    key = issue_key(requester="demo", deposit_usd=Decimal(100))
    with served_site() as site_url:
        work_on_samples(
            studies=studies,
            marketplace=Marketplace(site_url, key),
            crowd=crowd,
            reporter=reporter,
        )
    folder.mkdir(parents=True, exist_ok=True)
    return Demonstration(tuple(studies), tuple(_written(studies, folder)))


def _written(studies: list[Study], folder: Path) -> list[Path]:
    files = []
    for study in studies:
        for name in file_names(study):
            path = folder / f"{study.slug}-{name}"
            path.write_text(DOWNLOADS[name].write(study), encoding="utf-8")
            files.append(path)
    return files
