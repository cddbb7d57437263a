"""Who is signed in, through whichever door, and how often one may guess."""

from typing import Any

from django.contrib.auth.backends import ModelBackend
from django.http import HttpRequest

from marketplace import attempts
from marketplace.users import User


class PeopleBackend(ModelBackend):
    """Passwords, of which not too many may be wrong, and people with their worker account."""

    def authenticate(
        self,
        request: HttpRequest | None,
        username: str | None = None,
        password: str | None = None,
        **kwargs: Any,
    ) -> User | None:
        """The person of that name and password, unless the name must wait."""
        name = username or ""
        if attempts.is_blocked(request, name):
            return None
        user: User | None = super().authenticate(request, username, password, **kwargs)
        if user is None:
            attempts.count_failure(request, name)
        else:
            attempts.forget(request, name)
        return user

    def get_user(self, user_id: int) -> User | None:
        """The person of a session, unless they may no longer sign in."""
        user = User.objects.select_related("worker_account").filter(pk=user_id).first()
        return user if user is not None and self.user_can_authenticate(user) else None
