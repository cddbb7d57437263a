"""The site's own settings with jobs whose effects are counted, and without the apps that are slow
to load: a process that is killed again and again spends its life loading them."""

from config.settings import *  # noqa: F403
from config.settings import TEMPLATES

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django_tasks",
    "django_tasks_db",
    "work",
    "benchmarks.faults",
]
AUTH_USER_MODEL = "auth.User"
MIDDLEWARE: list[str] = []
ROOT_URLCONF = "benchmarks.faults.urls"
AUTHENTICATION_BACKENDS = ["django.contrib.auth.backends.ModelBackend"]
# A process of each kind to kill.
WEB_PROCESSES, WORKER_PROCESSES = 2, 3
TEMPLATES = [TEMPLATES[0] | {"OPTIONS": {}}]
