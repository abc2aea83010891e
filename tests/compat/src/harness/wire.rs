//! A client's side of one HTTP/1 connection, which assumes nothing about the other side.

use std::fmt::{self, Display, Formatter};
use std::hash::{DefaultHasher, Hasher};
use std::io;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::Log;

/// The longest wait of a client. It runs out only if a server withholds something.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// The most bytes of a body that are logged as they are.
const SHOWN_BYTES_MAX: usize = 200;
const FIELDS_MAX: usize = 128;
const PLAIN_TEXT: &str = "content-type: \"text/plain; charset=utf-8\"";
const PROBE: &[u8] = b"GET /probe HTTP/1.1\r\nHost: compat.test\r\n\r\n";

/// The reason for which a transcript ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Closed,
    Malformed,
    Reset,
    Silent,
}

impl Display for Ending {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Closed => "the connection is closed",
            Self::Malformed => "what comes is no response",
            Self::Reset => "the connection is reset",
            Self::Silent => "nothing comes",
        })
    }
}

/// The framing of the body that is being read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    Chunked,
    Close,
    Length(u64),
    None,
}

#[derive(Debug)]
pub(crate) struct Wire {
    stream: TcpStream,
    input: BytesMut,
    gone: Option<Ending>,
    framing: Framing,
    /// `true` if the last request was a `HEAD`.
    asked_head: bool,
    /// `true` unless the server announced that it closes the connection.
    stays: bool,
}

impl Wire {
    pub(crate) fn new(stream: TcpStream) -> Self {
        Self {
            stream,
            input: BytesMut::new(),
            gone: None,
            framing: Framing::None,
            asked_head: false,
            stays: true,
        }
    }

    /// Sends these bytes, as far as the server takes them, and reads meanwhile: a server may
    /// respond before it has read all, and its response is to be seen.
    pub(crate) async fn send(&mut self, bytes: &[u8]) -> Result<(), Ending> {
        self.asked_head = bytes.starts_with(b"HEAD ");
        match timeout(PATIENCE * 3, self.write(bytes)).await {
            Ok(()) => Ok(()),
            Err(_) => Err(Ending::Silent),
        }
    }

    async fn write(&mut self, mut bytes: &[u8]) {
        let (mut reader, mut writer) = self.stream.split();
        while !bytes.is_empty() {
            tokio::select! {
                read = reader.read_buf(&mut self.input), if self.gone.is_none() => {
                    self.gone = ending_of(&read);
                }
                written = writer.write(bytes) => match written {
                    Ok(count) => bytes = &bytes[count..],
                    Err(_) => return,
                },
            }
        }
    }

    pub(crate) async fn close(&mut self) -> Result<(), Ending> {
        self.stream.shutdown().await.map_err(|_| Ending::Reset)
    }

    /// Reads a response and its body, and those before it that are informational.
    pub(crate) async fn response(&mut self, log: &mut Log) -> Result<(), Ending> {
        loop {
            let status = self.head(log).await?;
            if status == 101 || status >= 200 {
                return self.rest(log).await;
            }
        }
    }

    /// Reads a response whose words are not compared if they are plain text.
    pub(crate) async fn rejection(&mut self, log: &mut Log) -> Result<(), Ending> {
        let mut rejection = Log::new();
        let read = self.response(&mut rejection).await;
        let is_text = rejection.iter().any(|line| line == PLAIN_TEXT);
        let length = rejection
            .iter()
            .position(|line| line.starts_with("content-length: "));
        let body = rejection
            .iter()
            .position(|line| line.starts_with("body \""));
        if let (true, Some(length), Some(body)) = (is_text, length, body) {
            rejection[body] = String::from("body: the reason in words");
            rejection[length] = String::from("content-length: of these words");
        }
        log.append(&mut rejection);
        read
    }

    /// Reads a head. Returns its status.
    pub(crate) async fn head(&mut self, log: &mut Log) -> Result<u16, Ending> {
        loop {
            if let Some(status) = self.parse_head(log)? {
                return Ok(status);
            }
            self.fill().await?;
        }
    }

