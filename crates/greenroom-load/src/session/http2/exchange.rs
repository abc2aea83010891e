//! A request on a stream, and its response.

use std::convert::Infallible;
use std::future::{pending, poll_fn};
use std::io;

use bytes::Bytes;
use h2::client::{ResponseFuture, SendRequest};
use h2::{RecvStream, SendStream};
use http::Response;
use tokio::time::timeout_at;

use super::Talk;
use crate::record::{FailureKind, FirstResponse};
use crate::session::connect::Failure;
use crate::session::exchange::{Exchange, Received, Sample};

impl<'a> Talk<'a> {
    /// Sends a request; the future ends when its response or its failure was recorded.
    pub(super) fn exchange(
        &'a self,
        handle: &mut SendRequest<Bytes>,
        exchange: Exchange,
    ) -> impl Future<Output = ()> + use<'a> {
        let messages = &self.engine.messages;
        let request = messages.request(exchange.endpoint);
        let sending = handle.send_request(request, messages.body.is_empty());
        let sent = self.engine.now();
        let heard = self.heard.get();
        async move {
            let response = async {
                let (response, stream) = sending?;
                self.converse(response, stream, sent).await
            };
            match timeout_at(exchange.deadline, response).await {
                Ok(Ok((received, first))) => self.engine.responded(&exchange, &received, first),
                Ok(Err(error)) => self.engine.failed(&exchange, self.failure(&error)),
                Err(_) => {
                    if self.heard.get() == heard {
                        self.is_silent.set(true);
                    }
                    self.engine.failed(&exchange, self.timed_out());
                }
            }
        }
    }

    /// Sends the body while the response may come already.
    async fn converse(
        &self,
        response: ResponseFuture,
        stream: SendStream<Bytes>,
        sent: u64,
    ) -> Result<(Received, Option<FirstResponse>), h2::Error> {
        tokio::select! {
            biased;
            response = self.receive(response, sent) => response,
            never = self.upload(stream) => match never {},
        }
    }

    async fn upload(&self, mut stream: SendStream<Bytes>) -> Infallible {
        let mut rest = self.engine.messages.body.clone();
        while !rest.is_empty() {
            stream.reserve_capacity(rest.len());
            // An error of the stream also fails its response, where it is recorded.
            let Some(Ok(capacity)) = poll_fn(|context| stream.poll_capacity(context)).await else {
                break;
            };
            let chunk = rest.split_to(capacity.min(rest.len()));
            let length = chunk.len();
            if stream.send_data(chunk, rest.is_empty()).is_err() {
                break;
            }
            self.engine.outcomes.borrow_mut().sent_bytes(length);
        }
        pending().await
    }

    async fn receive(
        &self,
        response: ResponseFuture,
        sent: u64,
    ) -> Result<(Received, Option<FirstResponse>), h2::Error> {
        let response = response.await?;
        let first_byte = self.engine.now();
        self.hear();
        self.proven();
        let status = response.status().as_u16();
        let mut sample = self.engine.sample(|| head(&response), self.tls.as_deref());
        let mut body = response.into_body();
        let mut body_bytes = 0;
        while let Some(chunk) = body.data().await {
            let chunk = chunk?;
            self.hear();
            body_bytes += chunk.len() as u64;
            self.engine
                .outcomes
                .borrow_mut()
                .received_bytes(chunk.len());
            if let Some(sample) = &mut sample {
                sample.push(&chunk);
            }
            body.flow_control().release_capacity(chunk.len())?;
        }
        body.trailers().await?;
        let received = Received {
            status,
            sent,
            first_byte,
            done: self.engine.now(),
            body_bytes,
        };
        Ok((received, sample.map(Sample::finish)))
    }

    fn failure(&self, error: &h2::Error) -> Failure {
        self.hear();
        let kind = kind(error, self.is_tls, self.is_proven.get());
        if kind == FailureKind::Handshake {
            self.is_refused.set(true);
        }
        Failure::new(kind, error)
    }

    fn timed_out(&self) -> Failure {
        let detail = format!("no response within {:?}", self.engine.share.plan.timeout);
        Failure::new(FailureKind::Timeout, detail)
    }
}

fn kind(error: &h2::Error, is_tls: bool, is_proven: bool) -> FailureKind {
    if let Some(error) = error.get_io() {
        return match error.kind() {
            // h2 reports the end of the byte stream as a broken pipe, and keeps only an error's
            // kind and text.
            io::ErrorKind::BrokenPipe => FailureKind::ClosedEarly,
            io::ErrorKind::InvalidData if is_tls => FailureKind::Tls,
            _ => FailureKind::of_transfer(error),
        };
    }
    match (error.is_library(), error.is_go_away()) {
        (true, true) if !is_proven => FailureKind::Handshake,
        (true, _) => FailureKind::Malformed,
        (false, _) => FailureKind::Reset,
    }
}

/// Formats a head as text, in the form of HTTP/1.1's.
fn head(response: &Response<RecvStream>) -> Vec<u8> {
    let mut text = format!("HTTP/2 {}\n", response.status().as_u16()).into_bytes();
    for (name, value) in response.headers() {
        text.extend_from_slice(name.as_str().as_bytes());
        text.extend_from_slice(b": ");
        text.extend_from_slice(value.as_bytes());
        text.push(b'\n');
    }
    text
}
