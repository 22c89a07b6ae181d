"""Handlers that give back what they were given."""

from submits_mcp.interface import Call, LocalHandlers, Refusal, Schema
from submits_mcp.models import AgentSubmitParams, FlowSubmitParams, PlaySubmitParams

PLAYBOOKS = {
    "nightly": {"properties": {"depth": {"type": "integer"}, "max_ops": {"type": "integer"}}, "required": ["depth"]}
}


class Handlers(LocalHandlers):
    async def agent_submit(self, params: AgentSubmitParams, call: Call) -> object:
        return {"prompt": params.prompt}

    async def flow_submit(self, params: FlowSubmitParams, call: Call) -> object:
        return {"prompt": params.prompt, "further": params.model_extra}

    async def play_submit(self, params: PlaySubmitParams, call: Call) -> object:
        return {"playbook": params.playbook, "further": params.model_extra}

    async def job_status(self, call: Call) -> object:
        return "running"

    async def params_for_playbook(self, playbook: str, call: Call) -> Schema:
        if playbook not in PLAYBOOKS:
            raise Refusal("not_found", "There is no such playbook.")
        return PLAYBOOKS[playbook]
