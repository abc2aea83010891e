"""Requests over HTTP/3 by aioquic. No HEAD: it takes a response to one for cut short.

Usage: aioquic_client.py PORT ROOT NAME. Prints a line for each step; fails by an exception.
"""

import asyncio
import hashlib
import json
import sys

from aioquic.asyncio.client import connect
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.h3.connection import H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ConnectionTerminated

BODY_BYTES = 1_000_000
# At the edges of windows and packets.
SIZES = [0, 1, 1_200, 65_536, 262_144, 262_145, 3_000_000]


class Client(QuicConnectionProtocol):
    """One connection, and the responses that have not ended."""

    def __init__(self, *arguments, **more):
        super().__init__(*arguments, **more)
        self.http = H3Connection(self._quic)
        self.name = b""
        self.responses = {}

    async def ask(self, method, path, body=b"", fields=()):
        stream = self._quic.get_next_available_stream_id()
        head = [
            (b":method", method.encode()),
            (b":scheme", b"https"),
            (b":authority", self.name),
            (b":path", path.encode()),
            *fields,
        ]
        ended = self._loop.create_future()
        self.responses[stream] = ([], bytearray(), ended)
        self.http.send_headers(stream, head, end_stream=not body)
        if body:
            self.http.send_data(stream, body, end_stream=True)
        self.transmit()
        return await ended

    def quic_event_received(self, event):
        if isinstance(event, ConnectionTerminated):
            for _, _, ended in self.responses.values():
                if not ended.done():
                    ended.set_exception(ConnectionError(event.reason_phrase))
        for http_event in self.http.handle_event(event):
            head, body, ended = self.responses[http_event.stream_id]
            if isinstance(http_event, HeadersReceived):
                head.extend(http_event.headers)
            elif isinstance(http_event, DataReceived):
                body.extend(http_event.data)
            if http_event.stream_ended:
                ended.set_result((dict(head), bytes(body)))


async def main(port, root, name):
    configuration = QuicConfiguration(is_client=True, alpn_protocols=["h3"], server_name=name)
    configuration.load_verify_locations(root)
    connecting = connect(
        "127.0.0.1", port, configuration=configuration, create_protocol=Client
    )
    async with connecting as client:
        client.name = f"{name}:{port}".encode()
        head, body = await client.ask("GET", "/hello")
        assert head[b":status"] == b"200" and b"date" in head, head
        assert b"alt-svc" not in head, head
        assert body == b"Hello, world!\n", body
        print("hello", flush=True)

        sent = bytes(index % 251 for index in range(BODY_BYTES))
        head, body = await client.ask("POST", "/upload", sent)
        assert head[b":status"] == b"200", (head, body)
        receipt = json.loads(body)
        assert receipt["sha256"] == hashlib.sha256(sent).hexdigest(), receipt
        print("upload", flush=True)

        for size in SIZES:
            head, body = await client.ask("GET", f"/bytes/{size}")
            assert len(body) == size, (size, len(body))
        print("bytes", flush=True)

        # A handler that holds its thread holds up no other stream of its connection.
        slow = asyncio.ensure_future(client.ask("GET", "/block/10000"))
        for _ in range(20):
            head, body = await client.ask("GET", "/hello")
            assert body == b"Hello, world!\n", body
        assert not slow.done(), "the others came after it"
        print("beside", flush=True)

        many = [client.ask("GET", f"/bytes/{size}") for size in range(200)]
        bodies = [len(body) for _, body in await asyncio.gather(*many)]
        assert bodies == list(range(200)), bodies
        print("many", flush=True)

        head, _ = await client.ask("GET", "/" + "a" * 9_000)
        assert head[b":status"] == b"414", head
        many_fields = [(f"field-{number}".encode(), b"1") for number in range(101)]
        head, _ = await client.ask("GET", "/hello", fields=many_fields)
        assert head[b":status"] == b"431", head
        client.change_connection_id()
        client.request_key_update()
        head, body = await client.ask("GET", "/hello")
        assert body == b"Hello, world!\n", body
        print("limits", flush=True)

        head, _ = await slow
        assert head[b":status"] == b"200", head
        # The server leaves meanwhile, and finishes what was asked before.
        late = asyncio.ensure_future(client.ask("GET", "/block/3000"))
        await client.ask("GET", "/hello")
        print("waiting", flush=True)
        head, _ = await late
        assert head[b":status"] == b"200", head
        await client.wait_closed()
        print("closed", flush=True)


asyncio.run(main(int(sys.argv[1]), sys.argv[2], sys.argv[3]))
