"""Malformed and hostile TLS, by tlslite-ng: each case with the ends that are right for it.

A case returns what became of its connection: "alert N" for a fatal alert, "warning N", "closed" for
an end without one, "reset", "hello" for a ServerHello, "retry" for a HelloRetryRequest, "served"
for a response, or "silence". Usage: malformed.py HOST PORT
"""

import sys

import malformed_hellos  # its cases
from malformed_kit import *
from tlslite.api import HandshakeSettings, TLSConnection
from tlslite.constants import ContentType, HandshakeType
from tlslite.errors import (
    TLSAbruptCloseError,
    TLSClosedConnectionError,
    TLSLocalAlert,
    TLSRemoteAlert,
)
from tlslite.messages import Message

# Handshakes and what follows, of a client that sends other messages than it should.


class Client(TLSConnection):
    """`tamper(message)` returns what is sent in place of a message of the handshake."""

    tamper = None

    def _sendMsg(self, msg, randomizeFirstBlock=True, update_hashes=True):
        if not self.tamper or msg.contentType == ContentType.alert:
            yield from super()._sendMsg(msg, randomizeFirstBlock, update_hashes)
            return
        if update_hashes and msg.contentType == ContentType.handshake:
            self._handshake_hash.update(msg.write())
        for other in self.tamper(msg):
            yield from self._recordLayer.sendRecord(other)

    def put(self, typ, content):
        for _ in self._recordLayer.sendRecord(Message(typ, bytearray(content))):
            pass

    def close_socket(self):
        self.sock.close()


def shake(version=TLS13, tamper=None, session=None, alpn=None):
    client = Client(connect())
    client.closeSocket = False
    settings = HandshakeSettings()
    settings.minVersion = settings.maxVersion = version
    client.tamper = tamper
    client.handshakeClientCert(
        settings=settings, serverName=NAME.decode(), session=session, alpn=alpn
    )
    return client


def alert_of(error):
    level = "warning" if error.level == 1 else "alert"
    return f"{level} {error.description}"


def told(act):
    """What became of the connection on which `act` runs."""
    try:
        return act()
    except TLSRemoteAlert as error:
        return alert_of(error)
    except (TLSAbruptCloseError, TLSClosedConnectionError):
        return "closed"
    except TLSLocalAlert as error:
        return f"local alert {error}"
    except TimeoutError:
        return "silence"
    except ConnectionError:
        return "reset"


def get(client):
    client.tamper = None
    client.write(REQUEST)
    content = b""
    while not content.endswith(HELLO):
        part = client.read(max=4_096)
        if not part:
            return "closed"
        content += part
    return "served"


def shake_case(name, expected, tamper, version=TLS13):
    cases.append((name, expected, lambda: told(lambda: get(shake(version, tamper)))))


def open_case(name, expected, act, version=TLS13):
    """`act` is what an open connection is used for, before it is asked for a response."""

    def used():
        client = shake(version)
        act(client)
        return get(client)

    def run():
        return told(used)

    cases.append((name, expected, run))


def is_finished(msg):
    return msg.contentType == ContentType.handshake and msg.write()[0] == HandshakeType.finished


def at_finished(change):
    return lambda msg: change(bytes(msg.write())) if is_finished(msg) else [msg]


def message(content, typ=HANDSHAKE):
    return Message(typ, bytearray(content))


