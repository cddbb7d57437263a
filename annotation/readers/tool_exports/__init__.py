"""Exports of other annotation tools: what annotators said there, as a study with judgments."""
