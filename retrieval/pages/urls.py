from django.urls import URLPattern, URLResolver, include, path

from lazy_views import LazyPackage
from retrieval.models import ResultType

pages = LazyPackage("retrieval.pages")
results = LazyPackage("results")

OF_COLLECTION = {"subject": "collection"}
# Pages of a collection that show results as they are declared; others are below results/.
PAGES = {
    "trust": ResultType.COMPARISON.value,
    "reuse": ResultType.REUSE.value,
    "machine": ResultType.MACHINE.value,
}
PAGES_WITH_CHARTS = PAGES | {"audit": ResultType.AUDIT.value}

of_a_collection: list[URLPattern | URLResolver] = [
    path("", pages.collections.collection, name="collection"),
    path("studies/", pages.collections.set_studies, name="collection-studies"),
    path("delete/", pages.collections.delete, name="collection-delete"),
    path("files/", pages.files.files, name="collection-files"),
    path("files/<int:file_id>/", pages.files.file, name="collection-file"),
    path("files/<int:file_id>/confirm/", pages.files.confirm, name="collection-file-confirm"),
    path("files/<int:file_id>/remove/", pages.files.remove, name="collection-file-remove"),
    path(
        "files/<int:file_id>/qrels/",
        pages.files.make_qrels,
        name="collection-file-qrels",
    ),
    path(
        "files/<int:file_id>/content/",
        pages.files.content,
        name="collection-file-content",
    ),
    path("evaluation/", pages.results.evaluation, name="collection-evaluation"),
    path(
        "evaluation/<slug:chart>.<slug:form>/picture/",
        pages.results.picture,
        name="collection-picture",
    ),
    *(
        path(
            f"{page}/<slug:chart>.<slug:form>/picture/",
            results.pages.picture,
            OF_COLLECTION | {"kind": kind},
            name=f"collection-{page}-picture",
        )
        for page, kind in PAGES_WITH_CHARTS.items()
    ),
    path("evaluation/<str:name>", pages.results.download, name="collection-download"),
    path("report/", pages.results.report, name="collection-report"),
    path(
        "report/<int:number>.html",
        pages.results.report_file,
        name="collection-report-file",
    ),
    path("targets/", pages.targets.targets, name="collection-targets"),
    path(
        "targets/<int:number>.csv",
        pages.targets.sample_file,
        name="collection-targets-file",
    ),
    path("judgments/", pages.files.judgments, name="collection-judgments"),
    path(
        "judgments/<int:study_id>/qrels/",
        pages.files.make_study_qrels,
        name="collection-study-qrels",
    ),
    path("pools/", pages.pools.pools, name="collection-pools"),
    path("pools/sources/", pages.pools.add_source, name="collection-source"),
    path("pools/vectors/", pages.pools.make_vectors, name="collection-vectors"),
    path("pools/<int:number>/", pages.pools.pool, name="collection-pool"),
    path("pools/<int:number>/study/", pages.pools.make_study, name="collection-pool-study"),
    path(
        "pools/<int:number>.<slug:form>",
        pages.pools.pool_file,
        name="collection-pool-file",
    ),
    *(
        path(
            f"{page}/",
            results.pages.result_page,
            OF_COLLECTION | {"kind": kind, "page": page},
            name=f"collection-{page}",
        )
        for page, kind in PAGES.items()
    ),
    path(
        "results/<slug:kind>/", results.pages.result_page, OF_COLLECTION, name="collection-result"
    ),
    path(
        "results/<slug:kind>/<slug:chart>.<slug:form>/picture/",
        results.pages.picture,
        OF_COLLECTION,
        name="collection-result-picture",
    ),
    path("audit/", pages.results.audit, name="collection-audit"),
    path(
        "tables/<slug:kind>/<slug:name>.<slug:form>",
        results.pages.table,
        OF_COLLECTION,
        name="collection-table",
    ),
    path("work/<int:job_id>/", pages.collections.job, name="collection-work"),
    path("work/<int:job_id>/stop/", pages.collections.stop, name="collection-stop"),
    path("work/<int:job_id>/again/", pages.collections.resume, name="collection-again"),
]

of_a_study: list[URLPattern | URLResolver] = [
    path("reasons/", pages.files.reasons, name="reasons"),
]

of_the_site: list[URLPattern | URLResolver] = [
    path("collections/", pages.collections.collections, name="collections"),
    path("new-collection/", pages.collections.new_collection, name="new-collection"),
    path("collections/<slug:slug>/", include(of_a_collection)),
    path("how-many/", pages.sizes.how_many, name="how-many"),
    path("how-many/topics-or-assessors/", pages.sizes.pilot, name="how-many-pilot"),
    path("how-many/curve.<slug:form>", pages.sizes.curve, name="how-many-curve"),
]
