"""Kinds of jobs are registered when one is first looked up."""

import subprocess
import sys

import pytest
from django.conf import settings

STARTED = """
import sys
import django
django.setup()
print(sorted({"altair", "pandas", "scipy", "sklearn"} & set(sys.modules)))
from work.registry import job_kinds
print(sorted({kind.queue for kind in job_kinds().values()}))
"""


@pytest.mark.slow
def test_a_site_starts_without_the_statistics_and_has_the_jobs_of_every_queue() -> None:
    answer = subprocess.run(
        [sys.executable, "-c", STARTED],
        cwd=settings.BASE_DIR,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    libraries, queues = answer.stdout.splitlines()
    assert libraries == "[]"
    assert queues == "['interactive', 'marketplace', 'scoring']"
