from django.contrib.auth.decorators import login_not_required
from django.core.cache import cache
from django.db import connection
from django.db.utils import ConnectionHandler
from django.urls import include, path

from config import urls


@login_not_required
def broken(request):
    raise RuntimeError("broken for the test")


@login_not_required
def away(request):
    """As any view fails whose first statement finds nobody there."""
    nowhere = connection.settings_dict | {
        "NAME": "/nowhere/assay",
        "HOST": "127.0.0.1",
        "PORT": "1",
    }
    ConnectionHandler({"default": nowhere})["default"].cursor()


@login_not_required
def cached(request):
    """As any view fails that looks into a cache where nobody answers."""
    cache.get("anything")


@login_not_required
def late(request):
    with connection.cursor() as cursor:
        cursor.execute("SELECT * FROM there_is_no_such_table")


@login_not_required
def held(request):
    """A statement that waits for what somebody else holds, for longer than the site waits."""
    other = ConnectionHandler({"default": connection.settings_dict})["default"]
    with other.cursor() as holder, connection.cursor() as cursor:
        holder.execute("SELECT pg_advisory_lock(4711)")
        try:
            cursor.execute("SET lock_timeout = '50ms'")
            cursor.execute("SELECT pg_advisory_lock(4711)")
        finally:
            other.close()


# Django looks for them here.
handler400, handler500 = urls.handler400, urls.handler500
urlpatterns = [
    path("broken/", broken),
    path("away/", away),
    path("api/v1/away/", away),
    path("late/", late),
    path("held/", held),
    path("cached/", cached),
    path("", include("config.urls")),
]
