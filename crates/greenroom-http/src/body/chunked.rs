use http::{HeaderMap, HeaderName, HeaderValue};

use super::{Step, take};
use crate::head::{self, Searched};
use crate::limits::FIELDS_CEILING;
use crate::{Limits, Reason, Rejected};

/// A 64-bit number has at most this many hexadecimal digits.
const SIZE_DIGITS_MAX: u32 = 16;

/// A body in chunks (RFC 9112, 7.1), read strictly: no whitespace around sizes and extensions,
/// every line ends in CR LF.
#[derive(Debug, Default)]
pub(crate) struct Chunked {
    at: At,
    left: u64,
    digits: u32,
    line_bytes: usize,
    extension_bytes: usize,
    searched: Searched,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum At {
    #[default]
    Size,
    Extension(Extension),
    SizeLf,
    Data,
    DataCr,
    DataLf,
    Trailers,
    End,
}

/// A position in the grammar `*( ";" name [ "=" ( token / quoted-string ) ] )`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extension {
    NameStart,
    Name,
    ValueStart,
    Token,
    Quoted,
    QuotedPair,
    QuotedEnd,
}

impl Chunked {
    pub(super) fn decode<'a>(
        &mut self,
        input: &'a [u8],
        limits: &Limits,
    ) -> Result<(usize, Step<'a>), Rejected> {
        let mut used = 0;
        loop {
            let rest = &input[used..];
            match self.at {
                At::End => return Ok((used, Step::End)),
                At::Trailers => {
                    let (length, step) = self.trailers(rest, limits)?;
                    return Ok((used + length, step));
                }
                _ if rest.is_empty() => return Ok((used, Step::NeedMore)),
                At::Data => {
                    let data = take(rest, &mut self.left);
                    if self.left == 0 {
                        self.at = At::DataCr;
                    }
                    return Ok((used + data.len(), Step::Data(data)));
                }
                _ => self.framing_byte(rest[0], limits)?,
            }
            used += 1;
        }
    }

    fn framing_byte(&mut self, byte: u8, limits: &Limits) -> Result<(), Reason> {
        match (self.at, byte) {
            (At::DataCr, b'\r') => self.at = At::DataLf,
            (At::DataLf, b'\n') => self.next_chunk(),
            (At::DataCr | At::DataLf, _) => return Err(Reason::ChunkEnd),
            _ => self.size_line_byte(byte, limits)?,
        }
        Ok(())
    }

    fn size_line_byte(&mut self, byte: u8, limits: &Limits) -> Result<(), Reason> {
        self.line_bytes += 1;
        if self.line_bytes > limits.chunk_line_bytes_max {
            return Err(Reason::ChunkExtension);
        }
        match (self.at, byte) {
            (At::SizeLf, b'\n') => self.size_complete(),
            (At::SizeLf, _) => return Err(Reason::BareLineEnd),
            (At::Extension(extension), _) => self.extension_byte(extension, byte, limits)?,
            _ => self.size_byte(byte)?,
        }
        Ok(())
    }

    fn next_chunk(&mut self) {
        self.at = At::Size;
        self.digits = 0;
        self.line_bytes = 0;
    }

    fn size_complete(&mut self) {
        self.at = if self.left == 0 {
            At::Trailers
        } else {
            At::Data
        };
    }

    fn size_byte(&mut self, byte: u8) -> Result<(), Reason> {
        if let Some(digit) = char::from(byte).to_digit(16) {
            self.digits += 1;
            if self.digits > SIZE_DIGITS_MAX {
                return Err(Reason::ChunkSize);
            }
            self.left = self.left << 4 | u64::from(digit);
            return Ok(());
        }
        self.at = match byte {
            _ if self.digits == 0 => return Err(Reason::ChunkSize),
            b'\r' => At::SizeLf,
            b';' => At::Extension(Extension::NameStart),
            _ => return Err(Reason::ChunkSize),
        };
        Ok(())
    }

    fn extension_byte(
        &mut self,
        extension: Extension,
        byte: u8,
        limits: &Limits,
    ) -> Result<(), Reason> {
        self.extension_bytes += 1;
        if self.extension_bytes > limits.chunk_extension_bytes_max {
            return Err(Reason::ChunkExtension);
        }
        self.at = match next_in_extension(extension, byte) {
            Some(at) => at,
            None => return Err(Reason::ChunkExtension),
        };
        Ok(())
    }

    /// Reads the trailer section once it is complete (RFC 9112, 7.1.2).
    fn trailers<'a>(
        &mut self,
        input: &'a [u8],
        limits: &Limits,
    ) -> Result<(usize, Step<'a>), Rejected> {
        if input.starts_with(b"\r\n") {
            self.at = At::End;
            return Ok((2, Step::End));
        }
        if !self.searched.is_worth_parsing(input, limits) {
            return Ok((0, Step::NeedMore));
        }
        let window = &input[..input.len().min(limits.head_bytes_max)];
        let mut storage = [httparse::EMPTY_HEADER; FIELDS_CEILING];
        let fields = &mut storage[..limits.fields_max.min(FIELDS_CEILING)];
        match httparse::parse_headers(window, fields) {
            Ok(httparse::Status::Complete((length, fields))) => {
                let start = window.as_ptr() as usize;
                head::refuse_bare_line_ends(&window[..length], start, fields)?;
                self.at = At::End;
                Ok((length, Step::Trailers(Box::new(trailer_map(fields)?))))
            }
            Ok(httparse::Status::Partial) if window.len() >= limits.head_bytes_max => {
                Err(Reason::HeadTooLarge.into())
            }
            Ok(httparse::Status::Partial) => {
                self.searched.note(input);
                Ok((0, Step::NeedMore))
            }
            Err(httparse::Error::TooManyHeaders) => Err(Reason::TooManyFields.into()),
            Err(httparse::Error::NewLine) => Err(Reason::BareLineEnd.into()),
            Err(_) => Err(Reason::Field.into()),
        }
    }
}

