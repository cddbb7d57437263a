"""Apps register what the console shows of them in their module `pages.registration`, and declare
their addresses in `pages.urls` and `api.urls`. The console names none of them."""

from collections.abc import Callable, Collection, Container
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from types import ModuleType

from django.apps import apps
from django.utils.module_loading import module_has_submodule
from django.utils.translation import gettext as _, gettext_lazy

from accounts.roles import Permission
from work.models import Job


def app_modules(name: str) -> list[ModuleType]:
    return [
        import_module(f"{config.name}.{name}")
        for config in apps.get_app_configs()
        if config.module and module_has_submodule(config.module, name)
    ]


@cache
def load_registrations() -> None:
    """Import the registrations of all apps, when a page first asks for what they register."""
    app_modules("pages.registration")


DONE, ACTIVE, NEEDS_YOU, LATER = "done", "active", "needs-you", "later"
# The words beside the signs, for those who do not see them.
WORDS = {
    DONE: gettext_lazy("done"),
    ACTIVE: gettext_lazy("under way"),
    NEEDS_YOU: gettext_lazy("needs you"),
    LATER: gettext_lazy("not yet"),
}
SIGNS = {DONE: "✓", ACTIVE: "◐", NEEDS_YOU: "!", LATER: "○"}


@dataclass(frozen=True)
class Stage:
    name: str
    title: str
    url: str
    state: str
    detail: str
    group: str

    @property
    def words(self) -> str:
        return str(WORDS[self.state])

    @property
    def sign(self) -> str:
        return SIGNS[self.state]


@dataclass(frozen=True)
class JobAccess:
    """The page of a kind of jobs, and the permissions that control them, that it takes beside to
    resume one, and to read its message."""

    page: str = ""
    control: Permission = Permission.EDIT
    to_resume: Callable[[Job], Collection[Permission]] = lambda job: ()
    to_read: Callable[[Job], Collection[Permission]] = lambda job: ()


_by_kind: dict[str, JobAccess] = {}


def register_job_access(kind: str, access: JobAccess) -> None:
    _by_kind[kind] = access


def job_access(kind: str) -> JobAccess:
    """The access to a kind of jobs; that of a kind without page for kinds nobody registered."""
    load_registrations()
    return _by_kind.get(kind, JobAccess())


def needed_to_control(job: Job, *, resumes: bool) -> list[Permission]:
    """What somebody must be allowed to stop a job, or to resume it: who may request one like it."""
    access = job_access(job.kind)
    return [access.control, *(access.to_resume(job) if resumes else ())]


def message_for(job: Job, permissions: Container[str]) -> str:
    if not job.message or all(each in permissions for each in job_access(job.kind).to_read(job)):
        return job.message
    return _("What came of it is for those who may see costs and workers.")
