"""What only li needs: profiles and playbooks, read as li reads them, its runs in the background, and what this server is."""

import asyncio
import os
from datetime import UTC, datetime

from lion_mcp.interface import Ask, Call, End, Launch, LocalHandlers, Refusal, RunRecord, Schema
from lion_mcp.models import ProfileListParams, ProfileShowParams, ServerInfoResult

from .causes import failure_cause
from .endings import end_of
from .installation import li_command, version_beside
from .launches import folder_of_run, own_folder, prepare
from .notices import send_if_unsent, state_of
from .playbook_arguments import arguments_of, further_parameters, names_taken
from .playbooks import playbook_named
from .profiles import checked_fields, list_profiles, show_profile
from .run_files import files_of_run
from .tasks import Params

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

    async def params_for_playbook(self, playbook: str, call: Call) -> Schema:
        return await asyncio.to_thread(parameters_of, playbook, call)

    async def runs_prepare(self, launch: Launch, params: Params, call: Call) -> None:
        await asyncio.to_thread(prepare, launch, params, call)

    async def runs_ended(self, record: RunRecord, ask: Ask | None) -> End | None:
        return await end_of(record, ask)

    async def runs_settled(self, record: RunRecord) -> Schema:
        await send_if_unsent(record)
        told = await asyncio.to_thread(told_of_end, record, tried=True)
        return {name: value for name, value in told.items() if record.details.get(name) != value}

    async def runs_details(self, record: RunRecord) -> Schema:
        return await asyncio.to_thread(lambda: files_of_run(record) | told_of_end(record))


def parameters_of(playbook: str, call: Call) -> Schema:
    """What a playbook adds to a verb, as the folder sees it that the run is to work in.

    Raises Refusal, `unavailable` where li could not use the playbook: there is nothing yet to check the call against.
    """
    cwd = call.arguments.get("cwd")
    folder = folder_of_run(cwd if isinstance(cwd, str) else None) or own_folder()
    try:
        return further_parameters(arguments_of(playbook_named(playbook, folder).declared), names_taken(call))
    except Refusal as refusal:
        raise Refusal("unavailable", refusal.message, refusal.detail) from None


def told_of_end(record: RunRecord, *, tried: bool = False) -> Schema:
    """What became of the notice, and why the run failed, if it did and li wrote it down."""
    failed = record.end is None or record.end.outcome != "succeeded"
    cause = failure_cause(record) if failed else None
    return {"notice": state_of(record, tried=tried), **({"failure_cause": cause} if cause else {})}
