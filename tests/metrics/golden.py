from pathlib import Path

from annotation.models import Study
from tests.annotation.importing import command_output

SAMPLE = Path(__file__).resolve().parents[2] / "samples" / "golden_answers.csv"


def golden_study() -> Study:
    """Twenty questions under two prompts, answered by three systems; not scored yet."""
    command_output("import_golden_answers", SAMPLE, study="golden")
    return Study.objects.get(slug="golden")
