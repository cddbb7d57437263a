"""Names that pages of collections and of experiments import from here until they move."""

from console.access import may, may_of, person, require_permission

__all__ = ["may", "may_of", "person", "require_permission"]
