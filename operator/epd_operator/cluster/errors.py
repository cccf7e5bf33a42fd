"""What can go wrong between the operator and the API server."""


class ClusterError(Exception):
    """No request was answered as asked."""


class Unreachable(ClusterError):  # noqa: N818  (says what is the matter)
    """No answer, or none that makes sense: the same request may be tried again."""


class NotLeading(ClusterError):  # noqa: N818
    """The Lease is lost or too old: nothing may be written."""


class ApiError(ClusterError):
    """The API server refused."""

    def __init__(
        self,
        status: int,
        reason: str,
        message: str,
        retry_after: float | None = None,
        causes: tuple[str, ...] = (),
    ) -> None:
        super().__init__(f"{status} {reason}: {message}" if reason else f"{status}: {message}")
        self.status = status
        """HTTP code."""
        self.reason = reason
        """Kubernetes' word for it, for example AlreadyExists."""
        self.message = message
        """The API server's own words, or those of the webhook or quota that refused."""
        self.retry_after = retry_after
        """Seconds that the API server asks to wait, if it does."""
        self.causes = causes
        """The reasons in its details, for example NamespaceTerminating."""

    @property
    def is_gone(self) -> bool:
        """The object does not exist."""
        return self.status == 404

    @property
    def is_conflict(self) -> bool:
        """The object exists already, is another one, or was changed meanwhile."""
        return self.status == 409

    @property
    def is_of_ending_namespace(self) -> bool:
        """Nothing can be made in the namespace any more (apiserver, plugin/namespace/lifecycle)."""
        return "NamespaceTerminating" in self.causes

    @property
    def is_expired(self) -> bool:
        """A version that the API server no longer remembers: list again."""
        return self.status == 410 or self.reason == "Expired"

    @property
    def is_passing(self) -> bool:
        """Trouble of the API server, not of the request: worth another try as it is."""
        return self.status in (408, 429) or self.status >= 500
