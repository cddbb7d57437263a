from django.urls import URLPattern, URLResolver, path

from lazy_views import LazyPackage

pages = LazyPackage("validation.pages")

of_a_study: list[URLPattern | URLResolver] = [
    path("results/", pages.human_results.results, name="results"),
    path("validation/", pages.validation.validation, name="validation"),
    path(
        "validation/<slug:chart>.<slug:form>", pages.validation.picture, name="validation-picture"
    ),
    path("validation/tables/<slug:name>/", pages.validation.table, name="validation-table"),
    path("report/", pages.validation.report, name="report"),
    path("report/<str:name>", pages.validation.report_file, name="report-file"),
    path("paper/", pages.paper.paper, name="paper"),
    path("paper/participants/", pages.paper.participants, name="paper-participants"),
    path("paper/datasheet/", pages.paper.answer_datasheet, name="paper-datasheet"),
    path("paper/<slug:name>.<slug:form>", pages.paper.paper_file, name="paper-file"),
    path("score/", pages.validation.score, name="score"),
]
