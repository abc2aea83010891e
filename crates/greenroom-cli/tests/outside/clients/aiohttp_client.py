"""Python's aiohttp: a session's keep-alive, uploads with a length and in chunks, refused bodies, and
many requests at once over as many connections."""

import asyncio
import sys

import aiohttp

from expect import BODY_BYTES_MAX, DOWNLOAD_BYTES, HELLO, UPLOAD_SIZES, body, download, equal, pieces, receipt

BASE = sys.argv[1]
PARALLEL = 100
ROUNDS = 10

connections = 0


async def count(*_):
    global connections
    connections += 1


async def stream(data):
    for piece in pieces(data):
        yield piece


async def ask(session, method, path, data=None):
    async with session.request(method, f"{BASE}{path}", data=data) as response:
        return response.status, response.headers, await response.read()


async def keep_alive(session):
    status, _, content = await ask(session, "GET", "/hello")
    equal("/hello", (status, content), (200, HELLO))
    status, headers, content = await ask(session, "HEAD", "/hello")
    equal("HEAD", (status, headers["content-length"], content), (200, str(len(HELLO)), b""))
    status, _, content = await ask(session, "GET", f"/bytes/{DOWNLOAD_BYTES}")
    equal("/bytes", (status, content), (200, download()))
    status, _, _ = await ask(session, "GET", "/nothing")
    equal("/nothing", status, 404)
    for size in UPLOAD_SIZES:
        sent = body(size)
        status, _, content = await ask(session, "POST", "/upload", sent)
        receipt(f"upload of {size}", sent, status, content)
    sent = body(1024 * 1024)
    status, _, content = await ask(session, "POST", "/upload", stream(sent))
    receipt("upload in chunks", sent, status, content)
    equal("connections", connections, 1)


async def refused(session):
    sent = body(BODY_BYTES_MAX + 1)
    status, _, _ = await ask(session, "POST", "/upload", sent)
    equal("upload over the limit", status, 413)
    status, _, _ = await ask(session, "POST", "/upload", stream(sent))
    equal("upload in chunks over the limit", status, 413)


async def many_at_once(session):
    before = connections
    for _ in range(ROUNDS):
        responses = await asyncio.gather(*(ask(session, "GET", "/hello") for _ in range(PARALLEL)))
        for status, _, content in responses:
            equal("/hello among many", (status, content), (200, HELLO))
    equal("no more connections than requests at once", connections - before <= PARALLEL, True)


async def main():
    trace = aiohttp.TraceConfig()
    trace.on_connection_create_end.append(count)
    timeout = aiohttp.ClientTimeout(total=20)
    async with aiohttp.ClientSession(trace_configs=[trace], timeout=timeout) as session:
        await keep_alive(session)
        await refused(session)
        await many_at_once(session)


asyncio.run(main())
