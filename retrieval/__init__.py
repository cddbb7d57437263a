"""Test collections: runs, relevance judgments, evaluation, and how many topics they take."""
