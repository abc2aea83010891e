//! A client of HTTP/2 over TLS, with several streams at once on one connection.
//!
//! A stream above the last one that a GOAWAY names, or that was refused (`REFUSED_STREAM`), was not
//! begun, and may be sent again (RFC 9113, 6.8 and 8.7). Every other one must get its response.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::join_all;
use h2::client::SendRequest;
use h2::{Error, Reason};
use http::Request;
use rustls::ClientConfig;
use tokio::sync::Mutex;
use tokio::task::spawn_local;

use crate::HELLO;
use crate::failure::{Failed, Failure, within};
use crate::http1::{BUSY, UPLOAD_BYTES, uploaded};
use crate::load::{Client, Fault};
use crate::tcp::{RESPONSE_MAX, Stream};

const STREAMS: usize = 4;

/// A connection that its streams share.
struct Shared<'a> {
    client: &'a Client,
    tls: Arc<ClientConfig>,
    sender: Mutex<Option<SendRequest<Bytes>>>,
}

/// Sends groups of requests until the load ends.
pub(crate) async fn run(client: &Client) {
    let shared = Shared {
        client,
        tls: Arc::new(client.tls("h2")),
        sender: Mutex::new(None),
    };
    // The last of a group is counted by the loop, as it is one with a pause after a failure.
    let group = async || {
        let streams = (0..STREAMS).map(|index| shared.stream(index == 0));
        let mut outcomes = join_all(streams).await;
        outcomes.sort_by_key(Result::is_err);
        let last = outcomes.pop().unwrap_or(Ok(()));
        for outcome in outcomes {
            client.count(outcome);
        }
        last
    };
    client.repeat(BUSY, group).await;
}

impl Shared<'_> {
    async fn stream(&self, is_post: bool) -> Result<(), Failed> {
        let attempt = async || {
            let sender = self.ready().await?;
            let outcome = within(RESPONSE_MAX, async {
                Ok::<_, Failed>(self.request(sender, is_post).await)
            });
            outcome.await?.map_err(judged)?.map_err(Fault::Failed)
        };
        self.client.begun(attempt).await
    }

    /// Returns a connection that takes requests: the one that was kept, or another.
    async fn ready(&self) -> Result<SendRequest<Bytes>, Failed> {
        let mut kept = self.sender.lock().await;
        if let Some(sender) = kept.take() {
            if let Ok(sender) = sender.ready().await {
                *kept = Some(sender.clone());
                return Ok(sender);
            }
            self.client.add("reopened");
        }
        let stream = Stream::open(self.client.options.tls, Some(&self.tls), None).await?;
        let refused = |error: Error| Failure::Refused.by(format!("preface: {error}"));
        let (sender, connection) = h2::client::handshake(stream.bytes).await.map_err(refused)?;
        // It ends with the connection. Its errors reach the streams, too.
        spawn_local(connection);
        let sender = sender.ready().await.map_err(refused)?;
        *kept = Some(sender.clone());
        Ok(sender)
    }

    async fn request(
        &self,
        sender: SendRequest<Bytes>,
        is_post: bool,
    ) -> Result<Result<(), Failed>, Error> {
        // Without a place for the stream nothing was sent.
        let mut sender = sender.ready().await?;
        let (method, path, expected) = if is_post {
            ("POST", "/upload", uploaded(UPLOAD_BYTES))
        } else {
            ("GET", "/hello", HELLO.to_owned())
        };
        let uri = format!("https://{}{path}", self.client.options.tls);
        let head = Request::builder().method(method).uri(uri).body(());
        let head = head.expect("method and URI are valid");
        let (response, mut body) = sender.send_request(head, !is_post)?;
        if is_post {
            body.send_data(Bytes::from(vec![b'a'; UPLOAD_BYTES]), true)?;
        }
        let (head, mut stream) = response.await?.into_parts();
        let mut text = Vec::new();
        while let Some(piece) = stream.data().await {
            let piece = piece?;
            stream.flow_control().release_capacity(piece.len())?;
            text.extend_from_slice(&piece);
        }
        let text = String::from_utf8_lossy(&text);
        if head.status != 200 || !text.contains(&expected) {
            let text = format!("{} {text:?}", head.status);
            return Ok(Err(Failure::Wrong.by(text)));
        }
        Ok(Ok(()))
    }
}

fn judged(error: Error) -> Fault {
    let was_refused = error.is_reset() && error.reason() == Some(Reason::REFUSED_STREAM);
    // The library gives this error to streams above the last one only.
    let went_away = error.is_go_away() && error.reason() == Some(Reason::NO_ERROR);
    if error.is_remote() && (was_refused || went_away) {
        return Fault::NotBegun;
    }
    let is_reset = error.is_reset();
    let text = format!("HTTP/2: {error}");
    let failure = match error.into_io() {
        Some(error) => Failed::from(error).0,
        None if is_reset => Failure::Reset,
        None => Failure::Wrong,
    };
    Fault::Failed(failure.by(text))
}
