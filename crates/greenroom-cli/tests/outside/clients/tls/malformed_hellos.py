"""Malformed first messages: their records, and their fields."""

import os

from malformed_kit import *

# The first message: its records.


@case({"hello"})
def hello_in_records_of_a_byte():
    return send_raw(b"".join(record(bytes([byte])) for byte in client_hello()))


@case({"hello"})
def hello_byte_by_byte():
    return send_raw(*(bytes([byte]) for byte in record(client_hello())))


@case({"hello"})
def hello_cut_within_its_head():
    hello = client_hello()
    return send_raw(record(hello[:2]), record(hello[2:]))


@case(alerts(UNEXPECTED, DECODE))
def empty_record_first():
    return send_raw(record(b""), record(client_hello()))


@case(alerts(UNEXPECTED, DECODE))
def empty_record_between():
    hello = client_hello()
    return send_raw(record(hello[:9]), record(b""), record(hello[9:]))


@case({"hello", *alerts(VERSION, DECODE)})
def record_of_another_version():
    return send_raw(record(client_hello(), version=b"\x03\x04"))


@case(alerts(VERSION, DECODE, UNEXPECTED) | ENDED)
def record_of_no_version():
    return send_raw(record(client_hello(), version=b"\x05\x05"))


@case(alerts(OVERFLOW, DECODE))
def record_that_is_too_long():
    return send_raw(record(b"\1" * 18_433))


@case(alerts(OVERFLOW, DECODE))
def record_that_claims_to_be_too_long():
    return send_raw(record(b"\1" * 9, length=65_535))


@case(alerts(OVERFLOW, DECODE) | ENDED)
def message_that_claims_16_mb():
    return send_raw(record(b"\1\xff\xff\xff" + b"\0" * 100))


@case(alerts(DECODE, UNEXPECTED) | ENDED)
def message_of_60_kb():
    content = client_hello(more=[extension(0xFAFA, b"\0" * 60_000)])
    return send_raw(*(record(content[at : at + 16_384]) for at in range(0, len(content), 16_384)))


@case(alerts(UNEXPECTED, DECODE))
def record_of_unknown_type():
    return send_raw(record(client_hello(), typ=200))


@case(alerts(UNEXPECTED, DECODE))
def application_data_first():
    return send_raw(record(REQUEST, typ=DATA))


@case(alerts(UNEXPECTED, DECODE) | ENDED)
def alert_between():
    hello = client_hello()
    return send_raw(record(hello[:9]), record(b"\1\x5a", typ=ALERT), record(hello[9:]))


@case(alerts(UNEXPECTED, DECODE) | ENDED)
def flood_of_warnings():
    return send_raw(record(b"\1\x5a", typ=ALERT) * 10_000)


@case(alerts(UNEXPECTED, DECODE) | ENDED)
def flood_of_ccs():
    return send_raw(record(b"\1", typ=CCS) * 10_000)


@case(ENDED)
def fatal_alert_first():
    return send_raw(record(b"\2\x28", typ=ALERT))


@case(alerts(VERSION, DECODE, UNEXPECTED, NO_HANDSHAKE))
def hello_of_ssl_2():
    body = b"\1\0\2\0\6\0\0\0\x10\7\0\xc0\1\0\x80" + os.urandom(16)
    return send_raw(bytes([0x80, len(body)]) + body)


for typ in (0, 2, 4, 8, 11, 14, 15, 16, 20, 24, 99):
    hello_case(f"message_of_type_{typ}_first", alerts(UNEXPECTED, DECODE), typ=typ)

# The first message: its fields.

