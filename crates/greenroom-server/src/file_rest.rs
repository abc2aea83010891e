use std::cell::RefCell;
use std::fs::File;
use std::ops::Range;
use std::sync::Arc;

use scoped_tls::scoped_thread_local;

scoped_thread_local!(static OFFERED: RefCell<Option<Offer>>);

/// The rest of a body that is a file's: a connection sends it from the page cache, without a copy
/// (`sendfile(2)`), where it can.
///
/// A body [offers](Self::offer) it with a frame that it yields. Where the offer is taken, the body
/// is polled no more. So only a body may offer it around which nothing stands but what passes
/// frames on as they are, and needs to see none of them.
///
/// What is not in memory is read by a thread that may wait for the disk, before it is sent.
#[derive(Clone, Debug)]
pub struct FileRest {
    file: Arc<File>,
    offset: u64,
    length: u64,
}

/// A rest, and the frame that it was offered with.
#[derive(Debug)]
pub(crate) struct Offer {
    frame: Range<*const u8>,
    rest: FileRest,
}

impl FileRest {
    /// The rest is `length` bytes from `offset` on. Where the file system does not know
    /// `RWF_NOWAIT` (`preadv2(2)`), a thread reads all of it before it is sent, and it is better
    /// not offered.
    #[must_use]
    pub fn new(file: Arc<File>, offset: u64, length: u64) -> Self {
        Self {
            file,
            offset,
            length,
        }
    }

    /// Offers to send this behind `frame`, which the body is about to yield. It is taken if the
    /// connection polls the body itself, gets the very same bytes (not a copy of them), has
    /// promised over 64 KiB more by `Content-Length`, no more of them than the rest has, and
    /// encrypts nothing. Otherwise nothing happens, and the body is polled as ever.
    pub fn offer(self, frame: &[u8]) {
        if OFFERED.is_set() {
            let frame = frame.as_ptr_range();
            OFFERED.with(|offered| offered.replace(Some(Offer { frame, rest: self })));
        }
    }

    pub(crate) fn into_parts(self) -> (Arc<File>, u64, u64) {
        (self.file, self.offset, self.length)
    }
}

impl Offer {
    /// Polls a body, which may make an offer.
    pub(crate) fn during<T>(poll: impl FnOnce() -> T) -> (T, Option<Self>) {
        let offered = RefCell::new(None);
        let polled = OFFERED.set(&offered, poll);
        (polled, offered.into_inner())
    }

    /// Returns the rest behind this frame, if it was offered with it and is at least so long.
    pub(crate) fn behind(self, frame: &[u8], bytes: u64) -> Option<FileRest> {
        let Self { frame: of, rest } = self;
        if bytes == 0 || rest.length < bytes || of != frame.as_ptr_range() {
            return None;
        }
        Some(FileRest {
            length: bytes,
            ..rest
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rest(length: u64) -> std::io::Result<FileRest> {
        let file = Arc::new(tempfile::tempfile()?);
        Ok(FileRest::new(file, 9, length))
    }

    #[test]
    fn an_offer_is_for_the_very_frame_and_for_as_much_as_was_promised() -> std::io::Result<()> {
        let frame = vec![1; 9];
        for (seen, promised, taken) in [
            (&frame[..], 100, Some(100)),
            (&frame[..], 40, Some(40)),
            (&frame[..], 101, None),
            (&frame[..], 0, None),
            (&frame[1..], 100, None),
            (&frame[..8], 100, None),
            (&frame.clone()[..], 100, None),
        ] {
            let offering = rest(100)?;
            let ((), offer) = Offer::during(|| offering.offer(&frame));
            let rest = offer.and_then(|offer| offer.behind(seen, promised));
            assert_eq!(rest.map(|rest| rest.length), taken);
        }
        Ok(())
    }

    #[test]
    fn nobody_hears_an_offer_elsewhere() -> std::io::Result<()> {
        rest(100)?.offer(&[1]);
        let ((), offer) = Offer::during(|| ());
        assert!(offer.is_none());
        Ok(())
    }
}
