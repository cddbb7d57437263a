"""The addresses of the pages of this app."""

from django.urls import URLPattern, URLResolver, path

from lazy_views import LazyPackage

pages = LazyPackage("retrieval.pages")

of_a_study: list[URLPattern | URLResolver] = [
    path("reasons/", pages.reasons.reasons, name="reasons"),
]

of_the_site: list[URLPattern | URLResolver] = [
    path("how-many/", pages.sizes.how_many, name="how-many"),
    path("how-many/topics-or-assessors/", pages.sizes.pilot, name="how-many-pilot"),
    path("how-many/curve.<slug:form>", pages.sizes.curve, name="how-many-curve"),
]
