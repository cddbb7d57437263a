from django.urls import URLPattern, URLResolver, path

from lazy_views import LazyPackage, LazyView

pages = LazyPackage("console.pages")

of_a_team: list[URLPattern | URLResolver] = [
    path("tokens/", pages.tokens.tokens, name="team-tokens"),
    path("tokens/<int:token_id>/revoke/", pages.tokens.revoke, name="team-token-revoke"),
]

of_the_site: list[URLPattern | URLResolver] = [
    path("login/", pages.tokens.login, name="login"),
    path("logout/", LazyView("django.contrib.auth.views", "LogoutView", {}), name="logout"),
]
