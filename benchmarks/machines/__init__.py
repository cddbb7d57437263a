"""A whole site of two web servers, two workers, PostgreSQL and Redis, each killed in turn:
``python -m benchmarks.machines``."""
