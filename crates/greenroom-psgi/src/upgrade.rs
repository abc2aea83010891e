//! `psgix.io`: a request that asks to leave HTTP (RFC 9110, section 7.8) gets a socket on which the
//! application responds, and speaks any protocol afterwards.
//!
//! The application's end is a Unix socket, and the server relays. So the server's limits and its
//! drain hold for such connections too, and they may come in by HTTP/1.1 as well as through a
//! proxy; the application needs no module to receive descriptors.

use std::future::poll_fn;
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};

use bytes::{Buf, Bytes, BytesMut};
use greenroom_server::FieldNames;
use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING, UPGRADE};
use http::request::Parts;
use http::{Response, StatusCode};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::UnixStream;

use crate::body::ResponseBody;
use crate::frame;
use crate::link::{Call, Input, NoResponse, WorkerResponse};
use crate::pool::{Run, Stay, Worker};
use crate::raw_body::RawBody;

/// The bytes of the head that an application may write on its socket.
const HEAD_BYTES_MAX: usize = 65_536;

/// The header fields of that head.
const FIELDS_MAX: usize = 100;

/// A client's wish to leave HTTP.
pub(crate) struct Wish(OnUpgrade);

/// The application's response to the wish.
pub(crate) enum Outcome {
    /// The application writes it on its socket.
    Raw(Raw),
    /// The application responded as to any request.
    Call(WorkerResponse, Call),
}

/// A response whose head has come on the application's socket.
pub(crate) struct Raw {
    head: Response<()>,
    input: Bytes,
    io: UnixStream,
    kept: (Call, Stay),
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum UpgradeError {
    /// It has nothing of the request.
    #[error("the worker cannot be reached: {0}")]
    Unreachable(io::Error),
    #[error("the application's socket broke: {0}")]
    Io(#[from] io::Error),
    #[error("the application did not write an HTTP response: {0}")]
    Head(#[from] httparse::Error),
    #[error("the application's head is longer than {HEAD_BYTES_MAX} bytes")]
    TooLong,
    #[error("the application's response is not allowed by HTTP: {0}")]
    Http(#[from] http::Error),
    #[error("the application's body has a transfer coding, which the server would apply again")]
    Encoded,
    #[error("the application gave no response ({0:?})")]
    NoResponse(NoResponse),
}

/// Takes the wish out of a request that has one.
pub(crate) fn wish(parts: &mut Parts) -> Option<Wish> {
    if !parts.headers.contains_key(UPGRADE) {
        return None;
    }
    parts.extensions.remove::<OnUpgrade>().map(Wish)
}

/// Sends the request and waits for the response, on the socket or off it.
pub(crate) async fn ask(
    run: Run,
    environment: impl FnOnce(&mut Vec<u8>),
) -> Result<Outcome, UpgradeError> {
    static TOKENS: AtomicU32 = AtomicU32::new(0);
    let token = TOKENS.fetch_add(1, Ordering::Relaxed);
    // Connected before the request, which names the connection by its token.
    let connected = connect(run.worker(), token).await;
    let mut io = connected.map_err(UpgradeError::Unreachable)?;
    // From now on, so that a worker that is to end waits for a handshake behind the call's end too.
    let stay = run.pool().stay(run.worker().key);
    let kept = (
        Call::begin(run, environment, &Input::Io(token), false),
        stay,
    );
    let call = &kept.0;
    let mut input = BytesMut::new();
    let response = tokio::select! {
        biased;
        head = read_head(&mut io, &mut input) => match head? {
            Some(head) => return Ok(raw(head, input, io, kept)),
            None => poll_fn(|cx| call.poll_response(cx, |_| {})).await,
        },
        response = poll_fn(|cx| call.poll_response(cx, |_| {})) => response,
    };
    match response {
        Ok(response) => Ok(Outcome::Call(response, kept.0)),
        // The response is over off the socket; it may still come on it.
        Err(NoResponse::Aborted) => match read_head(&mut io, &mut input).await? {
            Some(head) => Ok(raw(head, input, io, kept)),
            None => Err(UpgradeError::NoResponse(NoResponse::Aborted)),
        },
        Err(no_response) => Err(UpgradeError::NoResponse(no_response)),
    }
}

async fn connect(worker: &Worker, token: u32) -> io::Result<UnixStream> {
    let mut io = UnixStream::connect(&worker.socket).await?;
    let mut hello = Vec::new();
    frame::append(&mut hello, b'I', |out| {
        out.extend_from_slice(&token.to_be_bytes());
    });
    io.write_all(&hello).await?;
    Ok(io)
}

/// Reads the head that the application writes; the bytes behind it stay in `input`. `None` if the
/// application closes its socket.
async fn read_head(
    io: &mut UnixStream,
    input: &mut BytesMut,
) -> Result<Option<Response<()>>, UpgradeError> {
    loop {
        if io.read_buf(input).await? == 0 {
            return Ok(None);
        }
        if let Some((head, length)) = parse(input)? {
            input.advance(length);
            return Ok(Some(head));
        }
        if input.len() > HEAD_BYTES_MAX {
            return Err(UpgradeError::TooLong);
        }
    }
}

fn parse(input: &[u8]) -> Result<Option<(Response<()>, usize)>, UpgradeError> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
    let mut parsed = httparse::Response::new(&mut fields);
    let httparse::Status::Complete(length) = parsed.parse(input)? else {
        return Ok(None);
    };
    let names = FieldNames::new(parsed.headers.iter().map(|field| field.name));
    let mut head = Response::builder().status(parsed.code.unwrap_or_default());
    for field in parsed.headers.iter() {
        head = head.header(field.name, field.value);
    }
    Ok(Some((head.extension(names).body(())?, length)))
}

fn raw(head: Response<()>, input: BytesMut, io: UnixStream, kept: (Call, Stay)) -> Outcome {
    let input = input.freeze();
    Outcome::Raw(Raw {
        head,
        input,
        io,
        kept,
    })
}

impl Raw {
    /// Returns the response; if it leaves HTTP, what follows is relayed to who wished it.
    pub(crate) fn open(self, wish: Wish) -> Result<Response<ResponseBody>, UpgradeError> {
        let Self {
            head,
            input,
            io,
            kept,
        } = self;
        kept.0.leave_http();
        if head.status() == StatusCode::SWITCHING_PROTOCOLS {
            tokio::task::spawn_local(relay(wish, input, io, kept));
            return Ok(head.map(|()| ResponseBody::whole(Bytes::new())));
        }
        if head.headers().contains_key(TRANSFER_ENCODING) {
            return Err(UpgradeError::Encoded);
        }
        let length = head.headers().get(CONTENT_LENGTH);
        let length = length.and_then(|length| length.to_str().ok()?.parse().ok());
        let left = length.unwrap_or(u64::MAX);
        let raw = RawBody::new(io, input, left, kept);
        Ok(head.map(|()| ResponseBody::raw(raw)))
    }
}

async fn relay(wish: Wish, input: Bytes, mut io: UnixStream, kept: (Call, Stay)) {
    let relayed = async {
        let mut client = TokioIo::new(wish.0.await.map_err(io::Error::other)?);
        client.write_all(&input).await?;
        copy_bidirectional(&mut client, &mut io).await
    };
    if let Err(error) = relayed.await {
        tracing::debug!(target: "psgi", %error, "an upgraded connection broke");
    }
    drop(kept);
}
