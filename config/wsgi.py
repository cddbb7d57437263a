import gc
import os

from django.core.wsgi import get_wsgi_application
from django.template import engines
from django.urls import get_resolver

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

application = get_wsgi_application()
# Before gunicorn forks: else every process makes its first visitors wait for all the imports,
# and has the garbage collector go through them again and again.
routes, templates = get_resolver().url_patterns, engines.all()
gc.freeze()