for version, named in ((TLS12, "1_2"), (TLS13, "1_3")):
    shake_case(f"handshake_of_{named}", {"served"}, None, version)
    shake_case(
        f"finished_is_wrong_{named}",
        alerts(DECRYPT),
        at_finished(lambda f: [message(f[:-1] + bytes([f[-1] ^ 1]))]),
        version,
    )
    shake_case(
        f"finished_is_cut_{named}",
        alerts(DECRYPT, DECODE),
        at_finished(lambda f: [message(f[:1] + vector(3, f[4:-1]))]),
        version,
    )
    shake_case(
        f"finished_is_empty_{named}",
        alerts(DECRYPT, DECODE),
        at_finished(lambda f: [message(f[:1] + vector(3, b""))]),
        version,
    )
    shake_case(
        f"finished_in_bytes_{named}",
        {"served"},
        at_finished(lambda f: [message(f[n : n + 1]) for n in range(len(f))]),
        version,
    )
    # The second of 1.3 is of keys that have gone.
    shake_case(
        f"finished_twice_{named}",
        alerts(UNEXPECTED, BAD_MAC),
        at_finished(lambda f: [message(f), message(f)]),
        version,
    )
    shake_case(
        f"data_before_finished_{named}",
        alerts(UNEXPECTED),
        at_finished(lambda f: [message(REQUEST, DATA), message(f)]),
        version,
    )
    shake_case(
        f"hello_in_place_of_finished_{named}",
        alerts(UNEXPECTED, DECODE),
        at_finished(lambda f: [message(client_hello())]),
        version,
    )
    shake_case(
        f"nothing_but_a_fatal_alert_{named}",
        ENDED,
        at_finished(lambda f: [message(b"\2\x50", ALERT)]),
        version,
    )
    shake_case(
        f"data_within_finished_{named}",
        alerts(UNEXPECTED) | WITHOUT_ALERT,
        at_finished(lambda f: [message(f[:7]), message(REQUEST, DATA), message(f[7:])]),
        version,
    )

shake_case(
    "finished_with_a_tail_1_3",
    alerts(UNEXPECTED, DECODE),
    at_finished(lambda f: [message(f + b"\x18")]),
)
shake_case(
    "flood_of_ccs_1_3",
    alerts(UNEXPECTED) | ENDED,
    at_finished(lambda f: [message(b"\1", CCS)] * 1_000 + [message(f)]),
)
shake_case(
    "ccs_of_another_value_1_3",
    alerts(UNEXPECTED, DECODE),
    at_finished(lambda f: [message(b"\2", CCS), message(f)]),
)
shake_case(
    "no_ccs_1_2",
    alerts(UNEXPECTED, DECODE, BAD_MAC) | WITHOUT_ALERT,
    lambda msg: [] if msg.contentType == CCS else [msg],
    TLS12,
)
shake_case(
    "ccs_twice_1_2",
    alerts(UNEXPECTED, BAD_MAC, DECODE),
    lambda msg: [msg, msg] if msg.contentType == CCS else [msg],
    TLS12,
)
shake_case(
    "key_exchange_is_empty_1_2",
    alerts(DECODE, ILLEGAL, NO_HANDSHAKE) | WITHOUT_ALERT,
    lambda msg: (
        [message(b"\x10\0\0\0")] if msg.contentType == HANDSHAKE and msg.write()[0] == 16 else [msg]
    ),
    TLS12,
)
shake_case(
    "key_exchange_off_the_curve_1_2",
    alerts(DECODE, ILLEGAL, NO_HANDSHAKE, DECRYPT),
    lambda msg: (
        [message(b"\x10" + vector(3, vector(1, b"\4" + b"\1" * 64)))]
        if msg.contentType == HANDSHAKE and msg.write()[0] == 16
        else [msg]
    ),
    TLS12,
)


def repeat(count, typ, content):
    def act(client):
        for _ in range(count):
            client.put(typ, content)

    return act


def update_keys(client, kind=0):
    for _ in client.send_keyupdate_request(kind):
        pass


def updates(count, kind):
    def act(client):
        for _ in range(count):
            update_keys(client, kind)

    return act


def updates_and_requests(client):
    for number in range(50):
        update_keys(client, number % 2)
        if get(client) != "served":
            raise ConnectionError


def cut_update(client):
    """A message for new keys in two records, which is none yet."""
    client.put(HANDSHAKE, b"\x18\0")
    client.put(DATA, REQUEST)


def too_long(client):
    client.put(DATA, b"a" * 16_385)


def spoilt(client):
    """A record whose tag is wrong."""
    layer = client._recordLayer
    seal = layer._encryptThenSeal
    layer._encryptThenSeal = lambda buf, typ: (
        lambda sealed: sealed[:-1] + bytearray([sealed[-1] ^ 1])
    )(seal(buf, typ))
    client.put(DATA, REQUEST)
    layer._encryptThenSeal = seal


