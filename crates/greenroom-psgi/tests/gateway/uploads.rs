//! Bodies of requests, which a worker gets when they are complete.

use bytes::Bytes;
use greenroom_psgi::Builder;
use http::StatusCode;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::rig::{Rig, text, within};

/// Reads its input twice, and returns its length and the sum of its bytes.
const APP: &str = r#"
    sub {
        my $env = shift;
        my @told = map {
            my ($bytes, $sum) = (0, 0);
            while (my $got = $env->{'psgi.input'}->read(my $part, 65_536)) {
                $bytes += $got;
                $sum   += unpack '%32C*', $part;
            }
            $env->{'psgi.input'}->seek(0, 0);
            "$bytes bytes, sum $sum";
        } 1, 2;
        [200, [], ["$env->{CONTENT_LENGTH}: $told[0]; $told[1]"]];
    };
"#;

fn expected(bytes: usize) -> String {
    format!("{bytes}: {bytes} bytes, sum {bytes}; {bytes} bytes, sum {bytes}")
}

fn large_bodies(builder: Builder) -> Builder {
    builder.body_bytes_max(2 * 1_024 * 1_024 * 1_024)
}

#[tokio::test]
async fn bodies_of_any_length_can_be_read_twice() {
    within(async {
        let rig = Rig::with(APP, large_bodies).await;
        for bytes in [1, 65_536, 65_537, 5_000_000] {
            let response = rig.post("/", vec![1; bytes]).await;
            assert_eq!(text(&response), expected(bytes));
        }
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn chunked_bodies_have_a_length() {
    within(async {
        let rig = Rig::serve(APP).await;
        let response = rig
            .exchange(
                b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\
                  Connection: close\r\n\r\n\
                  3\r\n\x01\x01\x01\r\n2;x=y\r\n\x01\x01\r\n0\r\nX-Sum: 5\r\n\r\n",
            )
            .await;
        assert!(response.ends_with(&expected(5)), "{response}");
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn a_body_over_the_limit_never_reaches_the_application() {
    within(async {
        let rig = Rig::serve(APP).await;
        let response = rig.post("/", Bytes::from(vec![1; 3_000_000])).await;
        assert_eq!(response.status(), StatusCode::PAYLOAD_TOO_LARGE);
        let mut chunked = b"POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\
            Transfer-Encoding: chunked\r\n\r\n200001\r\n"
            .to_vec();
        chunked.resize(chunked.len() + 0x20_0001, 1);
        chunked.extend_from_slice(b"\r\n0\r\n\r\n");
        let response = rig.exchange(&chunked).await;
        assert!(response.starts_with("HTTP/1.1 413 "), "{response}");
        assert_eq!(rig.gateway.status().workers[0].served, 0);
        rig.end().await;
    })
    .await;
}

#[tokio::test]
async fn bodies_have_so_much_room_in_all_and_no_more() {
    within(async {
        let rig = Rig::with(APP, |builder| builder.uploads_bytes_max(1_000_000)).await;
        // Bytes that were only announced take no space.
        let mut promises = rig.connect().await;
        let head = "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 900000\r\n\r\n";
        promises.write_all(head.as_bytes()).await.unwrap();
        for bytes in [65_536, 1_000_000] {
            let response = rig.post("/", vec![1; bytes]).await;
            assert_eq!(text(&response), expected(bytes));
        }
        for _ in 0..3 {
            let response = rig.post("/", vec![1; 1_000_001]).await;
            assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
            assert_eq!(response.headers()["retry-after"], "1");
        }
        // A file is removed after its response.
        loop {
            let response = rig.post("/", vec![1; 1_000_000]).await;
            if response.status() == StatusCode::OK {
                break;
            }
        }
        drop(promises);
        rig.end().await;
    })
    .await;
}

/// The server takes a gigabyte, and holds next to nothing of it in memory.
#[tokio::test]
async fn a_gigabyte_goes_through_in_bounded_memory() {
    const BYTES: usize = 1_024 * 1_024 * 1_024;
    const PART: usize = 1_024 * 1_024;
    let app = "sub { [200, [], [-s $_[0]{'psgi.input'}]] }";
    let rig = Rig::with(app, large_bodies).await;
    let before = resident_bytes();
    let mut stream = rig.connect().await;
    let head = format!(
        "PUT / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: {BYTES}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let part = vec![1; PART];
    let mut most = 0;
    for _ in 0..BYTES / PART {
        stream.write_all(&part).await.unwrap();
        most = most.max(resident_bytes());
    }
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    assert!(
        response.ends_with(&format!("\r\n\r\n{BYTES}")),
        "{response}"
    );
    let grown = most.saturating_sub(before);
    // Other tests run beside it in this process, and hold some megabytes each.
    assert!(grown < BYTES / 4, "it grew by {grown} bytes");
    rig.end().await;
}

fn resident_bytes() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = statm.split(' ').nth(1).unwrap().parse().unwrap();
    pages * rustix::param::page_size()
}
