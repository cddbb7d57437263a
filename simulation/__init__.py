"""Simulated users who accept what annotators accepted, and the recommenders they talk to."""
