//! The access log of HTTP/2, and of requests to upgrade, which hyper serves as well: it tells
//! responses that were cut from those that were whole.

use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use greenroom_server::{BoxError, RequestBody};
use http::{HeaderMap, Request, StatusCode};
use http_body::Frame;

use crate::http2_frames::{DATA, Frames, HEADERS, RST_STREAM};
use crate::panics::Log;
use crate::rig::{Reply, Rig, app, local, settle, streamed, text};

const WINDOW: u32 = 65_535;
const CANCEL: [u8; 4] = [0, 0, 0, 8];

/// A body of these parts.
fn parts(lengths: &[usize]) -> impl Stream<Item = Result<Frame<Bytes>, BoxError>> + use<> {
    let parts = lengths.iter().map(|length| vec![b'd'; *length].into());
    stream::iter(parts.map(|part| Ok(Frame::data(part))).collect::<Vec<_>>())
}

async fn handler(request: Request<RequestBody>) -> Reply {
    let begun = parts(&[5]);
    let mut response = match request.uri().path() {
        "/empty" => text(""),
        "/short" | "/short-unread" => text("short"),
        "/long" => text(vec![b'l'; 50_000]),
        "/204" => text("not to be sent"),
        "/streamed" => streamed(parts(&[5, 0, 20_000])),
        "/trailers" => {
            let trailers = Frame::trailers(HeaderMap::new());
            streamed(begun.chain(stream::iter([Ok(trailers)])))
        }
        "/panics" => panic!("in the handler"),
        "/fails" => streamed(begun.chain(stream::iter([Err("the disk is gone".into())]))),
        "/panics-in-body" => streamed(begun.chain(stream::poll_fn(|_| panic!("in the body")))),
        "/long-unread" => text(vec![b'l'; 200_000]),
        "/never" => std::future::pending().await,
        _ => streamed(begun.chain(stream::pending())),
    };
    if request.uri().path() == "/204" {
        *response.status_mut() = StatusCode::NO_CONTENT;
    }
    Ok(response)
}

fn serve() -> Rig {
    Log::capture();
    Rig::with(app(handler), |builder| builder.access_log(true))
}

#[track_caller]
fn is_logged_as_cut(target: &str) -> bool {
    let target = format!("target={target} ");
    Log::line(&["greenroom::access", &target]).contains(" cut=true")
}

/// Reads up to the first frame of this kind.
async fn wait_for(client: &mut Frames, kind: u8) {
    while client.next().await.expect("the connection goes on").kind != kind {}
}

#[tokio::test(start_paused = true)]
async fn responses_that_are_whole_are_not_logged_as_cut() {
    local(async {
        let server = serve();
        let mut client = Frames::with_window(&server.path, WINDOW).await;
        let paths = [
            "/empty",
            "/short",
            "/long",
            "/204",
            "/streamed",
            "/trailers",
            "/panics",
        ];
        for (number, path) in (0..).zip(paths) {
            client.get(2 * number + 1, path).await;
            client.said(2 * number + 1).await;
            client.open(0, WINDOW).await;
            assert!(!is_logged_as_cut(path), "{path}");
        }
        for (number, path) in (50..).zip(["/short?head", "/never-ends?head"]) {
            let fields = [
                (":method", "HEAD"),
                (":scheme", "http"),
                (":authority", "test"),
                (":path", path),
            ];
            client.request(2 * number + 1, &fields).await;
            client.said(2 * number + 1).await;
            assert!(!is_logged_as_cut(path), "{path}");
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn responses_that_their_clients_reset_are_logged_as_cut() {
    local(async {
        let server = serve();
        for (window, path, kind) in [
            (WINDOW, "/pauses", DATA),
            (WINDOW, "/long-unread", DATA),
            (0, "/short-unread", HEADERS),
        ] {
            let mut client = Frames::with_window(&server.path, window).await;
            client.get(1, path).await;
            wait_for(&mut client, kind).await;
            client.send(RST_STREAM, 0, 1, &CANCEL).await;
            settle().await;
            assert!(is_logged_as_cut(path), "{path}");
            // Its connection goes on.
            client.get(3, "/empty").await;
            client.said(3).await;
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn responses_whose_clients_leave_are_logged_as_cut() {
    local(async {
        let server = serve();
        let mut client = Frames::with_window(&server.path, WINDOW).await;
        client.get(1, "/never").await;
        client.get(3, "/pauses?left").await;
        wait_for(&mut client, DATA).await;
        drop(client);
        settle().await;
        assert!(is_logged_as_cut("/never"));
        assert!(is_logged_as_cut("/pauses?left"));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn responses_whose_bodies_fail_are_logged_as_cut() {
    local(async {
        let server = serve();
        for path in ["/fails", "/panics-in-body"] {
            let mut client = Frames::with_window(&server.path, WINDOW).await;
            client.get(1, path).await;
            wait_for(&mut client, RST_STREAM).await;
            assert!(is_logged_as_cut(path), "{path}");
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn so_are_those_to_requests_to_upgrade() {
    local(async {
        let server = serve();
        for (path, is_cut) in [("/fails?upgrade", true), ("/long?upgrade", false)] {
            let mut client = server.connect().await;
            let upgrade = "Connection: upgrade\r\nUpgrade: unheard-of\r\n";
            client
                .send(format!(
                    "GET {path} HTTP/1.1\r\nHost: test\r\n{upgrade}\r\n"
                ))
                .await;
            client.rest().await;
            assert_eq!(is_logged_as_cut(path), is_cut, "{path}");
        }
    })
    .await;
}
