//! The kept end of a server's output.

use std::collections::VecDeque;
use std::io::{PipeReader, Read};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;

/// Bytes that are kept: 4 KiB.
const BYTES_MAX: usize = 4096;
/// The longest wait for the rest of an ended server's output.
const REST_WAIT_MAX: Duration = Duration::from_secs(1);

/// A reader that drains a pipe to its end, so that no writer blocks on it.
#[derive(Debug)]
pub(super) struct Tail {
    bytes: Arc<Mutex<VecDeque<u8>>>,
    /// Disconnected when the pipe is at its end.
    end: Receiver<()>,
}

impl Tail {
    pub(super) fn of(mut pipe: PipeReader) -> std::io::Result<Self> {
        let bytes = Arc::new(Mutex::new(VecDeque::new()));
        let (open, end) = sync_channel::<()>(0);
        let kept = Arc::clone(&bytes);
        thread::Builder::new()
            .name("server-output".into())
            .spawn(move || {
                drain(&mut pipe, &kept);
                drop(open);
            })?;
        Ok(Self { bytes, end })
    }

    /// Returns the output so far.
    pub(super) fn text(&self) -> String {
        let mut bytes = self.bytes.lock();
        String::from_utf8_lossy(bytes.make_contiguous()).into_owned()
    }

    /// Returns the whole output of a server that has ended.
    pub(super) fn text_to_the_end(&self) -> String {
        // A process that outlives the server may keep the pipe open.
        let _ = self.end.recv_timeout(REST_WAIT_MAX);
        self.text()
    }
}

fn drain(pipe: &mut PipeReader, kept: &Mutex<VecDeque<u8>>) {
    let mut buffer = [0; BYTES_MAX];
    while let Ok(length @ 1..) = pipe.read(&mut buffer) {
        let mut bytes = kept.lock();
        bytes.extend(&buffer[..length]);
        let surplus = bytes.len().saturating_sub(BYTES_MAX);
        bytes.drain(..surplus);
    }
}

/// Formats an output as the end of a sentence.
pub(super) fn quoted(output: &str) -> String {
    match output.trim_end() {
        "" => "; it printed nothing".to_owned(),
        text => format!("; its output ends with:\n{text}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn the_end_of_a_long_output_is_kept() {
        let (reader, mut writer) = std::io::pipe().expect("a pipe");
        let tail = Tail::of(reader).expect("a thread");
        // More than any pipe holds: without a reader, writing would never end.
        writer.write_all(&vec![b'x'; 4_000_000]).expect("read");
        writer.write_all(b"the end").expect("read");
        drop(writer);
        let text = tail.text_to_the_end();
        assert_eq!(text.len(), BYTES_MAX);
        assert!(text.ends_with("xthe end"));
    }
}
