"""The addresses of the pages of this app."""

from django.urls import URLPattern, URLResolver, path

from lazy_views import LazyPackage

pages = LazyPackage("annotation.pages")

of_a_study: list[URLPattern | URLResolver] = [
    path("work/<int:job_id>/", pages.job_progress.job, name="work"),
    path("work/<int:job_id>/stop/", pages.job_progress.stop, name="stop"),
    path("work/<int:job_id>/again/", pages.job_progress.resume, name="again"),
]
