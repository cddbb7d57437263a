"""The addresses of pages that have not moved to their apps."""

from django.urls import URLPattern, URLResolver, include, path

from lazy_views import LazyPackage
from retrieval.models import ResultType

pages = LazyPackage("console.pages")
collection_pages = LazyPackage("console.pages.collections")
experiment_pages = LazyPackage("console.pages.experiments")

# Pages of a collection that show results as they are declared; others are below results/.
RESULT_PAGES = {
    "trust": ResultType.COMPARISON.value,
    "reuse": ResultType.REUSE.value,
    "machine": ResultType.MACHINE.value,
}
PAGES_WITH_CHARTS = RESULT_PAGES | {"audit": ResultType.AUDIT.value}

of_a_study: list[URLPattern | URLResolver] = [
    path("results/", pages.human_results.results, name="results"),
    path("validation/", pages.validation.validation, name="validation"),
    path(
        "validation/<slug:chart>.<slug:form>", pages.validation.picture, name="validation-picture"
    ),
    path("validation/tables/<slug:name>/", pages.validation.table, name="validation-table"),
    path("report/", pages.validation.report, name="report"),
    path("report/<str:name>", pages.validation.report_file, name="report-file"),
    path("score/", pages.validation.score, name="score"),
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

of_a_collection: list[URLPattern | URLResolver] = [
    path("", collection_pages.listing.collection, name="collection"),
    path("studies/", collection_pages.listing.set_studies, name="collection-studies"),
    path("delete/", collection_pages.listing.delete, name="collection-delete"),
    path("files/", collection_pages.files.files, name="collection-files"),
    path("files/<int:file_id>/", collection_pages.files.file, name="collection-file"),
    path(
        "files/<int:file_id>/remove/", collection_pages.files.remove, name="collection-file-remove"
    ),
    path(
        "files/<int:file_id>/qrels/",
        collection_pages.files.make_qrels,
        name="collection-file-qrels",
    ),
    path(
        "files/<int:file_id>/content/",
        collection_pages.files.content,
        name="collection-file-content",
    ),
    path("evaluation/", collection_pages.evaluation.evaluation, name="collection-evaluation"),
    path(
        "evaluation/<slug:chart>.<slug:form>/picture/",
        collection_pages.evaluation.picture,
        name="collection-picture",
    ),
    *(
        path(
            f"{page}/<slug:chart>.<slug:form>/picture/",
            collection_pages.trust.picture,
            {"kind": kind},
            name=f"collection-{page}-picture",
        )
        for page, kind in PAGES_WITH_CHARTS.items()
    ),
    path("evaluation/<str:name>", collection_pages.evaluation.download, name="collection-download"),
    path("report/", collection_pages.report.report, name="collection-report"),
    path(
        "report/<int:number>.html",
        collection_pages.report.report_file,
        name="collection-report-file",
    ),
    path("targets/", collection_pages.targets.targets, name="collection-targets"),
    path(
        "targets/<int:number>.csv",
        collection_pages.targets.sample_file,
        name="collection-targets-file",
    ),
    path("judgments/", collection_pages.judgments.judgments, name="collection-judgments"),
    path(
        "judgments/<int:study_id>/qrels/",
        collection_pages.judgments.make_qrels,
        name="collection-study-qrels",
    ),
    path("pools/", collection_pages.pools.pools, name="collection-pools"),
    path("pools/sources/", collection_pages.pools.add_source, name="collection-source"),
    path("pools/vectors/", collection_pages.pools.make_vectors, name="collection-vectors"),
    path("pools/<int:number>/", collection_pages.pools.pool, name="collection-pool"),
    path(
        "pools/<int:number>/study/", collection_pages.pools.make_study, name="collection-pool-study"
    ),
    path(
        "pools/<int:number>.<slug:form>",
        collection_pages.pools.pool_file,
        name="collection-pool-file",
    ),
    *(
        path(
            f"{page}/",
            collection_pages.trust.result_page,
            {"kind": kind, "page": page},
            name=f"collection-{page}",
        )
        for page, kind in RESULT_PAGES.items()
    ),
    path("results/<slug:kind>/", collection_pages.trust.result_page, name="collection-result"),
    path(
        "results/<slug:kind>/<slug:chart>.<slug:form>/picture/",
        collection_pages.trust.picture,
        name="collection-result-picture",
    ),
    path("audit/", collection_pages.audits.audit, name="collection-audit"),
    path(
        "tables/<slug:kind>/<slug:name>.<slug:form>",
        collection_pages.trust.table,
        name="collection-table",
    ),
    path("work/<int:job_id>/", collection_pages.jobs.job, name="collection-work"),
    path("work/<int:job_id>/stop/", collection_pages.jobs.stop, name="collection-stop"),
    path("work/<int:job_id>/again/", collection_pages.jobs.resume, name="collection-again"),
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
    path("collections/", collection_pages.listing.collections, name="collections"),
    path("new-collection/", collection_pages.listing.new_collection, name="new-collection"),
    path("collections/<slug:slug>/", include(of_a_collection)),
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
