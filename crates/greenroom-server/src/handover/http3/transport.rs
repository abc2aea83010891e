//! QUIC, as h3 wants it. It is not h3-quinn that stands between the two: a frame must not be longer
//! than allowed, what the client has taken must be known, and a response that is cut short must not
//! look as if it were whole.

use std::cell::RefCell;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use h3::error::Code;
use h3::quic::{self, ConnectionErrorIncoming, StreamErrorIncoming, StreamId, WriteBuf};
use quinn::{ConnectionError, ReadError, VarInt, WriteError};

use super::frames::Frames;
use super::own::{self, OwnStream, OwnStreams};
use super::streams::{Stream, Streams};
use crate::handover::body::Part;

/// Most bytes that are read at once.
pub(super) const READ_BYTES_MAX: usize = 64 * 1_024;
/// Chunks and pieces of a stream that are looked at before others of the loop get their turn.
const STEPS_MAX: usize = 128;
/// Times that streams which nobody reads are looked at before others of the loop get their turn.
const CHUNKS_MAX: usize = 16;

/// Streams of one direction that h3 leaves unread, those of QPACK among them: what came on them
/// would be held for as long as the connection is there.
type Unread = Rc<RefCell<Vec<quinn::RecvStream>>>;

type Accepting<S> = Pin<Box<dyn Future<Output = Result<S, ConnectionError>>>>;

/// A connection.
pub(super) struct Connection {
    opener: Opener,
    requests: Accepting<(quinn::SendStream, quinn::RecvStream)>,
    others: Accepting<quinn::RecvStream>,
    unread: Unread,
    streams: Rc<Streams>,
    head_bytes_max: usize,
}

/// Opens the server's own streams.
pub(super) struct Opener {
    connection: quinn::Connection,
    opening: Option<Accepting<quinn::SendStream>>,
    own: OwnStreams,
}

/// Both directions of a request's stream.
pub(super) struct BidiStream {
    send: SendStream,
    receive: RecvStream,
}

pub(super) struct SendStream {
    quic: quinn::SendStream,
    writing: Option<WriteBuf<Part>>,
    of: Rc<Stream>,
}

pub(super) struct RecvStream {
    /// None once it is among those that are left unread.
    quic: Option<quinn::RecvStream>,
    id: StreamId,
    frames: Frames,
    is_ended: bool,
    /// Chunks and pieces since others had their turn.
    steps: usize,
    unread: Unread,
    of: Option<Rc<Stream>>,
}

impl Connection {
    /// Of `connection`, whose requests may have frames of so many bytes, but for content.
    pub(super) fn new(
        connection: quinn::Connection,
        streams: Rc<Streams>,
        head_bytes_max: usize,
    ) -> Self {
        Self {
            requests: next_request(connection.clone()),
            others: next_other(connection.clone()),
            unread: Unread::default(),
            opener: Opener {
                connection,
                opening: None,
                own: OwnStreams::default(),
            },
            streams,
            head_bytes_max,
        }
    }
}

impl RecvStream {
    fn new(
        quic: quinn::RecvStream,
        frames: Frames,
        unread: &Unread,
        of: Option<Rc<Stream>>,
    ) -> Self {
        Self {
            id: id(quic.id()),
            quic: Some(quic),
            frames,
            is_ended: false,
            steps: 0,
            unread: Rc::clone(unread),
            of,
        }
    }

    /// Takes the next chunk; `false` at the end of the stream.
    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Result<bool, StreamErrorIncoming>> {
        let Some(quic) = &mut self.quic else {
            return Poll::Pending;
        };
        // It keeps nothing while it waits, so each poll may be another's.
        let read = pin!(quic.read_chunk(READ_BYTES_MAX, true)).poll(cx);
        let Some(chunk) = ready!(read).map_err(not_read)? else {
            self.is_ended = true;
            return Poll::Ready(Ok(false));
        };
        let of = self.of.as_ref();
        if !of.is_none_or(|of| of.receive(chunk.bytes.len())) {
            return Poll::Ready(Err(self.refuse()));
        }
        self.frames.add(chunk.bytes);
        Poll::Ready(Ok(true))
    }

    /// Returns what is left at the end of the stream. h3 sees whether a frame is whole, but for
    /// content.
    fn end(&mut self) -> Result<Option<Bytes>, StreamErrorIncoming> {
        let cut = self.frames.take_cut();
        match &self.of {
            Some(of) if self.frames.is_in_content() => {
                of.streams().close(Code::H3_FRAME_ERROR);
                Err(StreamErrorIncoming::ConnectionErrorIncoming {
                    connection_error: lost(ConnectionError::LocallyClosed),
                })
            }
            _ => Ok(cut),
        }
    }

    /// Ends it because the client sends too much.
    fn refuse(&mut self) -> StreamErrorIncoming {
        let code = Code::H3_EXCESSIVE_LOAD;
        if let Some(of) = &self.of {
            of.reset_with(code);
        }
        let error_code = code.value();
        StreamErrorIncoming::StreamTerminated { error_code }
    }
}