    fn parse_head(&mut self, log: &mut Log) -> Result<Option<u16>, Ending> {
        let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
        let mut head = httparse::Response::new(&mut fields);
        let used = match head.parse(&self.input) {
            Ok(httparse::Status::Complete(used)) => used,
            Ok(httparse::Status::Partial) => return Ok(None),
            Err(_) => {
                log.push(shown("what comes", &self.input));
                return Err(Ending::Malformed);
            }
        };
        let (minor, status) = (head.version.unwrap_or(9), head.code.unwrap_or(0));
        let reason = head.reason.unwrap_or_default();
        log.push(format!("HTTP/1.{minor} {status} {reason}"));
        let mut lines: Vec<_> = head.headers.iter().map(line_of_field).collect();
        lines.sort_by(|(name, _), (other, _)| name.cmp(other));
        self.framing = framing(status, self.asked_head, &lines);
        let says = |word: &str| lines.contains(&("connection".to_owned(), format!("\"{word}\"")));
        self.stays = match minor {
            0 => says("keep-alive"),
            _ => !says("close") && self.framing != Framing::Close,
        };
        // Dates differ between any two responses, so only their absence can be compared.
        let (dates, others): (Vec<_>, Vec<_>) =
            lines.into_iter().partition(|(name, _)| name == "date");
        log.extend(
            others
                .iter()
                .map(|(name, value)| format!("{name}: {value}")),
        );
        if dates.is_empty() && status >= 200 {
            log.push("no date".to_owned());
        }
        self.input.advance(used);
        Ok(Some(status))
    }

    /// Reads one chunk, or the end of a chunked body.
    pub(crate) async fn chunk(&mut self, log: &mut Log) -> Result<(), Ending> {
        match self.read_chunk().await? {
            Some(chunk) => log.push(shown("chunk", &chunk)),
            None => self.trailers(log).await?,
        }
        Ok(())
    }

    /// Reads this many bytes.
    pub(crate) async fn bytes(&mut self, count: usize, log: &mut Log) -> Result<(), Ending> {
        let bytes = self.take(count).await?;
        if let Framing::Length(left) = &mut self.framing {
            *left = left.saturating_sub(bytes.len() as u64);
        }
        log.push(shown("bytes", &bytes));
        Ok(())
    }

    /// Reads the rest of a body.
    pub(crate) async fn rest(&mut self, log: &mut Log) -> Result<(), Ending> {
        let mut body = BytesMut::new();
        let gathered = self.gather(&mut body).await;
        if self.framing != Framing::None {
            log.push(shown("body", &body));
        }
        gathered?;
        if self.framing == Framing::Chunked {
            self.trailers(log).await?;
        }
        Ok(())
    }

    async fn gather(&mut self, body: &mut BytesMut) -> Result<(), Ending> {
        match self.framing {
            Framing::None => Ok(()),
            Framing::Chunked => {
                while let Some(chunk) = self.read_chunk().await? {
                    body.extend_from_slice(&chunk);
                }
                Ok(())
            }
            Framing::Length(length) => {
                let mut left = length;
                loop {
                    let here = usize::try_from(left).unwrap().min(self.input.len());
                    body.extend_from_slice(&self.input.split_to(here));
                    left -= here as u64;
                    if left == 0 {
                        return Ok(());
                    }
                    self.fill().await?;
                }
            }
            Framing::Close => loop {
                body.extend_from_slice(&self.input.split());
                match self.fill().await {
                    Ok(()) => {}
                    Err(Ending::Closed) => return Ok(()),
                    Err(ending) => return Err(ending),
                }
            },
        }
    }

    /// Reads a chunk and its end; `None` for the last, whose trailers are still to be read.
    async fn read_chunk(&mut self) -> Result<Option<Bytes>, Ending> {
        let line = self.line().await?;
        let size = std::str::from_utf8(&line).ok();
        let size = size.and_then(|text| usize::from_str_radix(text, 16).ok());
        match size.ok_or(Ending::Malformed)? {
            0 => Ok(None),
            size => {
                let chunk = self.take(size).await?;
                let end = self.take(2).await?;
                let is_ended = *end == *b"\r\n";
                is_ended.then_some(Some(chunk)).ok_or(Ending::Malformed)
            }
        }
    }

