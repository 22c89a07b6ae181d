"""Applications that are served as generated servers are: the same options of uvicorn, and the same word of where."""

import json
import socket
import sys
from typing import Any

import uvicorn


def serve(app: Any) -> None:
    """Serve an ASGI application on a port that is free. One line on stderr says where, as generated servers do."""
    # Only of sockets that are said to be TCP's, asyncio lets small packets go at once.
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as opened:
        opened.bind(("127.0.0.1", 0))
        opened.listen()
        print(json.dumps({"urls": [f"http://127.0.0.1:{opened.getsockname()[1]}/mcp"]}), file=sys.stderr, flush=True)
        config = uvicorn.Config(
            app,
            loop="asyncio",
            http="h11",
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_keep_alive=60,
        )
        uvicorn.Server(config).run([opened])
