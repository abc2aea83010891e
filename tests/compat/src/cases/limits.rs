//! Large bodies, and the application's view of them.

use axum::body::Body;
use axum::extract::multipart::MultipartError;
use axum::extract::rejection::BytesRejection;
use axum::extract::{DefaultBodyLimit, Multipart, Request};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::future::{BoxFuture, FutureExt};
use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tower_http::cors::CorsLayer;
use tower_http::limit::RequestBodyLimitLayer;

use crate::harness::Step::{Ended, Response as Read};
use crate::harness::{App, Case, Client, Ending, Rig, Step, ask, raw};

const MEBIBYTE: usize = 1_024 * 1_024;

pub(crate) fn cases() -> Vec<Case> {
    [small_enough(), too_large(), streamed()]
        .into_iter()
        .flatten()
        .collect()
}

pub(crate) fn large() -> Vec<Case> {
    vec![Case::script(
        "limits/multipart-of-250-mb",
        App::Router(app),
        multipart_of_250,
    )]
}

fn app(_: Rig) -> Router {
    let len = |bytes: Bytes| async move { format!("{} bytes", bytes.len()) };
    let own = |bytes: Result<Bytes, BytesRejection>| async move {
        match bytes {
            Ok(bytes) => format!("{} bytes", bytes.len()).into_response(),
            Err(rejection) => {
                let text = format!("own rejection: {rejection}");
                (StatusCode::IM_A_TEAPOT, text).into_response()
            }
        }
    };
    Router::new()
        .route(
            "/json",
            post(|Json(value): Json<Value>| async move { value.to_string().len().to_string() }),
        )
        .route("/bytes", post(len))
        .route("/own", post(own))
        .route("/any-size", post(len).layer(DefaultBodyLimit::disable()))
        .route(
            "/ten",
            post(len).layer(DefaultBodyLimit::max(10 * MEBIBYTE)),
        )
        .route(
            "/one",
            post(len).layer(RequestBodyLimitLayer::new(MEBIBYTE)),
        )
        .route(
            "/three",
            post(len).layer((
                DefaultBodyLimit::disable(),
                RequestBodyLimitLayer::new(3 * MEBIBYTE),
            )),
        )
        .route("/count", post(count))
        .route("/file", post(to_file))
        .route(
            "/multipart",
            post(multipart).layer(DefaultBodyLimit::disable()),
        )
        .route("/limited-multipart", post(multipart))
        .layer(CorsLayer::permissive())
}

async fn count(request: Request) -> Response {
    let mut parts = request.into_body().into_data_stream();
    let mut bytes = 0;
    while let Some(part) = parts.next().await {
        match part {
            Ok(part) => bytes += part.len(),
            Err(_) => return StatusCode::IM_A_TEAPOT.into_response(),
        }
    }
    format!("{bytes} bytes").into_response()
}

async fn to_file(body: Body) -> String {
    let file = tempfile::tempfile().unwrap();
    let mut file = tokio::fs::File::from_std(file);
    let mut parts = body.into_data_stream();
    while let Some(part) = parts.next().await {
        file.write_all(&part.unwrap()).await.unwrap();
    }
    file.flush().await.unwrap();
    format!("{} bytes in the file", file.metadata().await.unwrap().len())
}

async fn multipart(mut form: Multipart) -> Result<String, MultipartError> {
    let mut lines = Vec::new();
    while let Some(mut field) = form.next_field().await? {
        let name = (
            field.name().map(str::to_owned),
            field.file_name().map(str::to_owned),
        );
        let mut bytes = 0;
        while let Some(part) = field.chunk().await? {
            bytes += part.len();
        }
        lines.push(format!("{name:?}: {bytes} bytes\n"));
    }
    Ok(lines.concat())
}

fn of(bytes: usize) -> Vec<u8> {
    vec![b'x'; bytes]
}

fn chunked(target: &str, bytes: usize) -> Step {
    let mut request = format!(
        "POST {target} HTTP/1.1\r\nHost: a\r\nOrigin: http://b\r\nTransfer-Encoding: chunked\r\n\
            \r\n"
    )
    .into_bytes();
    for part in of(bytes).chunks(100_000) {
        request.extend_from_slice(format!("{:x}\r\n", part.len()).as_bytes());
        request.extend_from_slice(part);
        request.extend_from_slice(b"\r\n");
    }
    request.extend_from_slice(b"0\r\n\r\n");
    raw(request)
}

fn small_enough() -> Vec<Case> {
    let one = |name, request| Case::asking(name, App::Router(app), [request]);
    vec![
        one(
            "limits/two-mebibytes",
            ask("POST /bytes", &[], of(2 * MEBIBYTE)),
        ),
        one(
            "limits/disabled",
            ask("POST /any-size", &[], of(3 * MEBIBYTE)),
        ),
        one(
            "limits/disabled-and-chunked",
            chunked("/any-size", 3 * MEBIBYTE),
        ),
        one("limits/raised", ask("POST /ten", &[], of(3 * MEBIBYTE))),
        one("limits/raised-and-chunked", chunked("/ten", 3 * MEBIBYTE)),
        one(
            "limits/layer-of-three-mebibytes",
            ask("POST /three", &[], of(5 * MEBIBYTE / 2)),
        ),
    ]
}

