"""What only li needs: agent profiles, read from their files as li reads them, and what this server says of itself."""

import asyncio
import os
from datetime import UTC, datetime

from lion_mcp.interface import Call, LocalHandlers
from lion_mcp.models import ProfileListParams, ProfileShowParams, ServerInfoResult

from .installation import li_command, version_beside
from .profiles import checked_fields, list_profiles, show_profile

__all__ = ["Handlers"]

CONTRACT_VERSION = 1  # of the machine contract; the spec expects the same of every reply


class Handlers(LocalHandlers):
    def __init__(self) -> None:
        self._found: tuple[str | None] | None = None  # the version of lionagi, once it was looked for

    async def profile_list(self, params: ProfileListParams, call: Call) -> dict[str, object]:
        fields = checked_fields(params.fields)
        return await asyncio.to_thread(list_profiles, params.cwd, params.names, fields)

    async def profile_show(self, params: ProfileShowParams, call: Call) -> dict[str, object]:
        return await asyncio.to_thread(show_profile, params.name, params.cwd)

    async def server_info(self, call: Call) -> ServerInfoResult:
        if self._found is None:
            self._found = (await asyncio.to_thread(version_beside, li_command()),)
        registry = call.registry
        available = sorted(verb.name for verb in registry.available)
        return ServerInfoResult.model_validate(
            {
                "server": {
                    "name": registry.server.name,
                    "version": registry.server.version,
                    "registry": registry.digest,
                },
                "lionagi_version": self._found[0],
                "contract_version": CONTRACT_VERSION,
                "started_at": call.started_at.isoformat(),
                "uptime_seconds": round((datetime.now(UTC) - call.started_at).total_seconds(), 3),
                "pid": os.getpid(),
                "verbs": available,
                "verb_count": len(available),
                "absent_verb_count": len(registry.unavailable),
                "synonyms_removed_after": registry.synonyms_removed_after,
            }
        )
