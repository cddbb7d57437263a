"""Backups of the database in one file that either database restores, and their restore."""
