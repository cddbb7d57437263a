"""The addresses of pages that have not moved to their apps."""

from django.urls import URLPattern, URLResolver, include, path

from lazy_views import LazyPackage

pages = LazyPackage("console.pages")
experiment_pages = LazyPackage("console.pages.experiments")

of_a_study: list[URLPattern | URLResolver] = [
    path("simulated-users/", pages.dialogue_studies.dialogues, name="dialogues"),
    path(
        "simulated-users/<slug:chart>.<slug:form>/picture/",
        pages.dialogue_studies.picture,
        name="dialogues-picture",
    ),
    path("simulated-users/<str:name>", pages.dialogue_studies.download, name="dialogues-download"),
]

of_a_team: list[URLPattern | URLResolver] = [
    path("tokens/", pages.tokens.tokens, name="team-tokens"),
    path("tokens/<int:token_id>/revoke/", pages.tokens.revoke, name="team-token-revoke"),
]

of_an_experiment: list[URLPattern | URLResolver] = [
    path("", experiment_pages.experiment.experiment, name="experiment"),
    path("delete/", experiment_pages.experiment.delete, name="experiment-delete"),
    path("runs/<int:number>/", experiment_pages.experiment.progress, name="experiment-progress"),
    path("runs/<int:number>/stop/", experiment_pages.experiment.stop, name="experiment-stop"),
    path("runs/<int:number>/again/", experiment_pages.experiment.resume, name="experiment-again"),
    path(
        "<slug:chart>.<slug:form>/picture/",
        experiment_pages.experiment.picture,
        name="experiment-picture",
    ),
    path("<str:name>", experiment_pages.downloads.download, name="experiment-download"),
]

of_a_recommender: list[URLPattern | URLResolver] = [
    path("", experiment_pages.recommenders.recommender, name="recommender"),
    path("training/", experiment_pages.recommenders.progress, name="recommender-progress"),
    path("stop/", experiment_pages.recommenders.stop, name="recommender-stop"),
    path("again/", experiment_pages.recommenders.resume, name="recommender-again"),
    path("delete/", experiment_pages.recommenders.delete, name="recommender-delete"),
]

of_the_site: list[URLPattern | URLResolver] = [
    path("login/", pages.sign_in.login, name="login"),
    path("logout/", pages.sign_in.logout, name="logout"),
    path("simulations/", experiment_pages.listing.experiments, name="experiments"),
    path("new-simulation/", experiment_pages.listing.new_experiment, name="new-experiment"),
    path("simulations/<slug:slug>/", include(of_an_experiment)),
    path("catalogues/", experiment_pages.catalogues.catalogues, name="catalogues"),
    path("catalogues/<int:key>/", experiment_pages.catalogue.catalogue, name="catalogue"),
    path(
        "catalogues/<int:key>/<str:name>",
        experiment_pages.catalogue.download,
        name="catalogue-download",
    ),
    path(
        "catalogues/<int:key>/delete/", experiment_pages.catalogues.delete, name="catalogue-delete"
    ),
    path(
        "new-dialogue-study/", pages.dialogue_studies.new_dialogue_study, name="new-dialogue-study"
    ),
    path("recommenders/", experiment_pages.recommenders.recommenders, name="recommenders"),
    path("new-recommender/", experiment_pages.recommenders.new_recommender, name="new-recommender"),
    path("recommenders/<int:key>/", include(of_a_recommender)),
]