for version, named in ((TLS12, "1_2"), (TLS13, "1_3")):
    open_case(f"empty_data_{named}", {"served"}, repeat(20, DATA, b""), version)
    open_case(
        f"flood_of_empty_data_{named}",
        alerts(UNEXPECTED) | ENDED,
        repeat(2_000, DATA, b""),
        version,
    )
    open_case(f"a_record_is_spoilt_{named}", alerts(BAD_MAC), spoilt, version)
    open_case(f"data_too_long_{named}", alerts(OVERFLOW), too_long, version)
    open_case(
        f"record_of_unknown_type_{named}", alerts(UNEXPECTED, DECODE), repeat(1, 99, b"a"), version
    )
    open_case(
        f"heartbeat_{named}", alerts(UNEXPECTED, DECODE), repeat(1, 24, b"\1\xff\xff"), version
    )
    open_case(
        f"message_of_unknown_type_{named}",
        alerts(UNEXPECTED, DECODE),
        repeat(1, HANDSHAKE, b"\x63\0\0\0"),
        version,
    )
    open_case(
        f"half_an_alert_{named}", alerts(UNEXPECTED, DECODE), repeat(1, ALERT, b"\1"), version
    )
    open_case(f"fatal_alert_{named}", ENDED, repeat(1, ALERT, b"\2\x50"), version)
    open_case(
        f"alert_of_no_level_{named}",
        alerts(ILLEGAL, DECODE) | ENDED,
        repeat(1, ALERT, b"\7\x50"),
        version,
    )
    open_case(f"close_notify_{named}", {"warning 0", "closed"}, repeat(1, ALERT, b"\1\0"), version)

open_case(
    "flood_of_warnings_1_2", alerts(UNEXPECTED) | ENDED, repeat(1_000, ALERT, b"\1\x5a"), TLS12
)
open_case("user_canceled_1_3", {"served"}, repeat(1, ALERT, b"\1\x5a"))
open_case("warning_1_3", alerts(DECODE, UNEXPECTED, ILLEGAL), repeat(1, ALERT, b"\1\x64"))
open_case(
    "renegotiation_1_2",
    {"warning 100"},
    lambda client: client.put(HANDSHAKE, client_hello()),
    TLS12,
)
open_case(
    "renegotiation_1_3",
    alerts(UNEXPECTED, DECODE),
    lambda client: client.put(HANDSHAKE, client_hello()),
)
open_case("new_keys", {"served"}, updates(5, 0))
open_case("new_keys_of_both", {"served"}, updates_and_requests)
open_case("new_keys_of_no_kind", alerts(ILLEGAL, DECODE), updates(1, 2))
open_case("flood_of_new_keys", alerts(UNEXPECTED) | ENDED, updates(200, 0))
open_case("data_within_new_keys", alerts(UNEXPECTED) | WITHOUT_ALERT, cut_update)
open_case(
    "new_keys_with_a_tail",
    alerts(UNEXPECTED, DECODE),
    lambda client: client.put(HANDSHAKE, b"\x18\0\0\1\0\x18"),
)
open_case("ccs_behind_the_handshake", alerts(UNEXPECTED) | ENDED, repeat(1, CCS, b"\1"))


@case({"closed"})
def close_notify_gets_its_reply():
    client = shake()
    if get(client) != "served":
        return "no response"
    client.closeSocket = True
    # It waits for the server's, and is an error without.
    client.ignoreAbruptClose = False
    return told(lambda: client.close() or "closed")


@case({"served"})
def spoilt_ticket_is_passed_over():
    client = shake()
    get(client)
    session = client.session
    for ticket in session.tickets or []:
        ticket.ticket = bytearray(ticket.ticket[:-1]) + bytearray([ticket.ticket[-1] ^ 1])
    again = shake(session=session)
    return told(lambda: get(again)) if not again.resumed else "resumed"


def main():
    only = sys.argv[3:]
    failed = 0
    for name, expected, run in cases:
        if only and name not in only:
            continue
        try:
            found = run()
        except Exception as error:
            found = f"{type(error).__name__}: {error}"
        is_right = found in expected
        failed += not is_right
        print(
            f"{'ok' if is_right else 'FAILED'} {name}: {found}",
            "" if is_right else f"instead of {sorted(expected)}",
        )
    print(f"{len(cases)} cases, {failed} failed")
    sys.exit(failed > 0)


main()