fn too_large() -> Vec<Case> {
    let refused = |name, request| Case::steps(name, App::Router(app), vec![request, Read, Ended]);
    let cors = &["Origin: http://b"][..];
    let json = &["Origin: http://b", "Content-Type: application/json"][..];
    let value = format!("\"{}\"", "x".repeat(3 * MEBIBYTE));
    vec![
        refused(
            "limits/over-two-mebibytes",
            ask("POST /bytes", cors, of(3 * MEBIBYTE)),
        ),
        refused(
            "limits/over-two-mebibytes-chunked",
            chunked("/bytes", 3 * MEBIBYTE),
        ),
        refused(
            "limits/over-two-mebibytes-of-json",
            ask("POST /json", json, value),
        ),
        refused(
            "limits/own-rejection",
            ask("POST /own", cors, of(3 * MEBIBYTE)),
        ),
        refused(
            "limits/own-rejection-chunked",
            chunked("/own", 3 * MEBIBYTE),
        ),
        refused(
            "limits/over-what-was-raised",
            ask("POST /ten", cors, of(11 * MEBIBYTE)),
        ),
        refused(
            "limits/over-a-layer",
            ask("POST /one", cors, of(3 * MEBIBYTE / 2)),
        ),
        refused(
            "limits/over-a-layer-and-expecting",
            ask(
                "POST /one",
                &["Expect: 100-continue", "Content-Length: 1572864"],
                "",
            ),
        ),
        refused(
            "limits/over-a-layer-chunked",
            chunked("/one", 3 * MEBIBYTE / 2),
        ),
    ]
}

fn streamed() -> Vec<Case> {
    let one = |name, request| Case::asking(name, App::Router(app), [request]);
    let form = &["Content-Type: multipart/form-data; boundary=XyZ"][..];
    vec![
        one(
            "limits/raw-stream",
            ask("POST /count", &[], of(5 * MEBIBYTE)),
        ),
        one("limits/raw-stream-chunked", chunked("/count", 5 * MEBIBYTE)),
        one(
            "limits/upload-to-a-file",
            ask("POST /file", &[], of(10 * MEBIBYTE)),
        ),
        one(
            "limits/multipart",
            ask("POST /multipart", form, form_of(1_000)),
        ),
        one(
            "limits/multipart-without-boundary",
            ask("POST /multipart", &[], "x"),
        ),
        one(
            "limits/multipart-cut-short",
            ask("POST /multipart", form, "--XyZ\r\nContent-Disp"),
        ),
        Case::script(
            "limits/multipart-of-25-mb",
            App::Router(app),
            multipart_of_25,
        ),
        Case::steps(
            "limits/multipart-over-its-limit",
            App::Router(app),
            vec![
                ask("POST /limited-multipart", form, form_of(3 * MEBIBYTE)),
                Read,
                Ended,
            ],
        ),
    ]
}

const FORM_HEAD: &str = "--XyZ\r\nContent-Disposition: form-data; name=\"word\"\r\n\r\nhello\r\n\
                         --XyZ\r\nContent-Disposition: form-data; name=\"file\"; \
                             filename=\"a.bin\"\r\n\
                         Content-Type: application/octet-stream\r\n\r\n";
const FORM_END: &str = "\r\n--XyZ--\r\n";

/// Creates a form of a word and a file.
fn form_of(bytes: usize) -> Vec<u8> {
    let mut form = FORM_HEAD.as_bytes().to_vec();
    form.extend_from_slice(&of(bytes));
    form.extend_from_slice(FORM_END.as_bytes());
    form
}

fn multipart_of_25(client: &mut Client) -> BoxFuture<'_, Result<(), Ending>> {
    upload(client, 25_000_000).boxed()
}

fn multipart_of_250(client: &mut Client) -> BoxFuture<'_, Result<(), Ending>> {
    upload(client, 250_000_000).boxed()
}

/// Uploads a form with a file of so many bytes, which are made as they are sent.
async fn upload(client: &mut Client, bytes: usize) -> Result<(), Ending> {
    let mut wire = client.connect().await;
    let length = FORM_HEAD.len() + bytes + FORM_END.len();
    let head = format!(
        "POST /multipart HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\
         Content-Type: multipart/form-data; boundary=XyZ\r\n\r\n{FORM_HEAD}"
    );
    wire.send(head.as_bytes()).await?;
    let part = of(100_000);
    for _ in 0..bytes / part.len() {
        wire.send(&part).await?;
    }
    wire.send(FORM_END.as_bytes()).await?;
    wire.response(&mut client.log).await?;
    wire.end(&mut client.log).await
}
