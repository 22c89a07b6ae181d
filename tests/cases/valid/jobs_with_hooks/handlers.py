from jobs_with_hooks_mcp.interface import Ask, Call, CodeHandlers, End, Launch, RunRecord, Schema
from jobs_with_hooks_mcp.models import BuildStartParams


class Handlers(CodeHandlers):
    async def params_for_recipe(self, recipe: str, call: Call) -> Schema:
        return {"properties": {"depth": {"type": "integer"}}, "required": []}

    async def runs_prepare(self, launch: Launch, params: BuildStartParams | None, call: Call) -> None:
        launch.flag("--silent")

    async def runs_ended(self, record: RunRecord, ask: Ask | None) -> End | None:
        return End("built", "succeeded", "report")

    async def runs_settled(self, record: RunRecord) -> Schema | None:
        return None

    async def runs_details(self, record: RunRecord) -> Schema:
        return {"owner": "nobody"}