    async fn trailers(&mut self, log: &mut Log) -> Result<(), Ending> {
        loop {
            let line = self.line().await?;
            if line.is_empty() {
                log.push("end of the body".to_owned());
                self.framing = Framing::None;
                return Ok(());
            }
            log.push(shown("trailer", &line));
        }
    }

    async fn line(&mut self) -> Result<Bytes, Ending> {
        loop {
            let end = self.input.windows(2).position(|pair| pair == b"\r\n");
            if let Some(end) = end {
                let line = self.input.split_to(end).freeze();
                self.input.advance(2);
                return Ok(line);
            }
            self.fill().await?;
        }
    }

    async fn take(&mut self, count: usize) -> Result<Bytes, Ending> {
        while self.input.len() < count {
            self.fill().await?;
        }
        Ok(self.input.split_to(count).freeze())
    }

    /// Logs the state of the connection after its last response.
    pub(crate) async fn end(&mut self, log: &mut Log) -> Result<(), Ending> {
        if self.stays {
            self.asked_head = false;
            self.send(PROBE).await?;
            let mut unseen = Log::new();
            let is_kept = self.response(&mut unseen).await.is_ok();
            let text = if is_kept {
                "the connection is kept"
            } else {
                "the connection ends, which was not announced"
            };
            log.push(text.to_owned());
            return Ok(());
        }
        Err(self.drain(log).await)
    }

    /// Logs that the connection ends.
    pub(crate) async fn ended(&mut self, log: &mut Log) -> Result<(), Ending> {
        match self.drain(log).await {
            Ending::Closed | Ending::Reset => {
                log.push("the connection ended".to_owned());
                Ok(())
            }
            ending => Err(ending),
        }
    }

    async fn drain(&mut self, log: &mut Log) -> Ending {
        let ending = loop {
            if let Err(ending) = self.fill().await {
                break ending;
            }
        };
        if !self.input.is_empty() {
            log.push(shown("more", &self.input));
        }
        ending
    }

    async fn fill(&mut self) -> Result<(), Ending> {
        if let Some(ending) = self.gone {
            return Err(ending);
        }
        let read = timeout(PATIENCE, self.stream.read_buf(&mut self.input)).await;
        self.gone = ending_of(&read.map_err(|_| Ending::Silent)?);
        self.gone.map_or(Ok(()), Err)
    }
}

fn ending_of(read: &io::Result<usize>) -> Option<Ending> {
    match read {
        Ok(0) => Some(Ending::Closed),
        Ok(_) => None,
        Err(_) => Some(Ending::Reset),
    }
}

/// Returns the name in lower case, and the value.
fn line_of_field(field: &httparse::Header<'_>) -> (String, String) {
    (field.name.to_ascii_lowercase(), quoted(field.value))
}

fn framing(status: u16, asked_head: bool, fields: &[(String, String)]) -> Framing {
    let value = |name: &str| {
        let mut fields = fields.iter();
        let field = fields.find(|(field, _)| field == name);
        field.map(|(_, value)| value.trim_matches('"'))
    };
    if asked_head || matches!(status, 100..=199 | 204 | 304) {
        return Framing::None;
    }
    if value("transfer-encoding").is_some() {
        return Framing::Chunked;
    }
    match value("content-length").map(str::parse) {
        Some(Ok(length)) => Framing::Length(length),
        _ => Framing::Close,
    }
}

/// Shows a short text as it is, a long one by its length and checksum.
pub(crate) fn shown(what: &str, bytes: &[u8]) -> String {
    format!("{what} {}", quoted(bytes))
}

fn quoted(bytes: &[u8]) -> String {
    if bytes.len() <= SHOWN_BYTES_MAX {
        return format!("\"{}\"", bytes.escape_ascii());
    }
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    let checksum = hasher.finish();
    format!("of {} bytes, {checksum:016x}", bytes.len())
}
