use bytes::Bytes;
use h2::client::{ResponseFuture, SendRequest};
use h2::{RecvStream, SendStream};
use http::{HeaderMap, Request};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::harness::{Client, Ending, Log, PATIENCE, shown};

/// A client's HTTP/2 connection.
pub(super) struct Http2 {
    send: SendRequest<Bytes>,
    driven: JoinHandle<Result<(), h2::Error>>,
}

pub(super) type Asked = Result<ResponseFuture, Ending>;

/// Creates a request without fields.
pub(super) fn request(method: &str, path: &str) -> Request<()> {
    let request = Request::builder().method(method);
    let request = request.uri(format!("http://compat.test{path}"));
    request.body(()).unwrap()
}

impl Http2 {
    pub(super) async fn connect(client: &Client) -> Self {
        let stream = client.open().await;
        let (send, connection) = h2::client::handshake(stream).await.unwrap();
        let driven = tokio::spawn(connection);
        Self { send, driven }
    }

    /// Begins a request whose body is still to be sent.
    pub(super) async fn open(
        &mut self,
        request: Request<()>,
    ) -> Result<(ResponseFuture, SendStream<Bytes>), Ending> {
        let ready = timeout(PATIENCE, self.send.clone().ready()).await;
        self.send = ready
            .map_err(|_| Ending::Silent)?
            .map_err(|_| Ending::Closed)?;
        self.send
            .send_request(request, false)
            .map_err(|_| Ending::Malformed)
    }

    /// Sends a request and its body, as fast as the server takes it.
    pub(super) async fn ask(&mut self, request: Request<()>, body: Bytes) -> Asked {
        let (response, mut sender) = self.open(request).await?;
        tokio::spawn(async move {
            let mut body = body;
            while !body.is_empty() {
                sender.reserve_capacity(body.len());
                let capacity = futures_util::future::poll_fn(|cx| sender.poll_capacity(cx)).await;
                let Some(Ok(capacity)) = capacity else {
                    return;
                };
                let part = body.split_to(capacity.min(body.len()));
                if sender.send_data(part, false).is_err() {
                    return;
                }
            }
            // A server that has responded may be done with the stream.
            let _done = sender.send_data(Bytes::new(), true);
        });
        Ok(response)
    }

    /// Returns `true` if the server's settings allow extended `CONNECT`.
    pub(super) fn allows_extended_connect(&self) -> bool {
        self.send.is_extended_connect_protocol_enabled()
    }

    /// Awaits the end of the connection.
    pub(super) async fn log_end(self, log: &mut Log) {
        let Self { send, driven } = self;
        drop(send);
        let ended = timeout(PATIENCE, driven).await;
        log.push(match ended {
            Ok(Ok(Ok(()))) => "the connection is closed".to_owned(),
            Ok(Ok(Err(error))) => description(&error),
            _ => "nothing comes".to_owned(),
        });
    }
}

/// Logs a whole response, or the error in its place.
pub(super) async fn log_result(log: &mut Log, asked: Asked) {
    match log_response(log, asked).await {
        Ok(mut body) => log_rest(log, &mut body).await,
        Err(Ending::Malformed) => {}
        Err(ending) => log.push(ending.to_string()),
    }
}

/// Logs the head of a response. Returns its body, or [`Ending::Malformed`] after logging an error
/// in its place.
pub(super) async fn log_response(log: &mut Log, asked: Asked) -> Result<RecvStream, Ending> {
    let response = timeout(PATIENCE, asked?).await;
    let response = response.map_err(|_| Ending::Silent)?.map_err(|error| {
        log.push(description(&error));
        Ending::Malformed
    })?;
    let (head, body) = response.into_parts();
    log.push(format!("HTTP/2 {}", head.status.as_u16()));
    log_fields(log, "", &head.headers);
    Ok(body)
}

fn log_fields(log: &mut Log, what: &str, fields: &HeaderMap) {
    let fields = fields
        .iter()
        .filter(|(name, _)| *name != http::header::DATE);
    let lines = fields.map(|(name, value)| shown(&format!("{what}{name}:"), value.as_bytes()));
    let mut lines: Vec<_> = lines.collect();
    lines.sort();
    log.append(&mut lines);
}

/// Returns the next data of a body.
pub(super) async fn next_data(body: &mut RecvStream) -> Result<Bytes, Ending> {
    let data = timeout(PATIENCE, body.data()).await;
    let data = data.map_err(|_| Ending::Silent)?.ok_or(Ending::Closed)?;
    let data = data.map_err(|_| Ending::Reset)?;
    // A stream that is gone needs no more capacity.
    let _gone = body.flow_control().release_capacity(data.len());
    Ok(data)
}

/// Logs the rest of a body, its trailers and how it ended.
pub(super) async fn log_rest(log: &mut Log, body: &mut RecvStream) {
    let mut bytes = Vec::new();
    let end = loop {
        match timeout(PATIENCE, body.data()).await {
            Ok(Some(Ok(data))) => {
                bytes.extend_from_slice(&data);
                let _gone = body.flow_control().release_capacity(data.len());
            }
            Ok(Some(Err(error))) => break description(&error),
            Ok(None) => break "end of the stream".to_owned(),
            Err(_) => break Ending::Silent.to_string(),
        }
    };
    log.push(shown("body", &bytes));
    if let Ok(Ok(Some(trailers))) = timeout(PATIENCE, body.trailers()).await {
        log_fields(log, "trailer ", &trailers);
    }
    log.push(end);
}

/// Describes an error of the other side.
fn description(error: &h2::Error) -> String {
    let what = if error.is_reset() {
        "the stream is reset"
    } else if error.is_go_away() {
        "the connection goes away"
    } else {
        "the connection breaks"
    };
    match error.reason() {
        Some(reason) => format!("{what}: {reason:?}"),
        None => what.to_owned(),
    }
}