hello_case("hello_of_1_3", {"hello"})
hello_case("hello_of_1_2", {"hello"}, instead=[ONLY_12], without=[51, 45])
hello_case(
    "hello_without_extensions", alerts(NO_HANDSHAKE, MISSING, DECODE, ILLEGAL, VERSION), listed=b""
)
hello_case("hello_of_1_1", alerts(VERSION), version=b"\x03\x02", without=[43, 51, 45])
hello_case("hello_of_ssl_3", alerts(VERSION), version=b"\x03\x00", without=[43, 51, 45])
hello_case("no_suites", alerts(DECODE, ILLEGAL, NO_HANDSHAKE), suites=b"")
hello_case("half_a_suite", alerts(DECODE), suites=b"\x13\x01\x13")
hello_case("unknown_suites", alerts(NO_HANDSHAKE), suites=b"\x5a\x5a\xfe\xfe")
hello_case(
    "only_weak_suites", alerts(NO_HANDSHAKE), suites=b"\x00\x05\x00\x0a\x00\x2f\xc0\x09\xc0\x13"
)
hello_case("grease", {"hello"}, suites=b"\x5a\x5a\x13\x01", more=[extension(0x5A5A, b"\0")])
hello_case(
    "many_suites",
    {"hello"},
    suites=b"".join(b"\x7a" + bytes([n]) for n in range(256)) + b"\x13\x01",
)
hello_case("no_compression", alerts(DECODE, ILLEGAL), compressions=b"")
hello_case("deflate_only", alerts(DECODE, ILLEGAL), compressions=b"\1")
hello_case("deflate_too", {"hello", *alerts(ILLEGAL)}, compressions=b"\1\0")
hello_case("session_of_33_bytes", alerts(DECODE), session=b"\1" * 33)
hello_case("session_of_32_bytes", {"hello"}, session=b"\1" * 32)
hello_case("tail_behind_the_extensions", alerts(DECODE), tail=b"\0")
hello_case("extensions_cut_off", alerts(DECODE), listed=vector(2, extensions())[:-3])
hello_case("extensions_longer_than_the_message", alerts(DECODE), listed=b"\xff\xff" + extensions())
hello_case("extension_twice", alerts(DECODE, ILLEGAL), more=[ALGORITHMS])
hello_case(
    "five_hundred_extensions", {"hello"}, more=[extension(0x7000 + n, b"") for n in range(500)]
)
hello_case("an_extension_of_8_kb", {"hello"}, more=[extension(0x7000, b"\0" * 8_192)])
hello_case("padding_of_12_kb", {"hello"}, more=[extension(21, b"\0" * 12_000)])

