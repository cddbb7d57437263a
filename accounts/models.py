"""Who signs in: researchers, workers and operators are users of one model."""

from django.contrib.auth.models import AbstractUser
from django.db import models
from django.db.models.functions import Lower


class User(AbstractUser):
    """A person with a password; what they may do follows from what belongs to them."""

    class Meta(AbstractUser.Meta):
        constraints = [
            # Signing in ignores case: a second "Ada" would keep the first out.
            models.UniqueConstraint(
                Lower("username"),
                name="unique_username_ignoring_case",
                violation_error_message="A user with that username already exists.",
            )
        ]