/// Drops what came on streams that nobody reads.
fn discard(unread: &Unread, cx: &mut Context<'_>) {
    for _ in 0..CHUNKS_MAX {
        let mut is_over = true;
        unread.borrow_mut().retain_mut(|stream| {
            match pin!(stream.read_chunk(READ_BYTES_MAX, false)).poll(cx) {
                Poll::Pending => true,
                Poll::Ready(Ok(Some(_))) => {
                    is_over = false;
                    true
                }
                Poll::Ready(Ok(None) | Err(_)) => false,
            }
        });
        if is_over {
            return;
        }
    }
    cx.waker().wake_by_ref();
}

fn next_request(
    connection: quinn::Connection,
) -> Accepting<(quinn::SendStream, quinn::RecvStream)> {
    Box::pin(async move { connection.accept_bi().await })
}

fn next_other(connection: quinn::Connection) -> Accepting<quinn::RecvStream> {
    Box::pin(async move { connection.accept_uni().await })
}

impl quic::Connection<Part> for Connection {
    type RecvStream = RecvStream;
    type OpenStreams = Opener;

    fn poll_accept_recv(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<RecvStream, ConnectionErrorIncoming>> {
        discard(&self.unread, cx);
        own::send(&self.opener.own, cx);
        let accepted = ready!(self.others.as_mut().poll(cx));
        self.others = next_other(self.opener.connection.clone());
        let accepted = accepted.map_err(lost);
        Poll::Ready(accepted.map(|quic| {
            let frames = Frames::of_one_direction();
            RecvStream::new(quic, frames, &self.unread, None)
        }))
    }

    fn poll_accept_bidi(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<BidiStream, ConnectionErrorIncoming>> {
        let accepted = ready!(self.requests.as_mut().poll(cx));
        self.requests = next_request(self.opener.connection.clone());
        Poll::Ready(accepted.map_err(lost).map(|(send, receive)| {
            let stream = self.streams.begin(&send);
            BidiStream {
                send: SendStream {
                    quic: send,
                    writing: None,
                    of: Rc::clone(&stream),
                },
                receive: RecvStream::new(
                    receive,
                    Frames::of_request(self.head_bytes_max),
                    &self.unread,
                    Some(stream),
                ),
            }
        }))
    }

    fn opener(&self) -> Opener {
        Opener {
            connection: self.opener.connection.clone(),
            opening: None,
            own: Rc::clone(&self.opener.own),
        }
    }
}

impl quic::OpenStreams<Part> for Connection {
    type BidiStream = BidiStream;
    type SendStream = OwnStream;

    fn poll_open_bidi(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<BidiStream, StreamErrorIncoming>> {
        self.opener.poll_open_bidi(cx)
    }

    fn poll_open_send(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<OwnStream, StreamErrorIncoming>> {
        self.opener.poll_open_send(cx)
    }

    fn close(&mut self, code: Code, reason: &[u8]) {
        quic::OpenStreams::<Part>::close(&mut self.opener, code, reason);
    }
}

impl quic::OpenStreams<Part> for Opener {
    type BidiStream = BidiStream;
    type SendStream = OwnStream;

    fn poll_open_bidi(
        &mut self,
        _cx: &mut Context<'_>,
    ) -> Poll<Result<BidiStream, StreamErrorIncoming>> {
        let never = "a server opens no streams of both directions (RFC 9114, 6.1)";
        Poll::Ready(Err(StreamErrorIncoming::Unknown(never.into())))
    }

    fn poll_open_send(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<OwnStream, StreamErrorIncoming>> {
        let opening = self.opening.get_or_insert_with(|| {
            let connection = self.connection.clone();
            Box::pin(async move { connection.open_uni().await })
        });
        let opened = ready!(opening.as_mut().poll(cx));
        self.opening = None;
        let quic = opened.map_err(|error| StreamErrorIncoming::ConnectionErrorIncoming {
            connection_error: lost(error),
        })?;
        Poll::Ready(Ok(OwnStream::new(quic, &self.own)))
    }

    fn close(&mut self, code: Code, reason: &[u8]) {
        self.connection.close(number(code.value()), reason);
    }
}

impl SendStream {
    fn poll_written(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        while let Some(data) = &mut self.writing {
            let rest = data.remaining();
            if rest == 0 {
                break;
            }
            let written = Pin::new(&mut self.quic).poll_write(cx, data.chunk());
            match written {
                Poll::Pending => {
                    self.of.wait(rest);
                    return Poll::Pending;
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Err(not_written(error))),
                Poll::Ready(Ok(bytes)) => {
                    data.advance(bytes);
                    self.of.take(bytes);
                }
            }
        }
        self.writing = None;
        Poll::Ready(Ok(()))
    }
}

impl quic::SendStream<Part> for SendStream {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        self.poll_written(cx)
    }

    fn send_data<T: Into<WriteBuf<Part>>>(&mut self, data: T) -> Result<(), StreamErrorIncoming> {
        if self.writing.is_some() {
            return Err(StreamErrorIncoming::Unknown("a write is under way".into()));
        }
        self.writing = Some(data.into());
        Ok(())
    }

    fn poll_finish(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        let finished = self.quic.finish();
        Poll::Ready(finished.map_err(|error| StreamErrorIncoming::Unknown(error.into())))
    }

    fn reset(&mut self, code: u64) {
        // An error means that it has ended.
        let _reset = self.quic.reset(number(code));
    }

    fn send_id(&self) -> StreamId {
        id(self.quic.id())
    }
}

/// A stream that is dropped is finished by quinn, as if the response were whole.
impl Drop for SendStream {
    fn drop(&mut self) {
        if let Some(code) = self.of.reset_code() {
            let _reset = self.quic.reset(number(code.value()));
        }
    }
}

impl quic::RecvStream for RecvStream {
    type Buf = Bytes;

    fn poll_data(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, StreamErrorIncoming>> {
        while self.steps < STEPS_MAX {
            self.steps += 1;
            let Ok(piece) = self.frames.next_piece() else {
                return Poll::Ready(Err(self.refuse()));
            };
            if self.frames.are_none() && self.quic.is_some() {
                self.unread.borrow_mut().extend(self.quic.take());
                // To be looked at from now on.
                cx.waker().wake_by_ref();
            }
            match piece {
                Some(piece) if piece.is_empty() => {}
                Some(piece) => return Poll::Ready(Ok(Some(piece))),
                None => match self.poll_chunk(cx)? {
                    Poll::Ready(true) => {}
                    Poll::Ready(false) => return Poll::Ready(self.end()),
                    Poll::Pending => {
                        self.steps = 0;
                        return Poll::Pending;
                    }
                },
            }
        }
        self.steps = 0;
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn stop_sending(&mut self, code: u64) {
        if let Some(quic) = &mut self.quic {
            // An error means that it has ended.
            let _stopped = quic.stop(number(code));
        }
    }

    fn recv_id(&self) -> StreamId {
        self.id
    }
}

/// The rest of a request that has its response needs not be sent (RFC 9114, 4.1).
impl Drop for RecvStream {
    fn drop(&mut self) {
        if self.is_ended {
            return;
        }
        let code = self.of.as_ref().and_then(|of| of.reset_code());
        let code = code.unwrap_or(Code::H3_NO_ERROR);
        quic::RecvStream::stop_sending(self, code.value());
    }
}

impl quic::SendStream<Part> for BidiStream {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        self.send.poll_ready(cx)
    }

    fn send_data<T: Into<WriteBuf<Part>>>(&mut self, data: T) -> Result<(), StreamErrorIncoming> {
        self.send.send_data(data)
    }

    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        self.send.poll_finish(cx)
    }

    fn reset(&mut self, code: u64) {
        self.send.reset(code);
    }

    fn send_id(&self) -> StreamId {
        self.send.send_id()
    }
}

impl quic::RecvStream for BidiStream {
    type Buf = Bytes;

    fn poll_data(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, StreamErrorIncoming>> {
        self.receive.poll_data(cx)
    }

    fn stop_sending(&mut self, code: u64) {
        self.receive.stop_sending(code);
    }

    fn recv_id(&self) -> StreamId {
        self.receive.recv_id()
    }
}

impl quic::BidiStream<Part> for BidiStream {
    type SendStream = SendStream;
    type RecvStream = RecvStream;

    fn split(self) -> (SendStream, RecvStream) {
        (self.send, self.receive)
    }
}

pub(super) fn number(code: u64) -> VarInt {
    VarInt::from_u64(code).unwrap_or(VarInt::MAX)
}

pub(super) fn id(id: quinn::StreamId) -> StreamId {
    let id = VarInt::from(id).into_inner();
    id.try_into().expect("both are numbers of QUIC")
}

fn lost(error: ConnectionError) -> ConnectionErrorIncoming {
    match error {
        ConnectionError::ApplicationClosed(closed) => ConnectionErrorIncoming::ApplicationClose {
            error_code: closed.error_code.into_inner(),
        },
        ConnectionError::TimedOut => ConnectionErrorIncoming::Timeout,
        error => ConnectionErrorIncoming::Undefined(Arc::new(error)),
    }
}

pub(super) fn not_written(error: WriteError) -> StreamErrorIncoming {
    match error {
        WriteError::Stopped(code) => StreamErrorIncoming::StreamTerminated {
            error_code: code.into_inner(),
        },
        WriteError::ConnectionLost(error) => StreamErrorIncoming::ConnectionErrorIncoming {
            connection_error: lost(error),
        },
        error => StreamErrorIncoming::Unknown(Box::new(error)),
    }
}

fn not_read(error: ReadError) -> StreamErrorIncoming {
    match error {
        ReadError::Reset(code) => StreamErrorIncoming::StreamTerminated {
            error_code: code.into_inner(),
        },
        ReadError::ConnectionLost(error) => StreamErrorIncoming::ConnectionErrorIncoming {
            connection_error: lost(error),
        },
        error => StreamErrorIncoming::Unknown(Box::new(error)),
    }
}
