"""`client.py requests|httpx|httpx-async BASE FILE STEP...`: what `support/programs.py` describes,
with one client of the library. Proxy and authority come from the environment."""

import asyncio
import hashlib
import os
import ssl
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


PROOF = {"Proxy-Authorization": f"Bearer {os.environ.get('PROXY_TOKEN')}"}


def context_for_proxy() -> ssl.SSLContext | None:
    if "PROXY_CERTIFICATE" not in os.environ:
        return None
    roots = os.environ.get("SSL_CERT_FILE") or os.environ.get("REQUESTS_CA_BUNDLE")
    context = ssl.create_default_context(cafile=roots)
    context.load_cert_chain(os.environ["PROXY_CERTIFICATE"])
    return context


class ProvingAdapter(requests.adapters.HTTPAdapter):
    """Proves to the proxy who is asking."""

    def proxy_headers(self, proxy: str) -> dict[str, str]:
        return super().proxy_headers(proxy) | (PROOF if "PROXY_TOKEN" in os.environ else {})

    def proxy_manager_for(self, proxy: str, **options: object):
        return super().proxy_manager_for(proxy, proxy_ssl_context=context_for_proxy(), **options)


def settings() -> dict:
    headers = PROOF if "PROXY_TOKEN" in os.environ else None
    context = context_for_proxy()
    if not headers and not context:
        return {}
    return {"proxy": httpx.Proxy(os.environ["http_proxy"], headers=headers, ssl_context=context)}


async def asynchronously() -> None:
    async with httpx.AsyncClient(**settings()) as client:
        for method, url, data in steps():
            answer = await client.request(method, url, content=data)
            report(answer.status_code, answer.content)


match sys.argv[1]:
    case "requests":
        with requests.Session() as session:
            for scheme in ("http://", "https://"):
                session.mount(scheme, ProvingAdapter())
            for method, url, data in steps():
                answer = session.request(method, url, data=data)
                report(answer.status_code, answer.content)
    case "httpx":
        with httpx.Client(**settings()) as client:
            for method, url, data in steps():
                answer = client.request(method, url, content=data)
                report(answer.status_code, answer.content)
    case "httpx-async":
        asyncio.run(asynchronously())
