"""What `retrieval` does in the background, each job on a collection."""

from django.utils.translation import gettext_lazy

from annotation.exceptions import AnnotationError
from metrics.exceptions import MetricsError
from retrieval.deletion import DELETE_COLLECTION, delete_large_collection
from retrieval.exceptions import RetrievalError
from retrieval.file_readings import READ_FILES, read_files
from retrieval.merged_qrels import MERGED_QRELS, make_merged_qrels
from retrieval.pool_studies import STUDY_OF_POOL, make_pool_study
from retrieval.stored_audits import AUDIT, audit_files
from retrieval.stored_comparisons import COMPARE, compare_collection
from retrieval.stored_evaluations import EVALUATE, evaluate_collection
from retrieval.stored_machines import COMPARE_MACHINE, compare_collection_machine
from retrieval.stored_pools import MAKE_POOL, make_collection_pool
from retrieval.stored_reuse import ESTIMATE_REUSE, estimate_reuse
from retrieval.stored_targets import SAMPLE_TARGETS, sample_collection_targets
from retrieval.stored_vectors import MAKE_VECTORS, make_collection_vectors
from retrieval.study_qrels import STUDY_QRELS, make_study_qrels
from work.registry import INTERACTIVE, SCORING, register

REFUSALS = (RetrievalError, AnnotationError)

for name, label, handler in (
    (READ_FILES, gettext_lazy("Reading files"), read_files),
    (EVALUATE, gettext_lazy("Evaluating runs"), evaluate_collection),
    (COMPARE, gettext_lazy("Comparing qrels"), compare_collection),
    (ESTIMATE_REUSE, gettext_lazy("Leaving systems out"), estimate_reuse),
    (AUDIT, gettext_lazy("Auditing files"), audit_files),
    (COMPARE_MACHINE, gettext_lazy("Comparing a machine"), compare_collection_machine),
    (SAMPLE_TARGETS, gettext_lazy("Drawing targets"), sample_collection_targets),
    (MAKE_POOL, gettext_lazy("Making a pool"), make_collection_pool),
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
