"""Programs that take the place of `claude` and `li`, so that runs cost the same on every side, and nothing outside."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from .places import LION_PEER, environment

_LI: Final = LION_PEER / "bin" / "li"
_CLAUDE: Final = """\
#!/bin/sh
printf '%s\\n' '{"type": "system", "subtype": "init", "session_id": "stand-in"}'
printf '%s\\n' '{"type": "assistant", "message": {"content": [{"type": "text", "text": "It is done."}]}}'
printf '%s\\n' '{"type": "result", "subtype": "success", "is_error": false, "result": "It is done."}'
"""


def with_claude(folder: Path) -> dict[str, str]:
    """Make a `claude` in `folder` that has the answer at once; the variables of a server whose runs find it."""
    _script(folder / "claude", _CLAUDE)
    return {"PATH": os.pathsep.join((str(folder), environment(folder)["PATH"]))}


@contextmanager
def waiting_li(folder: Path) -> Iterator[Path]:
    """A `li` in `folder` whose agents do nothing until the `with` block ends; all else the real one does."""
    pipe = folder / "pipe"
    os.mkfifo(pipe)
    holder = os.open(pipe, os.O_RDWR)
    text = f"#!/bin/sh\ncase $1 in\nagent) read -r _ <'{pipe}' ;;\n*) exec '{_LI}' \"$@\" ;;\nesac\n"
    try:
        yield _script(folder / "li", text)
    finally:
        pipe.unlink()  # whoever comes now fails at once; those who wait see the end of the pipe
        os.close(holder)


def _script(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o755)
    return path
