/// The largest value that [`Limits::fields_max`] may take: parsing a head keeps an array of this
/// many fields on the stack.
pub const FIELDS_CEILING: usize = 256;

/// Limits on a request's head and on the framing of a chunked body, beyond which it is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a request's head, from the first byte of the request line to the empty line, and
    /// likewise of a trailer section. More is refused with 431. Default: 65,536.
    pub head_bytes_max: usize,
    /// Header fields in a head, and trailer fields after a body. More is refused with 431.
    /// Default: 100; values over [`FIELDS_CEILING`] count as that.
    pub fields_max: usize,
    /// Bytes of the request target. More is refused with 414. Default: 8,192.
    pub target_bytes_max: usize,
    /// Bytes of one chunk's size line, extensions included. More is refused with 400.
    /// Default: 256.
    pub chunk_line_bytes_max: usize,
    /// Bytes of all chunk extensions of one body. More is refused with 400, so that a body cannot
    /// carry more framing than content for ever. Default: 16,384.
    pub chunk_extension_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            head_bytes_max: 65_536,
            fields_max: 100,
            target_bytes_max: 8_192,
            chunk_line_bytes_max: 256,
            chunk_extension_bytes_max: 16_384,
        }
    }
}
