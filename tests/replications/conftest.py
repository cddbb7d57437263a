from tests.metrics.conftest import write

__all__ = ["write"]
