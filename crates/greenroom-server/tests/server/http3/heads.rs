use bytes::Bytes;
use greenroom_server::Limits;
use h3::error::Code;
use http::{HeaderName, HeaderValue, Request};
use tokio::time::Instant;

use super::rig::{Rig, uri};
use super::{SECOND, handler};
use crate::rig::{app, assert_elapsed, local, measure, settle, within};

#[tokio::test]
async fn a_head_beyond_a_limit_is_refused_and_the_connection_goes_on() {
    within(async {
        let server = Rig::start(app(handler));
        let client = server.connect().await;
        let long = format!("/{}", "a".repeat(8_192));
        assert_eq!(client.get(&long).await.0, 414);
        let mut many = Request::get(uri("/")).body(Bytes::new()).unwrap();
        for number in 0..101 {
            let name = HeaderName::try_from(format!("field-{number}")).unwrap();
            many.headers_mut().insert(name, HeaderValue::from(number));
        }
        assert_eq!(client.ask(many).await.head.status(), 431);
        assert_eq!(client.get("/still").await.1, "/still");
    })
    .await;
}

/// The frame of a head with one more field, as h3's client would not send it.
fn head_frame(name: &str, value: &[u8]) -> Vec<u8> {
    // :method GET, :scheme https, :path /, :authority a (RFC 9204, 4.5 and appendix A).
    let mut section = vec![0, 0, 0xd1, 0xd7, 0xc1, 0x50, 1, b'a'];
    // Literals, as they are.
    number(name.len(), 3, 0x20, &mut section);
    section.extend(name.as_bytes());
    number(value.len(), 7, 0, &mut section);
    section.extend(value);
    let length = u32::try_from(section.len()).unwrap() | 0x8000_0000;
    [&[1][..], &length.to_be_bytes(), &section].concat()
}

/// Appends a number with a prefix of so many bits (RFC 7541, 5.1).
fn number(value: usize, bits: u32, first: u8, section: &mut Vec<u8>) {
    let most = (1 << bits) - 1;
    let Some(mut rest) = value.checked_sub(most) else {
        return section.push(first | u8::try_from(value).unwrap());
    };
    section.push(first | u8::try_from(most).unwrap());
    while rest >= 128 {
        section.push(u8::try_from(rest % 128).unwrap() | 128);
        rest /= 128;
    }
    section.push(u8::try_from(rest).unwrap());
}

#[tokio::test]
async fn a_head_longer_than_allowed_gets_431_and_one_much_longer_nothing() {
    within(async {
        let limits = Limits {
            head_bytes_max: 16_384,
            ..Limits::default()
        };
        let server = Rig::limited(app(handler), limits);
        let client = server.connect().await;
        let (mut send, mut receive) = client.connection.open_bi().await.unwrap();
        send.write_all(&head_frame("x", &vec![b'y'; 20_000]))
            .await
            .unwrap();
        send.finish().unwrap();
        let response = receive.read_to_end(10_000).await.unwrap();
        // A head and no content: the status as a literal, in Huffman's code (RFC 7541, appendix B).
        assert!(response.ends_with(&[0x69, 0x90, 0xff]), "{response:?}");
        let (mut send, mut receive) = client.connection.open_bi().await.unwrap();
        send.write_all(&head_frame("x", &vec![b'y'; 200_000]))
            .await
            .unwrap();
        let error = receive.read_to_end(10_000).await.unwrap_err().to_string();
        let code = Code::H3_EXCESSIVE_LOAD.value();
        assert!(error.contains(&code.to_string()), "{error}");
        assert_eq!(client.get("/still").await.1, "/still");
    })
    .await;
}

#[tokio::test]
async fn what_comes_ahead_of_a_head_is_limited() {
    within(async {
        let limits = Limits {
            head_bytes_max: 16_384,
            ..Limits::default()
        };
        let server = Rig::limited(app(handler), limits);
        let client = server.connect().await;
        let (mut send, mut receive) = client.connection.open_bi().await.unwrap();
        // Frames of a type that is reserved, of 64 bytes each.
        let unknown = [&[0x21, 0x40, 64][..], &[0; 64]].concat();
        // What is refused, quinn may not take any more.
        let _written = send.write_all(&unknown.repeat(5_000)).await;
        let error = receive.read_to_end(10_000).await.unwrap_err().to_string();
        let code = Code::H3_EXCESSIVE_LOAD.value();
        assert!(error.contains(&code.to_string()), "{error}");
        assert_eq!(client.get("/still").await.1, "/still");
    })
    .await;
}

