//! Lines that are written several at once.

use std::io::{self, BufWriter, Write};
use std::thread;
use std::time::Duration;

use super::losses::Place;

/// The bytes of lines that are written at once, as far as lines are shorter. So much a pipe takes
/// as a whole, never between parts of a line of another process (`PIPE_BUF`, pipe(7)).
const WRITTEN_AT_ONCE: usize = 4_096;

/// The time for which lines gather after some were written.
const GATHERED: Duration = Duration::from_millis(5);

/// A place of log lines, which gathers them.
///
/// The thread of the log writes each line that waits, then flushes, and sleeps until the next one
/// wakes it. Under load that was a write and two switches of threads for each line, which cost more
/// than the request. So a flush takes some milliseconds, in which lines wait and wake nobody. The
/// first one after a pause is written at once.
pub(super) struct Gathering<W: Write>(BufWriter<W>);

impl<W: Write> Gathering<W> {
    pub(super) fn new(place: W) -> Self {
        Self(BufWriter::with_capacity(WRITTEN_AT_ONCE, place))
    }
}

impl<W: Write> Write for Gathering<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.write(line)
    }

    /// Keeps lines that cannot be written for the next time.
    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.0.flush();
        thread::sleep(GATHERED);
        flushed
    }
}

impl<W: Write> Place for Gathering<W> {
    fn kept(&self) -> usize {
        let lines = self.0.buffer().split_inclusive(|byte| *byte == b'\n');
        lines.count()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parking_lot::Mutex;

    use super::*;

    /// The pieces that were written.
    #[derive(Clone, Default)]
    struct Pipe(Arc<Mutex<Vec<Vec<u8>>>>);

    impl Write for Pipe {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().push(bytes.to_vec());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn lines_are_written_whole_and_several_at_once() {
        let pipe = Pipe::default();
        let mut place = Gathering::new(pipe.clone());
        let line = [&[b'a'; 99][..], b"\n"].concat();
        for _ in 0..100 {
            place.write_all(&line).expect("it takes all");
        }
        place.write_all(&[b'b'; 5_000]).expect("it takes all");
        place.flush().expect("it takes all");
        let written = pipe.0.lock();
        let lengths: Vec<_> = written.iter().map(Vec::len).collect();
        assert_eq!(lengths, [4_000, 4_000, 2_000, 5_000]);
    }
}
