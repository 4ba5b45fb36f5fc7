#!/usr/bin/env python3
"""A server, and clients that ask for it through a gateway, one request after the other.

deploy/packaging/handover.py runs this in the network of another system:

    load.py GATEWAY-PORT SERVER-PORT

For each line on standard input it waits until the clients have been served 1,000 times more, and prints
how often they were. At the end of the input it prints what was lost, as JSON.
"""

from __future__ import annotations

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "Tests/Integration"))

from support.askers import Clients  # noqa: E402

BODY = b"from the server behind the gateway\n"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:  # noqa: N802 (the name is the library's)
        self.send_response(200)
        self.send_header("Content-Length", str(len(BODY)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(BODY)

    def log_message(self, format: str, *arguments: Any) -> None:
        pass


def main() -> None:
    gateway, port = (int(argument) for argument in sys.argv[1:])
    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    host = f"127.0.0.1:{port}"
    clients = Clients(("127.0.0.1", gateway),
                      f"GET http://{host}/ HTTP/1.1\r\nHost: {host}".encode(), BODY)
    with clients.running(fresh=4, kept=4) as wait:
        for _ in sys.stdin:
            end = clients.served + 1000
            while clients.served < end and not clients.wrong:
                wait()
            print(clients.served, flush=True)
    print(json.dumps({"served": clients.served, "wrong": clients.wrong[:20],
                      "lost": len(clients.wrong), "longest": clients.longest}), flush=True)


if __name__ == "__main__":
    main()