#[tokio::test]
async fn rfc9114_4_3_1_host_and_authority_that_differ_are_refused() {
    within(async {
        let server = Rig::start(app(handler));
        let client = server.connect().await;
        let (mut send, mut receive) = client.connection.open_bi().await.unwrap();
        send.write_all(&head_frame("host", b"other.test"))
            .await
            .unwrap();
        send.finish().unwrap();
        let error = receive.read_to_end(10_000).await.unwrap_err().to_string();
        let code = Code::H3_MESSAGE_ERROR.value().to_string();
        assert!(error.contains(&code), "{error}");
        let request = Request::get(uri("/same")).header("host", crate::over::NAME);
        let request = request.body(Bytes::new()).unwrap();
        assert_eq!(client.ask(request).await.text(), "/same");
    })
    .await;
}

#[tokio::test]
async fn rfc9114_4_2_fields_of_connections_are_refused() {
    within(async {
        let server = Rig::start(app(handler));
        let client = server.connect().await;
        for (name, value) in [
            ("connection", "close"),
            ("transfer-encoding", "chunked"),
            ("upgrade", "websocket"),
            ("keep-alive", "1"),
            ("te", "gzip"),
        ] {
            let request = Request::get(uri("/")).header(name, value);
            let request = request.body(Bytes::new()).unwrap();
            let response = client.ask(request).await;
            assert_eq!(response.head.status(), 400, "{name}");
        }
        let request = Request::get(uri("/ok")).header("te", "trailers");
        let request = request.body(Bytes::new()).unwrap();
        assert_eq!(client.ask(request).await.text(), "/ok");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_head_that_does_not_come_ends_its_stream_after_10_s() {
    local(async {
        let server = Rig::start(app(handler));
        let client = server.connect().await;
        assert_eq!(client.get("/first").await.1, "/first");
        let (mut send, mut receive) = client.connection.open_bi().await.unwrap();
        send.write_all(&[1]).await.unwrap();
        let since = Instant::now();
        let error = receive.read_to_end(1_000).await.unwrap_err().to_string();
        let code = Code::H3_REQUEST_INCOMPLETE.value();
        assert!(error.contains(&code.to_string()), "{error}");
        assert_elapsed(since, 10 * SECOND);
        assert_eq!(client.get("/still").await.1, "/still");
    })
    .await;
}

#[tokio::test]
async fn a_request_may_come_byte_by_byte() {
    within(async {
        let server = Rig::start(app(measure));
        let client = server.connect().await;
        let (mut send, mut receive) = client.connection.open_bi().await.unwrap();
        let unknown = [0x21, 0x40, 3, 7, 7, 7];
        let content = [0, 0x40, 4, b'b', b'o', b'd', b'y'];
        let empty = [0, 0];
        let head = head_frame("x", &[b'y'; 2_000]);
        let whole = [&unknown[..], &head, &empty, &content, &empty, &content].concat();
        for byte in whole {
            send.write_all(&[byte]).await.unwrap();
            settle().await;
        }
        send.finish().unwrap();
        let response = receive.read_to_end(10_000).await.unwrap();
        // The frame of the length of the content.
        assert!(response.ends_with(&[0, 1, b'8']), "{response:?}");
        assert_eq!(client.get("/still").await.0, 200);
    })
    .await;
}

#[tokio::test]
async fn rfc9114_7_1_a_frame_that_its_stream_cuts_short_ends_the_connection() {
    within(async {
        let server = Rig::start(app(measure));
        let head = head_frame("x", b"y");
        let content = [&head[..], &[0, 7, b'c']].concat();
        let header = [&head[..], &[0]].concat();
        let trailers = [&head[..], &[0, 1, b'c', 1, 4, 0]].concat();
        for cut in [&head[..1], &head[..9], &content, &header, &trailers] {
            for at_once in [true, false] {
                let client = server.connect().await;
                let (mut send, _receive) = client.connection.open_bi().await.unwrap();
                send.write_all(cut).await.unwrap();
                if !at_once {
                    settle().await;
                }
                send.finish().unwrap();
                let error = client.driver.await.unwrap().to_string();
                assert!(error.contains("H3_FRAME_ERROR"), "{cut:?}: {error}");
            }
        }
    })
    .await;
}
