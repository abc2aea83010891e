"""Bytes of first messages, connections of a socket, and the cases that are made of them."""

import os
import socket
import struct
import sys

ADDRESS = (sys.argv[1], int(sys.argv[2]))
PATIENCE = 60
NAME = b"localhost"
REQUEST = b"GET /hello HTTP/1.1\r\nHost: a\r\n\r\n"
HELLO = b"Hello, world!\n"
HANDSHAKE, ALERT, CCS, DATA = 22, 21, 20, 23
SERVER_HELLO = 2
RETRY = bytes.fromhex("cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c")
TLS12, TLS13 = (3, 3), (3, 4)

UNEXPECTED, BAD_MAC, OVERFLOW, ILLEGAL, DECODE, DECRYPT = 10, 20, 22, 47, 50, 51
NO_HANDSHAKE, VERSION, NO_NAME, NO_ALPN, MISSING = 40, 70, 112, 120, 109


def alerts(*numbers):
    return {f"alert {number}" for number in numbers}


# A connection that is ended: how, a client need not learn.
ENDED = {"closed", "reset"}
# An alert is due, and rustls ends the connection without one: for records of another kind within a
# message of the handshake (RFC 8446, 5.1), and for messages of 1.2 that it does not expect.
WITHOUT_ALERT = ENDED
cases = []


def case(expected):
    def add(function):
        cases.append((function.__name__, expected, function))
        return function

    return add


def hello_case(name, expected, **changes):
    cases.append((name, expected, lambda: greet(client_hello(**changes))))


# Bytes.


def vector(size, content):
    return len(content).to_bytes(size, "big") + content


def extension(number, content):
    return struct.pack(">H", number) + vector(2, content)


def server_name(name=NAME):
    return extension(0, vector(2, b"\0" + vector(2, name)))


def key_share(group=0x001D, share=None):
    share = os.urandom(32) if share is None else share
    return struct.pack(">H", group) + vector(2, share)


GROUPS = extension(10, vector(2, b"\x00\x1d\x00\x17\x00\x18"))
POINTS = extension(11, vector(1, b"\0"))
ALGORITHMS = extension(13, vector(2, b"\x04\x03\x08\x04\x04\x01\x05\x03\x08\x05"))
VERSIONS = extension(43, vector(1, b"\x03\x04\x03\x03"))
ONLY_12 = extension(43, vector(1, b"\x03\x03"))
MASTER_SECRET = extension(23, b"")
MODES = extension(45, vector(1, b"\x01"))


def share_extension(*shares):
    return extension(51, vector(2, b"".join(shares or (key_share(),))))


def extensions(*more, without=(), instead=()):
    all_of_them = [
        server_name(),
        GROUPS,
        POINTS,
        ALGORITHMS,
        VERSIONS,
        MASTER_SECRET,
        MODES,
        share_extension(),
    ]
    replaced = [int.from_bytes(one[:2], "big") for one in instead]
    kept = [
        one for one in all_of_them if int.from_bytes(one[:2], "big") not in {*without, *replaced}
    ]
    return b"".join([*kept, *instead, *more])


def client_hello(
    version=b"\x03\x03",
    session=b"",
    suites=b"\x13\x01\x13\x02\xc0\x2b\xc0\x2c",
    compressions=b"\0",
    more=(),
    without=(),
    instead=(),
    listed=None,
    tail=b"",
    typ=1,
):
    listed = (
        vector(2, extensions(*more, without=without, instead=instead)) if listed is None else listed
    )
    body = version + os.urandom(32) + vector(1, session) + vector(2, suites)
    body += vector(1, compressions) + listed + tail
    return bytes([typ]) + vector(3, body)


def record(content, typ=HANDSHAKE, version=b"\x03\x01", length=None):
    length = len(content) if length is None else length
    return bytes([typ]) + version + length.to_bytes(2, "big") + content


# Connections.


def connect():
    connection = socket.create_connection(ADDRESS, PATIENCE)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def take(connection, length):
    content = b""
    while len(content) < length:
        part = connection.recv(length - len(content))
        if not part:
            raise EOFError
        content += part
    return content


def outcome(connection):
    """What the server responds to a first message."""
    try:
        while True:
            typ, _, length = struct.unpack(">BHH", take(connection, 5))
            content = take(connection, length)
            if typ == ALERT and content[0] == 2:
                return f"alert {content[1]}"
            if typ == HANDSHAKE and content[0] == SERVER_HELLO:
                return "retry" if content[6:38] == RETRY else "hello"
    except EOFError:
        return "closed"
    except ConnectionError:
        return "reset"
    except TimeoutError:
        return "silence"


def send_raw(*parts):
    with connect() as connection:
        try:
            for part in parts:
                connection.sendall(part)
        except ConnectionError:
            pass
        return outcome(connection)


def greet(message):
    return send_raw(record(message))
