"""Views that are imported at their first request, so that a process starts without all pages."""

from functools import cached_property
from importlib import import_module
from typing import Any

from django.urls import URLPattern, URLResolver


class LazyView:
    """A view that URL patterns hold by the names of its module and its function or class."""

    def __init__(self, module: str, name: str, arguments: dict[str, Any] | None = None) -> None:
        self.__module__, self.__name__, self.__qualname__ = module, name, name
        self._arguments = arguments

    def as_view(self, **arguments: Any) -> "LazyView":
        return LazyView(self.__module__, self.__name__, arguments)

    @cached_property
    def view(self) -> Any:
        """The view itself; raises ImportError if there is none of this name."""
        module = import_module(self.__module__)
        if not hasattr(module, self.__name__):
            raise ImportError(f"{self.__module__} has no view {self.__name__}")
        found = getattr(module, self.__name__)
        return found if self._arguments is None else found.as_view(**self._arguments)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.view(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        # Django's resolver asks each pattern for `view_class`, for a name that nobody looks up.
        if name == "view_class" or name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.view, name)


class LazyModule:
    """A module whose attributes are views that are imported at their first request."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> LazyView:
        return LazyView(self._name, name)


class LazyPackage:
    """A package of such modules: `pages.studies.study` in a URL pattern imports nothing."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> LazyModule:
        return LazyModule(f"{self._name}.{name}")


def import_views(patterns: list[URLPattern | URLResolver]) -> None:
    """Import every view below these patterns; the error names one that is missing."""
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            import_views(pattern.url_patterns)
        elif isinstance(pattern.callback, LazyView):
            pattern.callback.view  # noqa: B018
