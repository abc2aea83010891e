//! The content of responses over HTTP/2: those that must not have any, as over HTTP/1.

use bytes::Bytes;
use futures_util::stream;
use greenroom_server::RequestBody;
use h2::client::SendRequest;
use http::{HeaderValue, Method, Request, StatusCode};

use crate::http2_pace::client;
use crate::rig::{Reply, Rig, app, local, streamed, text};

const WINDOW: u32 = 65_535;

async fn handler(request: Request<RequestBody>) -> Reply {
    let path = request.uri().path();
    let mut response = match path {
        "/panics-if-asked" => streamed(stream::poll_fn(|_| panic!("nobody wants this body"))),
        "/nothing" | "/said" => text(""),
        _ => text("twelve bytes"),
    };
    *response.status_mut() = match path {
        "/204" => StatusCode::NO_CONTENT,
        "/205" => StatusCode::RESET_CONTENT,
        "/304" => StatusCode::NOT_MODIFIED,
        _ => StatusCode::OK,
    };
    if matches!(path, "/said" | "/wrong" | "/205") {
        let said = HeaderValue::from_static("42");
        response.headers_mut().insert("content-length", said);
    }
    Ok(response)
}

/// A response's status, its length as it is told, and its content.
async fn ask(client: &SendRequest<Bytes>, method: Method, path: &str) -> (u16, String, Vec<u8>) {
    let mut client = client.clone().ready().await.unwrap();
    let uri = format!("http://test{path}");
    let request = Request::builder().method(method).uri(uri).body(()).unwrap();
    let (response, _) = client.send_request(request, true).unwrap();
    let (head, mut body) = response.await.unwrap().into_parts();
    let length = head.headers.get("content-length");
    let length = length.map_or("none", |length| length.to_str().unwrap());
    let mut content = Vec::new();
    while let Some(data) = body.data().await {
        content.extend(data.unwrap());
    }
    (head.status.as_u16(), length.to_owned(), content)
}

#[tokio::test(start_paused = true)]
async fn rfc9113_8_1_1_what_has_no_content_says_no_length_and_sends_none() {
    local(async {
        let server = Rig::start(app(handler));
        let client = client(&server, WINDOW).await;
        for method in [Method::GET, Method::HEAD] {
            for (path, status) in [("/204", 204), ("/304", 304)] {
                let response = ask(&client, method.clone(), path).await;
                assert_eq!(response, (status, "none".to_owned(), Vec::new()));
            }
        }
        let response = ask(&client, Method::GET, "/205").await;
        assert_eq!(response, (205, "0".to_owned(), Vec::new()));
        for path in ["/", "/wrong"] {
            let response = ask(&client, Method::GET, path).await;
            let whole = (200, "12".to_owned(), b"twelve bytes".to_vec());
            assert_eq!(response, whole, "{path}");
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn head_gets_the_length_of_a_get_and_no_content() {
    local(async {
        let server = Rig::start(app(handler));
        let client = client(&server, WINDOW).await;
        for (path, length) in [("/", "12"), ("/said", "42"), ("/nothing", "none")] {
            let response = ask(&client, Method::HEAD, path).await;
            assert_eq!(response, (200, length.to_owned(), Vec::new()), "{path}");
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn head_does_not_run_the_producer_of_a_body() {
    local(async {
        let server = Rig::start(app(handler));
        let client = client(&server, WINDOW).await;
        let response = ask(&client, Method::HEAD, "/panics-if-asked").await;
        assert_eq!(response, (200, "none".to_owned(), Vec::new()));
    })
    .await;
}
