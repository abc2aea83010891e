//! Counting request heads: as little of HTTP as a benchmark client forces on a server.

use memchr::memmem;

/// The requests in a run of bytes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Heads {
    /// Complete heads found.
    pub(crate) count: usize,
    /// Bytes up to the end of the last complete head.
    pub(crate) consumed: usize,
    /// The last head ends the connection.
    pub(crate) close: bool,
}

/// Counts the heads in `input`, up to and including the first that asks to close.
pub(crate) fn count(input: &[u8]) -> Heads {
    let mut heads = Heads::default();
    while !heads.close {
        let rest = &input[heads.consumed..];
        let Some(end) = memmem::find(rest, b"\r\n\r\n") else {
            break;
        };
        heads.close = asks_to_close(&rest[..end + 2]);
        heads.consumed += end + 4;
        heads.count += 1;
    }
    heads
}

fn asks_to_close(head: &[u8]) -> bool {
    let has = |needle: &[u8]| memmem::find(head, needle).is_some();
    if has(b" HTTP/1.1\r\n") {
        has(b"\nConnection: close\r\n") || has(b"\nconnection: close\r\n")
    } else {
        !has(b"\nConnection: Keep-Alive\r\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pipelined_heads_are_counted_and_the_rest_is_left() {
        let heads = count(b"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\n\r\nGET /");
        let expected = Heads {
            count: 2,
            consumed: 45,
            close: false,
        };
        assert_eq!(heads, expected);
    }

    #[test]
    fn http_1_0_closes_unless_it_asks_to_stay() {
        assert!(count(b"GET / HTTP/1.0\r\n\r\n").close);
        assert!(!count(b"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n").close);
        assert!(count(b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n").close);
    }
}
