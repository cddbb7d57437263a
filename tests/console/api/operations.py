"""Every operation of the API, with what it needs; one without a line here fails a test."""

from collections.abc import Iterator
from typing import Any

from django.db.models import Max
from django.urls import URLPattern, URLResolver, reverse

from accounts.roles import Permission
from console.api.urls import urlpatterns
from work.models import Job

P = Permission
METHODS = ("get", "post", "put", "patch", "delete")
# Without a study or a team: for everybody who is signed in.
OF_ANYBODY = {("root", "get"), ("me", "get"), ("schema", "get"), ("studies", "get")}
OF_A_STUDY = {
    ("study", "get"): P.VIEW,
    ("study", "patch"): P.EDIT,
    ("study", "delete"): P.OWN,
    ("archive", "put"): P.EDIT,
    ("archive", "delete"): P.EDIT,
    ("jobs", "get"): P.VIEW,
    ("job", "get"): P.VIEW,
    ("job-stop", "post"): P.ANALYSE,
    ("job-resume", "post"): P.ANALYSE,
    ("agreement", "get"): P.VIEW,
    ("validation", "get"): P.VIEW,
    ("disputes", "get"): P.VIEW,
}
OF_A_TEAM: dict[tuple[str, str], Permission] = {}
# What an address names beside the study or the team: a value, or a model whose last row it is.
PARTS: dict[str, Any] = {"job_id": Job}


def operations() -> Iterator[tuple[str, str, list[str]]]:
    """The name, the method and the parts of the address of every operation there is."""

    def walk(patterns: Any, parts: list[str]) -> Iterator[tuple[str, str, list[str]]]:
        for pattern in patterns:
            inner = parts + list(pattern.pattern.converters)
            if isinstance(pattern, URLResolver):
                yield from walk(pattern.url_patterns, inner)
            elif isinstance(pattern, URLPattern):
                view = getattr(pattern.callback, "cls", None)
                allowed = view.http_method_names if view else METHODS
                for method in METHODS:
                    if hasattr(view, method) and method in allowed:
                        yield str(pattern.name), method, inner

    return walk(urlpatterns, [])


def address(name: str, slug: str = "") -> str:
    """Of one thing that is there, of the study or the team of that slug."""
    parts = next(found for found_name, _, found in operations() if found_name == name)
    values = {part: slug if part == "slug" else _value(PARTS[part]) for part in parts}
    return reverse(f"console:api:{name}", kwargs=values)


def _value(part: Any) -> Any:
    return part.objects.aggregate(last=Max("pk"))["last"] if isinstance(part, type) else part
