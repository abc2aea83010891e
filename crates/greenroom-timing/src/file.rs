use std::cell::RefCell;
use std::fs::File;
use std::sync::Arc;

thread_local! {
    static LISTENER: RefCell<Listener> = const { RefCell::new(Listener::Absent) };
}

/// Whoever polls a body on this thread, and what it was offered.
#[derive(Debug)]
enum Listener {
    Absent,
    Present,
    Told(FileOffer),
}

/// The rest of a body that is a file's: a connection sends it from the page cache, without a copy
/// (`sendfile(2)`), where it can.
///
/// A body [offers](Self::offer) it with a frame that it yields. Where the offer is taken, the body
/// is polled no more. So only a body may offer it around which nothing stands but what passes
/// frames on as they are, and needs to see none of them.
///
/// A thread that may wait for the disk reads what is not in memory, before that is sent.
#[derive(Clone, Debug)]
pub struct FileRest {
    file: Arc<File>,
    offset: u64,
    length: u64,
}

/// A [`FileRest`], and the frame that it was offered with.
#[derive(Debug)]
pub struct FileOffer {
    frame: Place,
    rest: FileRest,
}

/// Address and length of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place(usize, usize);

impl Place {
    fn of(bytes: &[u8]) -> Self {
        Self(bytes.as_ptr().addr(), bytes.len())
    }
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

    /// Returns `true` if whoever polls a body on this thread would hear of an offer. Whether it
    /// would be taken, nobody knows before.
    #[must_use]
    pub fn is_heard() -> bool {
        LISTENER.with_borrow(|listener| !matches!(listener, Listener::Absent))
    }

    /// Offers to send this behind `frame`, which the body is about to yield. It is taken if the
    /// connection gets the very same bytes (not a copy of them), has promised over 64 KiB more by
    /// `Content-Length`, no more of them than the rest has, and encrypts nothing. Otherwise nothing
    /// happens, and the body is polled as ever.
    pub fn offer(self, frame: &[u8]) {
        let frame = Place::of(frame);
        FileOffer { frame, rest: self }.again();
    }

    /// Returns the file, the offset in it, and the length.
    #[must_use]
    pub fn into_parts(self) -> (Arc<File>, u64, u64) {
        (self.file, self.offset, self.length)
    }
}

impl FileOffer {
    /// Polls a body, and returns the last offer that it made meanwhile. A call around this one does
    /// not hear of it.
    pub fn during<R>(poll: impl FnOnce() -> R) -> (R, Option<Self>) {
        let around = Around(LISTENER.replace(Listener::Present));
        let polled = poll();
        let offer = match LISTENER.replace(Listener::Absent) {
            Listener::Told(offer) => Some(offer),
            Listener::Absent | Listener::Present => None,
        };
        drop(around);
        (polled, offer)
    }

    /// Makes the offer once more, to whoever polls here: by a body that yields a frame that it got
    /// elsewhere, on another thread or at another time.
    pub fn again(self) {
        LISTENER.with_borrow_mut(|listener| {
            if !matches!(listener, Listener::Absent) {
                *listener = Listener::Told(self);
            }
        });
    }

    /// Returns the next `bytes` behind this frame, if the rest was offered with it and is at least
    /// so long.
    #[must_use]
    pub fn behind(self, frame: &[u8], bytes: u64) -> Option<FileRest> {
        let Self { frame: of, rest } = self;
        (of == Place::of(frame) && rest.length >= bytes).then_some(FileRest {
            length: bytes,
            ..rest
        })
    }
}

/// Restores the listener of the call around, also if a body panics.
struct Around(Listener);

impl Drop for Around {
    fn drop(&mut self) {
        LISTENER.set(std::mem::replace(&mut self.0, Listener::Absent));
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    fn rest(length: u64) -> io::Result<FileRest> {
        let file = Arc::new(File::open("/dev/null")?);
        Ok(FileRest::new(file, 9, length))
    }

    #[test]
    fn an_offer_is_for_the_very_frame_and_for_as_much_as_there_is() -> io::Result<()> {
        let frame = vec![1; 9];
        for (seen, promised, taken) in [
            (&frame[..], 100, Some(100)),
            (&frame[..], 40, Some(40)),
            (&frame[..], 101, None),
            (&frame[1..], 100, None),
            (&frame[..8], 100, None),
            (&frame.clone()[..], 100, None),
        ] {
            let offering = rest(100)?;
            let ((), offer) = FileOffer::during(|| offering.offer(&frame));
            let rest = offer.and_then(|offer| offer.behind(seen, promised));
            assert_eq!(rest.map(|rest| rest.length), taken);
        }
        Ok(())
    }

    #[test]
    fn nobody_hears_an_offer_elsewhere() -> io::Result<()> {
        assert!(!FileRest::is_heard());
        rest(100)?.offer(&[1]);
        let (is_heard, offer) = FileOffer::during(FileRest::is_heard);
        assert!(is_heard && offer.is_none());
        assert!(!FileRest::is_heard());
        Ok(())
    }

    #[test]
    fn an_offer_that_was_heard_inside_can_be_made_again() -> io::Result<()> {
        let (rest, frame) = (rest(100)?, [1; 9]);
        let (inner, outer) = FileOffer::during(|| {
            let ((), inner) = FileOffer::during(|| rest.offer(&frame));
            let panicked = AssertUnwindSafe(|| FileOffer::during(|| panic!("in a body")));
            assert!(catch_unwind(panicked).is_err());
            inner
        });
        assert!(outer.is_none());
        let inner = inner.expect("it was heard");
        let offer = std::thread::spawn(|| FileOffer::during(|| inner.again()).1);
        let offer = offer.join().expect("no panic");
        assert!(offer.and_then(|offer| offer.behind(&frame, 100)).is_some());
        Ok(())
    }
}
