"""WebSocket clients and servers, each of which uses its connection from one thread only.

`websockets.sync` reads a connection in one thread and writes it in another. OpenSSL forbids that for
a TLS session: about one opening handshake in a thousand is then never answered, whatever is at the
other end.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import threading
from collections.abc import Awaitable, Callable, Iterator

from websockets.asyncio.client import connect
from websockets.asyncio.server import ServerConnection, serve

Handler = Callable[[ServerConnection], Awaitable[None]]


async def echo(connection: ServerConnection) -> None:
    async for message in connection:
        await connection.send(message)


@contextlib.contextmanager
def serving(handler: Handler = echo, tls: ssl.SSLContext | None = None) -> Iterator[int]:
    """A server on a loopback port, which is what it yields."""
    loop = asyncio.new_event_loop()
    server = loop.run_until_complete(_served(handler, tls))
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield next(iter(server.sockets)).getsockname()[1]
    finally:
        asyncio.run_coroutine_threadsafe(_closed(server), loop).result(20)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _served(handler: Handler, tls: ssl.SSLContext | None):
    return await serve(handler, "127.0.0.1", 0, ssl=tls, max_size=None)


async def _closed(server) -> None:
    server.close()
    await server.wait_closed()


def converse(url: str, *messages: str | bytes, **options: object) -> None:
    """Opens a connection to a server that echoes, has each message sent back, and closes.

    The options are those of `websockets.asyncio.client.connect`.
    """
    async def exchange() -> None:
        async with connect(url, max_size=None, **options) as connection:
            for message in messages:
                await connection.send(message)
                assert await asyncio.wait_for(connection.recv(), 20) == message
            await asyncio.wait_for(await connection.ping(), 10)

    asyncio.run(exchange())
