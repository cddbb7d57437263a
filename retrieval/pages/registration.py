"""Who may control the jobs of collections."""

from accounts.roles import Permission
from console.api.endpoint import register_subject
from console.job_permissions import JobAccess, register_job_access
from console.pages.collections.collection import collection_for
from retrieval.deletion import DELETE_COLLECTION
from retrieval.result_kinds.audit import AUDIT
from retrieval.result_kinds.comparison import COMPARE
from retrieval.result_kinds.evaluation import EVALUATE
from retrieval.result_kinds.machine import COMPARE_MACHINE
from retrieval.result_kinds.reuse import ESTIMATE_REUSE

for kind in (EVALUATE, COMPARE, COMPARE_MACHINE, ESTIMATE_REUSE, AUDIT):
    register_job_access(kind, JobAccess(control=Permission.ANALYSE))
register_job_access(DELETE_COLLECTION, JobAccess(control=Permission.OWN))
register_subject("collection", collection_for)
