//! Frames, as PROTOCOL.md describes them: a length of four bytes, a type of one, a payload.

/// The bytes of a frame's length.
const LENGTH_BYTES: usize = 4;

/// The longest frame that is accepted from a Perl process, type included: 16 MiB. A whole body is
/// at most 128 KiB; only the pieces that an application writes at once can be longer, and the
/// worker splits those at the stream's window.
pub(crate) const FRAME_BYTES_MAX: usize = 16 * 1_024 * 1_024;

/// One frame of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame<'a> {
    pub(crate) kind: u8,
    pub(crate) payload: &'a [u8],
}

/// A length that no frame has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a frame of {0} bytes; 1 to {FRAME_BYTES_MAX} are allowed")]
pub(crate) struct BadLength(usize);

/// Returns the first frame of `input` and the bytes that it takes; `None` while it is not complete.
pub(crate) fn split(input: &[u8]) -> Result<Option<(Frame<'_>, usize)>, BadLength> {
    let Some((length, rest)) = input.split_first_chunk::<LENGTH_BYTES>() else {
        return Ok(None);
    };
    let length = u32::from_be_bytes(*length) as usize;
    // A frame has at least its type.
    if length == 0 || length > FRAME_BYTES_MAX {
        return Err(BadLength(length));
    }
    let Some((kind, payload)) = rest.get(..length).and_then(<[u8]>::split_first) else {
        return Ok(None);
    };
    let frame = Frame {
        kind: *kind,
        payload,
    };
    Ok(Some((frame, LENGTH_BYTES + length)))
}

/// Appends a frame whose payload `fill` writes.
pub(crate) fn append(out: &mut Vec<u8>, kind: u8, fill: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; LENGTH_BYTES]);
    out.push(kind);
    fill(out);
    let length = out.len() - start - LENGTH_BYTES;
    let length = u32::try_from(length).expect("what is sent to a worker is shorter than 4 GiB");
    out[start..start + LENGTH_BYTES].copy_from_slice(&length.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_appended_is_split_again() {
        let mut bytes = Vec::new();
        append(&mut bytes, b'F', |out| {
            out.extend_from_slice(&7_u32.to_be_bytes());
        });
        append(&mut bytes, b'Q', |_| {});
        let (first, taken) = split(&bytes)
            .expect("its length is fine")
            .expect("it is whole");
        assert_eq!((first.kind, first.payload), (b'F', &[0, 0, 0, 7][..]));
        let (second, end) = split(&bytes[taken..])
            .expect("its length is fine")
            .expect("it is whole");
        assert_eq!(
            (second.kind, second.payload, taken + end),
            (b'Q', &[][..], bytes.len())
        );
    }

    #[test]
    fn a_frame_that_is_not_whole_is_waited_for() {
        for bytes in [&[][..], &[0, 0, 0], &[0, 0, 0, 2], &[0, 0, 0, 2, b'R']] {
            assert_eq!(split(bytes), Ok(None));
        }
    }

    #[test]
    fn a_length_out_of_bounds_is_refused() {
        assert_eq!(split(&[0, 0, 0, 0]), Err(BadLength(0)));
        assert_eq!(split(&[255; 4]), Err(BadLength(0xffff_ffff)));
    }
}
