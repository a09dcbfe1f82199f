"""docs/deployment.md works as printed: nginx with its file, before two processes."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import makers
import pytest

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")

from services import LONG, asked, serving, until

NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
PAGE = Path(__file__).parents[2] / "docs" / "deployment.md"
HOST = "labels.example.org"
TEXT = "sea sun bread code"
TOKEN = "s3cret"

pytestmark = [pytest.mark.usefixtures("signals"), pytest.mark.skipif(NGINX is None, reason="needs nginx")]


@contextmanager
def nginx(port: int) -> Iterator[int]:
    """nginx as the page has it, before the service at `port`; yields its own port."""
    (own,) = re.findall(r"^```nginx\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    with socket.create_server(("127.0.0.1", 0)) as free:
        front = free.getsockname()[1]
    here = {"127.0.0.1:8000;": f"127.0.0.1:{port};", "listen 80;": f"listen 127.0.0.1:{front};"}
    for printed, ours in here.items():
        assert own.count(printed) == 1
        own = own.replace(printed, ours)
    with tempfile.TemporaryDirectory(prefix="metarank-nginx-") as folder:
        os.chmod(folder, 0o755)
        user = "user root;\n" if hasattr(os, "geteuid") and os.geteuid() == 0 else ""
        kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        kept = "\n".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds)
        (Path(folder) / "nginx.conf").write_text(
            f"{user}pid {folder}/pid; error_log {folder}/error.log; daemon off; worker_processes 1;\n"
            f"events {{ worker_connections 768; }}\nhttp {{ access_log off;\n{kept}\n{own}}}\n"
        )
        command = [NGINX, "-p", folder, "-e", f"{folder}/error.log", "-c", f"{folder}/nginx.conf"]
        process = subprocess.Popen(command)

        def answers() -> bool:
            assert process.poll() is None, (Path(folder) / "error.log").read_text()
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", front), timeout=1):
                return True
            return False

        try:
            until(answers)
            yield front
        finally:
            process.terminate()
            process.wait(LONG)


def test_what_the_page_prints(tmp_path):
    makers.fitted("texts").save(tmp_path / "first" / "topics")
    os.symlink("first/topics", tmp_path / "topics")
    (tmp_path / "token").write_text(TOKEN + "\n")
    options = ["--workers", 2, "--root-path", "/labels", "--token-file", tmp_path / "token"]
    with serving(tmp_path / "topics", *options) as (_, port), nginx(port) as front:
        known = {"Host": HOST, "Authorization": f"Bearer {TOKEN}"}
        fields = {"instance": TEXT, "k": 2}
        status, body = asked(front, "/labels/rank", fields, **known)
        assert status == 200
        (row,) = json.loads(body)["rankings"]
        best = next(iter(makers.fitted("texts").rank([TEXT], k=2)))
        assert [(e["label"], e["score"]) for e in row] == best
        assert asked(front, "/labels/rank", fields, Host=HOST)[0] == 401
        assert asked(front, "/labels/ready", Host=HOST)[0] == 200
        assert asked(front, "/labels/metrics", **known)[0] == 404
        assert asked(front, "/rank", fields, **known)[0] == 404
        assert asked(front, "/labels/rank", {"instance": "a" * (1 << 20)}, **known)[0] == 413
        servers = json.loads(asked(front, "/labels/openapi.json", **known)[1])["servers"]
        assert servers == [{"url": "/labels"}]
