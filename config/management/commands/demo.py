from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from annotation.agreement import study_agreement
from annotation.models import Judgment, Study, Submission
from presentation.numbers import count_of
from presentation.progress import bar
from retrieval.exports.qrels import study_qrels
from validation.analysis import EVERY_CONDITION, Settings
from validation.study_validation import study_report


class Command(BaseCommand):
    help = "Run the whole loop on the sample studies, headless, and write its results to files."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--output", type=Path, default=Path("output/demo"), metavar="FOLDER")
        parser.add_argument("--workers", type=int, default=4)
        parser.add_argument("--seed", type=int, default=7)

    def handle(self, *args: Any, output: Path, workers: int, seed: int, **options: Any) -> None:
        # These import much; --help needs none of it.
        from config.samples import Crowd, demonstrate
        from hits.loop import prepare_database

        prepare_database()
        studies, files = demonstrate(
            folder=output, crowd=Crowd(n_workers=workers, seed=seed), reporter=bar
        )
        for study in studies:
            self.stdout.write("\n".join(_summary(study)))
        self.stdout.write("\nWritten:")
        self.stdout.write("\n".join(f"  {path}" for path in files))


def _summary(study: Study) -> list[str]:
    n_submissions = Submission.objects.of(study).count()
    n_judgments = Judgment.objects.of(study).count()
    size = f"{count_of(n_submissions, 'submission')}, {count_of(n_judgments, 'judgment')}"
    lines = [f"\n{study.title}: {size}"]
    for row in study_agreement(study).questions:
        if row.condition == EVERY_CONDITION:
            alpha = row.alpha
            lines.append(
                f"  {row.question:16} Krippendorff's alpha ({row.level}) {alpha.value:5.2f} "
                f"[{alpha.ci_low:.2f}, {alpha.ci_high:.2f}]"
            )
    if study.kind == Study.Kind.ALTERNATIVES:
        qrels = study_qrels(study)
        sizes = f"{count_of(qrels.n_topics, 'topic')}, {count_of(qrels.n_lines, 'line')}"
        return [*lines, f"  qrels ({qrels.rule}): {sizes}, {qrels.n_relevant} relevant"]
    return lines + _correlations(study)


def _correlations(study: Study) -> list[str]:
    settings = Settings(levels=("item",), coefficients=("kendall",))
    lines = ["  Kendall's tau-b with people at the item level:"]
    for row in study_report(study, settings).correlations:
        if row.scope == "all" and row.value is not None:
            lines.append(
                f"    {row.metric:18} {row.question:16} {row.value:5.2f} "
                f"[{row.ci_low:.2f}, {row.ci_high:.2f}], {row.n_used} of {row.n_groups} items"
            )
    return lines
