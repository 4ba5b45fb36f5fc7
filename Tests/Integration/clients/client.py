"""`client.py requests|httpx|httpx-async BASE FILE STEP...`: what `support/programs.py` describes,
with one client of the library. Proxy and authority come from the environment."""

import asyncio
import hashlib
import sys

import httpx
import requests


def report(status: int, body: bytes) -> None:
    print(status, len(body), hashlib.sha256(body).hexdigest(), flush=True)


def steps() -> list[tuple[str, str, bytes]]:
    base, file, *words = sys.argv[2:]
    with open(file, "rb") as opened:
        data = opened.read()
    pairs = [word.split(":", 1) for word in words]
    return [(method, base + path, data if method == "PUT" else b"") for method, path in pairs]


async def asynchronously() -> None:
    async with httpx.AsyncClient() as client:
        for method, url, data in steps():
            answer = await client.request(method, url, content=data)
            report(answer.status_code, answer.content)


match sys.argv[1]:
    case "requests":
        with requests.Session() as session:
            for method, url, data in steps():
                answer = session.request(method, url, data=data)
                report(answer.status_code, answer.content)
    case "httpx":
        with httpx.Client() as client:
            for method, url, data in steps():
                answer = client.request(method, url, content=data)
                report(answer.status_code, answer.content)
    case "httpx-async":
        asyncio.run(asynchronously())