/// Returns the position after `byte`; `None` if the grammar has no such byte here.
fn next_in_extension(extension: Extension, byte: u8) -> Option<At> {
    use Extension::{Name, NameStart, Quoted, QuotedEnd, QuotedPair, Token, ValueStart};
    let next = match (extension, byte) {
        (Name | Token | QuotedEnd, b'\r') => return Some(At::SizeLf),
        (Name | Token | QuotedEnd, b';') => NameStart,
        (Name, b'=') => ValueStart,
        (NameStart | Name, byte) if is_token_byte(byte) => Name,
        (ValueStart, b'"') => Quoted,
        (ValueStart | Token, byte) if is_token_byte(byte) => Token,
        (Quoted, b'"') => QuotedEnd,
        (Quoted, b'\\') => QuotedPair,
        (Quoted | QuotedPair, byte) if is_text_byte(byte) => Quoted,
        _ => return None,
    };
    Some(At::Extension(next))
}

fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

fn is_text_byte(byte: u8) -> bool {
    byte == b'\t' || (byte >= b' ' && byte != 0x7f)
}

fn trailer_map(fields: &[httparse::Header<'_>]) -> Result<HeaderMap, Reason> {
    let mut map = HeaderMap::with_capacity(fields.len());
    for field in fields {
        let name = HeaderName::from_bytes(field.name.as_bytes()).map_err(|_| Reason::Field)?;
        if is_framing(&name) {
            return Err(Reason::ForbiddenTrailer);
        }
        let value = HeaderValue::from_bytes(field.value).map_err(|_| Reason::Field)?;
        map.append(name, value);
    }
    Ok(map)
}

/// Returns `true` for fields that say where a message ends or goes, which have no meaning after it
/// (RFC 9110, 6.5.1).
pub(crate) fn is_framing(name: &HeaderName) -> bool {
    matches!(
        name.as_str(),
        "connection"
            | "content-length"
            | "host"
            | "keep-alive"
            | "te"
            | "trailer"
            | "transfer-encoding"
            | "upgrade"
    )
}
