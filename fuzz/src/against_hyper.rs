use std::cell::RefCell;
use std::convert::Infallible;
use std::io;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use greenroom_http::Limits;
use http::{HeaderMap, Method, Request, Response, Version};
use http_body_util::{BodyExt, Empty};
use hyper::body::{Bytes, Incoming};
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper::server::conn::http1;
use hyper::service::service_fn;

use crate::driver::{Driver, Ending, Message, Reply};

/// The parts of a request that both sides must agree on.
#[derive(Debug, PartialEq, Eq)]
struct Reading {
    method: Method,
    target: String,
    version: Version,
    fields: HeaderMap,
    body: Vec<u8>,
    trailers: Option<HeaderMap>,
}

/// Whatever is accepted here, hyper must read alike: the same requests, ended at the same bytes.
///
/// HTTP/1.2 to HTTP/1.9 are read as 1.1 here and refused by hyper, so both are shown that.
///
/// hyper may be laxer: after a rejection of ours it may say what it likes. Where we close after an
/// respond or wait for more, it must not see another request.
///
/// # Panics
///
/// On a finding.
pub fn check(data: &[u8]) {
    let data = &as_1_1(data);
    let mut driver = Driver::new(Limits::default(), |_: &Message| Reply::text(""));
    driver.offer(data);
    let transcript = driver.finish();
    if transcript.ending == Ending::Http2 {
        return;
    }
    let ours: Vec<Reading> = transcript
        .messages
        .iter()
        .filter(|message| message.complete)
        .map(reading)
        .collect();
    // What follows a `CONNECT` is for the tunnel, or for nobody: no server reads on.
    let ours = up_to_connect(ours);
    let theirs = up_to_connect(hyper_readings(data));
    let alike = theirs.iter().zip(&ours).take_while(|(a, b)| a == b).count();
    assert_eq!(
        alike,
        ours.len(),
        "hyper reads {:?} where we read {:?}",
        theirs.get(alike),
        ours.get(alike)
    );
    let over = is_lax_close(ours.last()) || is_connect(ours.last());
    if !matches!(transcript.ending, Ending::Refused(_)) && !over {
        assert_eq!(
            theirs.len(),
            ours.len(),
            "hyper sees more: {:?}",
            theirs.last()
        );
    }
}

fn as_1_1(data: &[u8]) -> Vec<u8> {
    let mut shown = data.to_vec();
    let later = |bytes: &[u8]| bytes.starts_with(b" HTTP/1.") && matches!(bytes[8], b'2'..=b'9');
    let found: Vec<usize> = (0..data.len().saturating_sub(8))
        .filter(|&at| later(&data[at..]))
        .collect();
    for at in found {
        shown[at + 8] = b'1';
    }
    shown
}

fn is_connect(reading: Option<&Reading>) -> bool {
    reading.is_some_and(|reading| reading.method == Method::CONNECT)
}

fn up_to_connect(mut readings: Vec<Reading>) -> Vec<Reading> {
    let connect = readings
        .iter()
        .position(|reading| is_connect(Some(reading)));
    readings.truncate(connect.map_or(readings.len(), |at| at + 1));
    readings
}

/// hyper passes over a whole `Connection` field that holds a byte outside ASCII, `close` included;
/// we obey the `close` in it. Closing early is safe: what follows is never read.
fn is_lax_close(last: Option<&Reading>) -> bool {
    let connection = last
        .into_iter()
        .flat_map(|reading| reading.fields.get_all("connection"));
    connection.into_iter().any(|value| value.to_str().is_err())
}

fn reading(message: &Message) -> Reading {
    Reading {
        method: message.method.clone(),
        target: message.target.clone(),
        version: message.version,
        fields: message.fields.clone(),
        body: message.body.clone(),
        trailers: message.trailers.clone(),
    }
}

/// The requests that hyper reads to their end.
fn hyper_readings(data: &[u8]) -> Vec<Reading> {
    let readings = Rc::new(RefCell::new(Vec::new()));
    let service = service_fn(|request: Request<Incoming>| {
        let readings = Rc::clone(&readings);
        async move {
            if let Some(reading) = read(request).await {
                readings.borrow_mut().push(reading);
            }
            Ok::<_, Infallible>(Response::new(Empty::<Bytes>::new()))
        }
    });
    let connection = http1::Builder::new().half_close(true).serve_connection(
        Memory {
            input: data.to_vec(),
            at: 0,
        },
        service,
    );
    poll_to_end(connection);
    readings.take()
}

async fn read(request: Request<Incoming>) -> Option<Reading> {
    let (parts, body) = request.into_parts();
    let collected = body.collect().await.ok()?;
    let trailers = collected.trailers().cloned();
    Some(Reading {
        method: parts.method,
        target: parts.uri.to_string(),
        version: parts.version,
        fields: parts.headers,
        body: collected.to_bytes().to_vec(),
        trailers,
    })
}

/// Nothing here ever waits for anything outside, so polling again is all that a runtime would do.
fn poll_to_end(connection: impl Future) {
    let mut connection = pin!(connection);
    let mut cx = Context::from_waker(Waker::noop());
    for _ in 0..100_000 {
        if connection.as_mut().poll(&mut cx).is_ready() {
            return;
        }
    }
    panic!("hyper does not come to an end");
}

/// All input at once, then the end of it; output goes nowhere.
struct Memory {
    input: Vec<u8>,
    at: usize,
}

impl Read for Memory {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        mut buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let end = self.input.len().min(self.at + buffer.remaining());
        buffer.put_slice(&self.input[self.at..end]);
        self.at = end;
        Poll::Ready(Ok(()))
    }
}

impl Write for Memory {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(data.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
