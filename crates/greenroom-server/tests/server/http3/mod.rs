//! HTTP/3: the same limits, time-outs and drain as HTTP/1.1 and HTTP/2.

mod bodies;
mod certificates;
mod connections;
mod counting;
mod datagrams;
mod heads;
mod leaving;
mod pace;
mod rig;

use std::time::Duration;

use greenroom_server::RequestBody;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::BodyExt;
use tokio::time::sleep;

use crate::rig::{Reply, measure, streamed, text};

const SECOND: Duration = Duration::from_secs(1);

async fn handler(request: Request<RequestBody>) -> Reply {
    match request.uri().path() {
        "/echo" => {
            let body = request.into_body().map_err(Into::into);
            Ok(Response::new(body.boxed_unsync()))
        }
        "/measure" => measure(request).await,
        "/never" => std::future::pending().await,
        "/panic" => panic!("in the handler"),
        "/5" => {
            sleep(5 * SECOND).await;
            Ok(text("done"))
        }
        "/trailers" => {
            let mut trailers = HeaderMap::new();
            trailers.insert("checksum", HeaderValue::from_static("17"));
            let parts = [Frame::data("content".into()), Frame::trailers(trailers)];
            let parts = parts.map(Ok);
            Ok(streamed(futures_util::stream::iter(parts)))
        }
        "/205" | "/wrong-length" => {
            let mut response = text("twelve bytes");
            if request.uri().path() == "/205" {
                *response.status_mut() = StatusCode::RESET_CONTENT;
            }
            let wrong = HeaderValue::from_static("42");
            response.headers_mut().insert("content-length", wrong);
            Ok(response)
        }
        "/version" => Ok(text(format!("{:?}", request.version()))),
        path => Ok(text(path.to_owned())),
    }
}