IGNORED = {"hello"}
hello_case("no_server_name", IGNORED, without=[0])
hello_case(
    "server_name_list_empty", alerts(DECODE, ILLEGAL), instead=[extension(0, vector(2, b""))]
)
hello_case("server_name_empty", alerts(DECODE, ILLEGAL), instead=[server_name(b"")])
hello_case(
    "server_name_with_nul",
    IGNORED | alerts(DECODE, ILLEGAL, NO_NAME),
    instead=[server_name(b"a\0b.test")],
)
hello_case(
    "server_name_of_300_letters",
    IGNORED | alerts(DECODE, ILLEGAL, NO_NAME),
    instead=[server_name(b"a" * 300)],
)
hello_case(
    "server_name_is_an_address",
    IGNORED | alerts(DECODE, ILLEGAL),
    instead=[server_name(b"127.0.0.1")],
)
hello_case(
    "server_name_twice",
    alerts(DECODE, ILLEGAL),
    instead=[extension(0, vector(2, (b"\0" + vector(2, NAME)) * 2))],
)
hello_case("protocols_empty", alerts(DECODE, ILLEGAL), more=[extension(16, vector(2, b""))])
hello_case("protocol_of_no_letter", alerts(DECODE, ILLEGAL), more=[extension(16, vector(2, b"\0"))])
hello_case(
    "protocol_unknown_of_1_2",
    alerts(NO_ALPN),
    instead=[ONLY_12],
    without=[51, 45],
    more=[extension(16, vector(2, b"\6gopher"))],
)
hello_case("versions_empty", alerts(DECODE, VERSION, ILLEGAL), instead=[extension(43, b"\0")])
hello_case("versions_unknown", alerts(VERSION), instead=[extension(43, vector(1, b"\x03\x09"))])
hello_case(
    "versions_of_three_bytes",
    alerts(DECODE, VERSION),
    instead=[extension(43, vector(1, b"\x03\x04\x03"))],
)
hello_case("no_groups", alerts(MISSING, NO_HANDSHAKE, ILLEGAL, DECODE), without=[10])
hello_case(
    "groups_unknown", alerts(NO_HANDSHAKE, ILLEGAL), instead=[extension(10, vector(2, b"\x5a\x5a"))]
)
hello_case("no_algorithms", alerts(MISSING, NO_HANDSHAKE, DECODE), without=[13])
# Of 1.3 the alert would come encrypted, behind a ServerHello.
hello_case(
    "algorithms_unknown_of_1_2",
    alerts(NO_HANDSHAKE),
    instead=[ONLY_12, extension(13, vector(2, b"\x5a\x5a"))],
    without=[51, 45],
)
hello_case("no_shares", {"retry"}, instead=[extension(51, vector(2, b""))])
hello_case("no_share_extension", alerts(MISSING, ILLEGAL, NO_HANDSHAKE) | {"hello"}, without=[51])
hello_case(
    "share_too_short",
    alerts(DECODE, ILLEGAL),
    instead=[share_extension(key_share(share=b"\1" * 31))],
)
hello_case("share_empty", alerts(DECODE, ILLEGAL), instead=[share_extension(key_share(share=b""))])
hello_case(
    "share_of_zeros",
    alerts(ILLEGAL, NO_HANDSHAKE),
    instead=[share_extension(key_share(share=b"\0" * 32))],
)
hello_case(
    "share_off_the_curve",
    alerts(ILLEGAL),
    instead=[
        share_extension(key_share(0x17, b"\4" + b"\1" * 64)),
        extension(10, vector(2, b"\0\x17")),
    ],
)
hello_case(
    "share_twice", alerts(ILLEGAL, DECODE), instead=[share_extension(key_share(), key_share())]
)
hello_case(
    "psk_not_last",
    alerts(ILLEGAL, DECODE),
    more=[
        extension(41, vector(2, vector(2, b"a") + b"\0" * 4) + vector(2, vector(1, b"b" * 32))),
        extension(0x7000, b""),
    ],
)
hello_case(
    "psk_unknown",
    {"hello"},
    more=[
        extension(
            41, vector(2, vector(2, b"a" * 200) + b"\0" * 4) + vector(2, vector(1, b"b" * 32))
        )
    ],
)
hello_case(
    "psk_with_a_binder_too_few",
    alerts(ILLEGAL, DECODE),
    more=[
        extension(
            41, vector(2, (vector(2, b"a") + b"\0" * 4) * 2) + vector(2, vector(1, b"b" * 32))
        )
    ],
)
hello_case(
    "psk_empty", alerts(DECODE, ILLEGAL), more=[extension(41, vector(2, b"") + vector(2, b""))]
)
hello_case(
    "ticket_of_garbage_of_1_2",
    {"hello"},
    instead=[ONLY_12],
    without=[51, 45],
    more=[extension(35, os.urandom(2_000))],
)
hello_case("early_data_without_psk", {"hello"} | alerts(ILLEGAL), more=[extension(42, b"")])
hello_case("heartbeat_offered", {"hello"}, more=[extension(15, b"\1")])


@case(alerts(ILLEGAL, UNEXPECTED, DECODE))
def retry_is_not_obeyed():
    with connect() as connection:
        hello = client_hello(instead=[extension(51, vector(2, b""))])
        connection.sendall(record(hello))
        if outcome(connection) != "retry":
            return "no retry"
        connection.sendall(record(client_hello(instead=[extension(51, vector(2, b""))])))
        return outcome(connection)
