from django.utils.translation import gettext_lazy

from annotation.exceptions import AnnotationError
from metrics.exceptions import MetricsError
from retrieval.collections import (
    DELETE_COLLECTION,
    STUDY_OF_POOL,
    delete_large_collection,
    make_pool_study,
)
from retrieval.derived_files import (
    MAKE_VECTORS,
    MERGED_QRELS,
    STUDY_QRELS,
    make_collection_vectors,
    make_merged_qrels,
    make_study_qrels,
)
from retrieval.exceptions import RetrievalError
from retrieval.file_readings import READ_FILES, read_files
from work.registry import INTERACTIVE, SCORING, register

REFUSALS = (RetrievalError, AnnotationError)

for name, label, handler in (
    (READ_FILES, gettext_lazy("Reading files"), read_files),
    (STUDY_OF_POOL, gettext_lazy("Making a study"), make_pool_study),
    (DELETE_COLLECTION, gettext_lazy("Deleting the collection"), delete_large_collection),
    (STUDY_QRELS, gettext_lazy("Making qrels"), make_study_qrels),
    (MERGED_QRELS, gettext_lazy("Merging assessors' grades"), make_merged_qrels),
):
    register(name, label=label, queue=INTERACTIVE, refusals=REFUSALS)(handler)

# A model takes minutes, as a metric's does: not among what people wait for.
register(
    MAKE_VECTORS,
    label=gettext_lazy("Making embeddings"),
    queue=SCORING,
    refusals=(*REFUSALS, MetricsError),
)(make_collection_vectors)
