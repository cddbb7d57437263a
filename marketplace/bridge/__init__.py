"""Leads programs that hard-code Amazon's endpoint to a marketplace: `manage.py mturk_bridge`."""
