from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import call_command

KEPT = settings.BASE_DIR / "docs" / "openapi.yaml"


@pytest.mark.slow
def test_the_schema_that_is_kept_is_the_one_of_the_code(tmp_path: Path):
    file = tmp_path / "openapi.yaml"
    call_command("spectacular", file=str(file), validate=True, fail_on_warn=True)
    assert file.read_text() == KEPT.read_text(), (
        "The API has changed. Look at the difference, then write it down with "
        "`python manage.py spectacular --file docs/openapi.yaml`."
    )
