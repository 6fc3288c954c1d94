"""All that the viewer's server answers with: each path, and what is there.

A request is looked up in this table by its whole path, so no path of a request ever becomes a path of a file.
"""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from urllib.parse import quote

from stepscope.paths import shown
from stepscope.timeline.viewer.ui_files import UiFiles

TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".json": "application/json",
    ".wasm": "application/wasm",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
}
"""MIME types by ending, since the system's own table differs from machine to machine; a browser refuses to compile a
stream of WebAssembly of another type."""

UI_ROUTE = "#!/viewer?hideSidebar=true"
"""Where the UI starts. Without a route, this build of the UI looks for a trace on port 9001 and shows an error dialog
if there is none. With `mode=embedded` it hides its sign that data was lost."""

PAGE_POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src data:",
        "connect-src 'self'",
        "frame-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    ]
)
"""Content Security Policy of our own page."""

EMBEDDED_POLICY = PAGE_POLICY.replace("frame-ancestors 'none'", "frame-ancestors 'self'")
"""The same of a page that stands in another one of the same server."""

UI_POLICY = "; ".join(
    [
        "default-src 'self'",
        "script-src 'self' 'unsafe-inline' 'wasm-unsafe-eval'",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data: blob:",
        "font-src 'self' data:",
        "connect-src 'self' data: blob:",
        "worker-src 'self' blob:",
        "object-src 'none'",
        "frame-src 'none'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'self'",
    ]
)
"""Content Security Policy of the UI: nothing but this server is asked. It would otherwise ask storage.cloud.google.com
for a script, and port 9001 of this machine for a trace processor, which any user of this machine may have started."""


@dataclass(frozen=True)
class Answer:
    """What is at a path.

    Args:
        content: The bytes, or the file whose bytes they are.
        mime: MIME type.
        policy: Content Security Policy of a document; empty for all else.
    """

    content: bytes | Path
    mime: str
    policy: str = ""


@dataclass(frozen=True)
class Site:
    """The table of answers.

    Args:
        root: Path of the page; it has a secret that others on this machine cannot guess.
        answers: Each answer by its whole path.
    """

    root: str
    answers: dict[str, Answer]


def site_of(timeline: Path, ui: UiFiles, *, title: str, remedy: str = "") -> Site:
    """The page, the UI and the timeline, below a path with a new secret.

    Args:
        timeline: The file to show.
        ui: The files of the UI.
        title: What the page's header shows.
        remedy: Sentence that the header adds if the UI cannot show all of the timeline.
    """
    root = f"/{secrets.token_urlsafe(16)}/"
    view = {
        "title": title,
        "file": shown(timeline.name),
        "remedy": remedy,
        "trace": "trace",
        "ui": f"ui/index.html{UI_ROUTE}",
    }
    answers = {root + name: answer for name, answer in {**page_answers(), **ui_answers(ui)}.items()}
    answers[f"{root}view.json"] = Answer(json.dumps(view).encode(), TYPES[".json"])
    answers[f"{root}trace"] = Answer(timeline, "application/octet-stream")
    return Site(root, answers)


def page_answers(policy: str = PAGE_POLICY) -> dict[str, Answer]:
    """Our own page by path below its root, the page itself at the empty path.

    Args:
        policy: Its Content Security Policy.
    """
    return {
        "": Answer(_own("page.html"), TYPES[".html"], policy),
        "page.js": Answer(_own("page.js"), TYPES[".js"]),
        "page.css": Answer(_own("page.css"), TYPES[".css"]),
    }


def ui_answers(ui: UiFiles) -> dict[str, Answer]:
    """The files of the UI, by path below the page's root."""
    answers = {}
    for name, path in ui.files.items():
        mime = TYPES.get(path.suffix, "application/octet-stream")
        # workers take the policy of their own script
        has_policy = path.suffix == ".html" or name.endswith("_bundle.js")
        answers[f"ui/{quote(name)}"] = Answer(path, mime, UI_POLICY if has_policy else "")
    return answers


def _own(name: str) -> bytes:
    return resources.files(__package__).joinpath(name).read_bytes()
