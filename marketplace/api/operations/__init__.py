from marketplace.api.operations import assignments, hits, qualifications, workers

__all__ = ["assignments", "hits", "qualifications", "workers"]
