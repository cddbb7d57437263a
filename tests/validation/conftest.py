from tests.metrics.conftest import write
from tests.validation.test_study_validation import study

__all__ = ["study", "write"]
