"""Apps register what the console shows of them in their module `pages.registration`, and declare
their addresses in `pages.urls` and `api.urls`. The console names none of them."""

from functools import cache
from importlib import import_module
from types import ModuleType

from django.apps import apps
from django.utils.module_loading import module_has_submodule


def app_modules(name: str) -> list[ModuleType]:
    """The modules of that name in all apps that have one, in the order of the apps."""
    configs = apps.get_app_configs()
    return [
        import_module(f"{config.name}.{name}")
        for config in configs
        if config.module and module_has_submodule(config.module, name)
    ]


@cache
def load_registrations() -> None:
    """Import the registrations of all apps, when a page first asks for what they register."""
    app_modules("pages.registration")
