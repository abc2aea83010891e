//! Any split of the input is read as the whole is (RFC 9112, 2.2: a message is a sequence of
//! octets, however the transport delivers them).

use greenroom_http::Limits;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use crate::driver::{Ending, assert_same_in_pieces, run};

const HEADS: &[&str] = &[
    "GET / HTTP/1.1\r\nHost: a\r\n",
    "GET /caf\u{e9}?q=\u{442} HTTP/1.1\r\nHost: a\r\n",
    "HEAD /h?x=1 HTTP/1.1\r\nHost: example.org:80\r\nAccept: */*\r\n",
    "POST http://a/b HTTP/1.1\r\nHost: a\r\nX-Empty:\r\n",
    "OPTIONS * HTTP/1.1\r\nHost: a\r\nTE: trailers\r\n",
    "PUT /p HTTP/1.0\r\nConnection: keep-alive\r\n",
    "\r\nDELETE /d HTTP/1.1\r\nHost: [::1]:5000\r\n",
    "PRI * HTTP/2.0\r\n\r\nSM\r\n",
    "GET / HTTP/1.2\r\nHost: a\r\n",
    "GET / HTTP/3.0\r\nHost: a\r\n",
    "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n",
];

const BODIES: &[&str] = &[
    "\r\n",
    "Content-Length: 0\r\n\r\n",
    "Content-Length: 5\r\n\r\nhello",
    "Expect: 100-continue\r\nContent-Length: 12\r\n\r\nGET / HTTP/1",
    "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0a;n=\"v\\\"\"\r\n0123456789\r\n0\r\n\r\n",
    "Transfer-Encoding: chunked\r\n\r\n1;a;b=c\r\nx\r\n000\r\nX-Sum: 1\r\nX-Two: 2\r\n\r\n",
    "Transfer-Encoding: chunked\r\n\r\n2\r\nxx\r\n0\r\nContent-Length: 1\r\n\r\n",
    "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
];

#[derive(Clone, Debug)]
enum Damage {
    None,
    Replace(Index, u8),
    Remove(Index),
    Insert(Index, u8),
}

fn damage() -> impl Strategy<Value = Damage> {
    let byte = || prop_oneof![select(b"\r\n \t:;=\0\x7f\x80,0fH/".to_vec()), any::<u8>()];
    prop_oneof![
        2 => Just(Damage::None),
        1 => (any::<Index>(), byte()).prop_map(|(at, byte)| Damage::Replace(at, byte)),
        1 => any::<Index>().prop_map(Damage::Remove),
        1 => (any::<Index>(), byte()).prop_map(|(at, byte)| Damage::Insert(at, byte)),
    ]
}

fn message() -> impl Strategy<Value = Vec<u8>> {
    (select(HEADS), select(BODIES), damage()).prop_map(|(head, body, damage)| {
        let mut bytes = [head.as_bytes(), body.as_bytes()].concat();
        match damage {
            Damage::None => {}
            Damage::Replace(at, byte) => bytes[at.index(head.len() + body.len())] = byte,
            Damage::Remove(at) => {
                bytes.remove(at.index(head.len() + body.len()));
            }
            Damage::Insert(at, byte) => bytes.insert(at.index(head.len() + body.len()), byte),
        }
        bytes
    })
}

fn stream() -> impl Strategy<Value = Vec<u8>> {
    vec(message(), 1..6).prop_map(|messages| messages.concat())
}

fn limits() -> impl Strategy<Value = Limits> {
    let narrow = Limits {
        head_bytes_max: 96,
        fields_max: 3,
        target_bytes_max: 8,
        chunk_line_bytes_max: 8,
        chunk_extension_bytes_max: 6,
    };
    prop_oneof![4 => Just(Limits::default()), 1 => Just(narrow)]
}

fn cut(mut whole: &[u8], mut at: Vec<Index>) -> Vec<&[u8]> {
    let mut ends: Vec<usize> = at.drain(..).map(|index| index.index(whole.len())).collect();
    ends.sort_unstable();
    let mut pieces = Vec::with_capacity(ends.len() + 1);
    let mut from = 0;
    for end in ends {
        let (piece, rest) = whole.split_at(end - from);
        pieces.push(piece);
        whole = rest;
        from = end;
    }
    pieces.push(whole);
    pieces
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn rfc9112_2_2_any_split_is_read_as_the_whole(
        whole in stream(), at in vec(any::<Index>(), 1..12), limits in limits(),
    ) {
        assert_same_in_pieces(&whole, &cut(&whole, at), limits);
    }

    #[test]
    fn rfc9112_2_2_byte_by_byte_is_read_as_the_whole(whole in stream(), limits in limits()) {
        let bytes: Vec<&[u8]> = whole.chunks(1).collect();
        assert_same_in_pieces(&whole, &bytes, limits);
    }

    #[test]
    fn rfc9112_2_2_noise_in_any_split_is_read_as_the_whole(
        whole in vec(any::<u8>(), 1..200), at in vec(any::<Index>(), 1..12), limits in limits(),
    ) {
        assert_same_in_pieces(&whole, &cut(&whole, at), limits);
    }
}

#[test]
fn rfc9112_2_2_a_head_of_64_kib_may_come_byte_by_byte() {
    let limits = Limits::default();
    let mut head = b"GET / HTTP/1.1\r\nHost: a\r\nX: ".to_vec();
    head.resize(limits.head_bytes_max - 4, b'x');
    head.extend_from_slice(b"\r\n\r\n");
    assert_eq!(head.len(), 65_536);

    let transcript = run(head.chunks(1), limits);

    assert_eq!(transcript.ending, Ending::Waiting);
    assert_eq!(transcript.messages.len(), 1);
    assert_eq!(transcript.messages[0].fields["x"].len(), 65_536 - 32);
}

#[test]
fn rfc9112_7_1_2_a_trailer_section_of_64_kib_may_come_byte_by_byte() {
    let limits = Limits::default();
    let head = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n";
    let mut trailers = b"X: ".to_vec();
    trailers.resize(limits.head_bytes_max - 4, b'x');
    trailers.extend_from_slice(b"\r\n\r\n");

    let input = [&head[..], &trailers].concat();
    let transcript = run(input.chunks(1), limits);

    assert_eq!(transcript.messages.len(), 1);
    assert!(transcript.messages[0].complete);
}
