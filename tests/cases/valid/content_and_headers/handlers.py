from typing import Any

from content_and_headers_mcp.interface import Call, CodeHandlers
from content_and_headers_mcp.models import PictureDrawParams


class Handlers(CodeHandlers):
    async def draw(self, params: PictureDrawParams, call: Call) -> list[dict[str, Any]]:
        return [{"type": "text", "text": f"{params.tenant}: {params.size}"}]
