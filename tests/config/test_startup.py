import tomllib

import pytest
from django.conf import settings
from django.urls import get_resolver, path

from lazy_views import LazyPackage, LazyView, import_views
from tests.processes import run_python

SETUP = "import django; django.setup()"
REQUEST = f"""{SETUP}
from django.test import Client
answer = Client(headers={{"host": "127.0.0.1"}}).get("/login/")
assert answer.status_code == 200, answer.status_code
"""
KINDS = f"{SETUP}; from results.kinds import result_kinds; result_kinds()"
PRINT_MODULES = "import sys; print(' '.join({name.partition('.')[0] for name in sys.modules}))"


def heavy_libraries():
    project = tomllib.loads((settings.BASE_DIR / "pyproject.toml").read_text())
    return set(
        project["tool"]["ruff"]["lint"]["flake8-tidy-imports"]["banned-module-level-imports"]
    )


@pytest.mark.slow
@pytest.mark.parametrize("code", [SETUP, REQUEST, KINDS])
def test_a_process_starts_without_heavy_libraries(code):
    imported = set(run_python("-c", f"{code}\n{PRINT_MODULES}").stdout.split())
    assert "django" in imported
    assert len(heavy_libraries()) > 10
    assert imported & heavy_libraries() == set()


def test_every_view_can_be_imported_and_has_the_attributes_of_its_function():
    import_views(get_resolver().url_patterns)
    assert LazyView("marketplace.api.dispatch", "requester_api").csrf_exempt is True
    with pytest.raises(AttributeError):
        _ = LazyView("hits.pages.studies", "studies").csrf_exempt


@pytest.mark.parametrize("module", ["no_such_module", "studies"])
def test_a_view_that_is_missing_is_found(module):
    missing = path("", getattr(LazyPackage("console.pages"), module).no_such_view)
    with pytest.raises(ImportError):
        import_views([missing])
