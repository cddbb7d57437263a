from annotation.result_kinds.agreement import AgreementKind
from annotation.study_facts import AGREEMENT, StudyResult, register_result

kind = AgreementKind()
register_result(AGREEMENT, StudyResult(kind.fingerprint, kind.is_stored, kind.compute_now))
