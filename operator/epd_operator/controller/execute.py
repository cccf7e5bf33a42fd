"""Decisions become requests, one after the other: cut off anywhere, the next reconcile goes on from what is there."""

import base64
import secrets
from collections.abc import Callable, Sequence

from epd_operator.api.conditions import Reason
from epd_operator.api.names import SECRET_KEY
from epd_operator.cluster.api import Cluster
from epd_operator.cluster.errors import ApiError
from epd_operator.cluster.resources import CONTROLLER_REVISIONS, SECRETS, Object, Resource
from epd_operator.controller.actions import Action, Apply, Confirm, Create, Keep, MakeSecret, Problem, Remove
from epd_operator.controller.kinds import CREATED_NOT_APPLIED
from epd_operator.controller.metrics import WRITES
from epd_operator.controller.rendering import Rendering
from epd_operator.controller.world import World

KEY_BYTES = 32


class Executor:
    """Carries out decisions."""

    def __init__(self, cluster: Cluster, world: World, new_key: Callable[[], bytes] | None = None) -> None:
        self._cluster = cluster
        self._world = world
        self._new_key = new_key or (lambda: secrets.token_urlsafe(KEY_BYTES).encode())

    async def execute(
        self, actions: Sequence[Action], present: Callable[[], bool]
    ) -> tuple[bool, Rendering | None, Problem | None]:
        """Write until all is done, something is refused, or the object is there no more, as `present` says.

        Returns whether anything was written, the rendering that was kept, and what stood in the way. Raises
        ClusterError for trouble that passes: the whole is tried again.
        """
        wrote, kept = False, None
        for action in actions:
            if isinstance(action, Confirm):
                action.child.is_right(action.digest)
                continue
            if not present():
                break
            wrote = True
            try:
                kept = await self._do(action) or kept
            except ApiError as error:
                if error.is_passing or error.status == 401:
                    raise
                return wrote, kept, _problem(action, error)
        return wrote, kept, None

    async def _do(self, action: Action) -> Rendering | None:
        match action:
            case Keep():
                return await self._keep(action)
            case MakeSecret():
                key = base64.b64encode(self._new_key()).decode()
                await self._create(SECRETS, {**action.body, "data": {SECRET_KEY: key}})
            case Create():
                created = await self._create(action.resource, action.body)
                if created is not None:
                    self._world.take_scale(created)
            case Apply():
                await self._apply(action)
            case Remove():
                await self._remove(action)
        return None

    async def _keep(self, action: Keep) -> Rendering | None:
        metadata = action.body["metadata"]
        created = await self._create(CONTROLLER_REVISIONS, action.body)
        if created is not None:
            return self._world.take_rendering(created)
        # Of this name, so of this content: kept by a reconcile that was cut off, or by a former object of the name.
        answer = await self._cluster.get(CONTROLLER_REVISIONS, metadata["namespace"], metadata["name"])
        if not _owned_alike(answer, action.body):
            message = f"ControllerRevision {metadata['name']} of a former object goes first"
            raise _BlockedError(Problem(Reason.WAITING_FOR_DELETION, message, passing=True))
        return self._world.take_rendering(answer)

    async def _create(self, resource: Resource, body: Object) -> Object | None:
        """None where an object of this name is there already."""
        _count(resource, "create")
        try:
            return await self._cluster.create(resource, body)
        except ApiError as error:
            if error.reason == "AlreadyExists":
                return None
            raise

    async def _apply(self, action: Apply) -> None:
        known, resource, body = action.known, action.resource, action.body
        if known is not None:
            # The UID is a precondition: what is deleted meanwhile must not come to life by half.
            body = {**body, "metadata": {**body["metadata"], "uid": known.uid}}
            _count(resource, "apply")
            answer = await self._cluster.apply(resource, body, force=True)
        else:
            answer = await self._make(resource, body)
        child = self._world.take_child(resource, answer)
        if child is not None:
            child.is_right(action.digest)

    async def _make(self, resource: Resource, body: Object) -> Object:
        """Make what was not seen. A stranger's object of the name is refused, not adopted."""
        metadata = body["metadata"]
        try:
            if resource.kind in CREATED_NOT_APPLIED:
                _count(resource, "create")
                return await self._cluster.create(resource, body)
            _count(resource, "apply")
            return await self._cluster.apply(resource, body, force=False)
        except ApiError as refusal:
            if refusal.status not in (409, 422):
                raise
            try:
                there = await self._cluster.get(resource, metadata["namespace"], metadata["name"])
            except ApiError as error:
                if error.is_gone:
                    raise refusal from None
                raise
        if not _owned_alike(there, body):
            raise _BlockedError(_taken(resource, there, body))
        return await self._cluster.apply(resource, body, force=True)

    async def _remove(self, action: Remove) -> None:
        _count(action.resource, "delete")
        try:
            await self._cluster.delete(action.resource, action.namespace, action.name, action.uid)
        except ApiError as error:
            if not (error.is_gone or error.is_conflict):
                raise


class _BlockedError(ApiError):
    """Something of the name is in the way."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(409, "", problem.message)
        self.problem = problem


def _problem(action: Action, error: ApiError) -> Problem:
    if isinstance(error, _BlockedError):
        return error.problem
    if isinstance(action, Keep | MakeSecret | Create | Apply):
        body = action.body
        what = f"{body['kind']} {body['metadata']['name']}"
    elif isinstance(action, Remove):
        what = f"{action.resource} {action.name}"
    else:
        what = type(action).__name__
    return Problem(
        Reason.API_REFUSED,
        f"{what}: {error.message or error}",
        passing=error.is_conflict,
        ending=error.is_of_ending_namespace,
    )


def _owned_alike(there: Object, body: Object) -> bool:
    wanted = next(owner["uid"] for owner in body["metadata"]["ownerReferences"])
    owners = there["metadata"].get("ownerReferences") or []
    return any(owner["uid"] == wanted for owner in owners)


def _taken(resource: Resource, there: Object, body: Object) -> Problem:
    mine = body["metadata"]["ownerReferences"][0]
    name = body["metadata"]["name"]
    owner = next((o for o in there["metadata"].get("ownerReferences") or [] if o.get("controller")), None)
    if owner is not None and (owner["kind"], owner["name"]) == (mine["kind"], mine["name"]):
        message = f"{resource} {name} belongs to a deleted object of the same name, and goes with it"
        return Problem(Reason.WAITING_FOR_DELETION, message, passing=True)
    whose = f"belongs to {owner['kind']} {owner['name']}" if owner else "was not made by this operator"
    message = f"{resource} {name} exists and {whose}; delete it, or give this object another name"
    return Problem(Reason.NAME_TAKEN, message)


def _count(resource: Resource, verb: str) -> None:
    WRITES.labels(resource.kind, verb).inc()
