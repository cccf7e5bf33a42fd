"""One vLLM that does everything itself: what a deployment's answers are compared with."""

import os
import subprocess
import tempfile
from pathlib import Path
from typing import Self

from epd_operator.api.deployment import EPDDeployment
from epd_operator.local.logs import last_lines
from epd_operator.local.ports import ADDRESS, HeldPorts
from epd_operator.local.processes import end_sessions, members
from epd_operator.local.readiness import probe
from epd_operator.local.shared_memory import SegmentLedger
from hack.engine_env import EngineEnvironment
from hack.waiting import until

KEY = "monolith"
START_SECONDS = 600.0


class MonolithError(Exception):
    """It does not serve; the message holds its last lines."""


class Monolith:
    """`vllm serve` with the settings that all roles of a deployment have in common, and no transfer between roles."""

    def __init__(self, deployment: EPDDeployment, models: Path, engine: EngineEnvironment) -> None:
        spec = deployment.spec
        self.model = spec.model.served_name or spec.model.id
        self._ports = HeldPorts()
        self._port = self._ports.take()
        self._ledger = SegmentLedger()
        self._directory = tempfile.TemporaryDirectory(prefix="epd-monolith-", ignore_cleanup_errors=True)
        self._log = Path(self._directory.name) / "log"
        model = models / spec.model.id.removeprefix("./")
        settings = {variable.name: variable.value or "" for variable in spec.engine.env or []}
        own = {"TMPDIR": self._directory.name, "VLLM_API_KEY": KEY, "VLLM_HOST_IP": ADDRESS, "VLLM_NO_USAGE_STATS": "1"}
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [
                    *(engine.vllm, "serve", model, "--served-model-name", self.model),
                    *("--host", ADDRESS, "--port", str(self._port), *(spec.engine.args or [])),
                ],
                env=os.environ | settings | own,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def url(self) -> str:
        """Base URL; the key is KEY."""
        return f"http://{ADDRESS}:{self._port}"

    def wait_until_served(self) -> str:
        """The URL to send requests to. Raises MonolithError where it never serves."""
        if not until(self._serves, START_SECONDS):
            raise MonolithError("\n".join(["the monolithic instance does not serve:", *last_lines(self._log, 20)]))
        return self.url

    def _serves(self) -> bool | None:
        """None once it has ended: waiting is in vain."""
        if self._process.poll() is not None:
            return None
        return probe(ADDRESS, self._port, self.model, KEY).serves

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        session = self._process.pid
        self._ledger.observe(members(session))
        end_sessions([session], 15, lambda: self._process.poll() is None and False)
        self._ledger.remove_leftovers()
        self._directory.cleanup()
        self._ports.release()
