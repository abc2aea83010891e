use greenroom_http::Limits;

use crate::driver::{Ending, assert_same_in_pieces, run};

const HEAD: &[u8] = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";

/// An accepted chunked body must be what a naive and strict reading makes of it, in whatever
/// pieces it came; the data begins with the length of the pieces.
///
/// # Panics
///
/// On a finding.
pub fn check(data: &[u8]) {
    let Some((&size, body)) = data.split_first() else {
        return;
    };
    let whole = [HEAD, body].concat();
    let pieces: Vec<&[u8]> = whole.chunks(usize::from(size) + 1).collect();
    assert_same_in_pieces(&whole, &pieces, Limits::default());

    let transcript = run([&whole[..]], Limits::default());
    let message = &transcript.messages[0];
    if message.complete {
        assert_eq!(naive(body).as_deref(), Some(&message.body[..]));
    } else {
        assert_ne!(transcript.ending, Ending::Closed);
    }
}

/// The data of the chunks up to the last one, the extensions passed over.
fn naive(mut input: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let end = input.windows(2).position(|pair| pair == b"\r\n")?;
        let line = std::str::from_utf8(input[..end].split(|&byte| byte == b';').next()?).ok()?;
        let size = usize::try_from(u64::from_str_radix(line, 16).ok()?).ok()?;
        input = &input[end + 2..];
        if size == 0 {
            return Some(body);
        }
        body.extend_from_slice(input.get(..size)?);
        input = input[size..].strip_prefix(b"\r\n")?;
    }
}
