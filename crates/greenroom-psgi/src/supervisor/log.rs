//! Logs the lines that zygotes and workers write to their standard output and error, and the errors
//! that workers send.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;
use std::{io, mem};

use parking_lot::Mutex;
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe;
use tokio::task::JoinHandle;

use super::channel::Message;
use super::member::Member;

/// The bytes of a line that are logged; the rest of it is dropped.
const LINE_BYTES_MAX: usize = 8 * 1_024;

/// The bytes that are read at once.
const CHUNK_BYTES: usize = 8 * 1_024;

/// The bytes that the pipe holds while this process is busy, so that a writer does not wait: the
/// most that Linux grants without privileges by default.
const PIPE_BYTES: usize = 1_024 * 1_024;

/// The number of lines that are kept for an error message.
const TAIL_LINES: usize = 20;

/// The time for which the end of the pipe is awaited before the last lines are taken. Another
/// process may hold it open.
const END_WAIT: Duration = Duration::from_secs(1);

/// The log of one zygote and its workers.
pub(super) struct Log {
    task: JoinHandle<()>,
    tail: Arc<Tail>,
}

#[derive(Default)]
struct Tail(Mutex<VecDeque<String>>);

impl Log {
    /// Reads `pipe` to its end, also after the value is dropped: a writer without a reader would be
    /// killed by SIGPIPE.
    pub(super) fn start(pipe: OwnedFd, application: String) -> io::Result<Self> {
        // A smaller pipe works as well, but fills sooner while this process is busy.
        rustix::pipe::fcntl_setpipe_size(&pipe, PIPE_BYTES).ok();
        let input = pipe::Receiver::from_owned_fd(pipe)?;
        let tail = Arc::<Tail>::default();
        let task = tokio::spawn(read(input, application, Arc::clone(&tail)));
        Ok(Self { task, tail })
    }

    /// Returns the last lines, once all was read.
    pub(super) async fn last_lines(self) -> String {
        // After the wait the lines that came until then must do.
        tokio::time::timeout(END_WAIT, self.task).await.ok();
        self.tail.text()
    }
}

/// Logs an error of the application that its worker sent: Perl's message, and the request's method
/// and path if it concerns one.
pub(super) fn tell_error(application: &str, member: &Member, message: &Message) -> io::Result<()> {
    let (route, text) = error(&message.payload).ok_or_else(|| message.unexpected())?;
    let (worker, pid) = (member.key, member.pid.as_raw_nonzero().get());
    tracing::error!(target: "psgi", application, worker, pid, route, "{text}");
    Ok(())
}

/// Parses the route, if there is one, and the message, whose further lines are indented: none can
/// pass for a line of the log.
fn error(payload: &[u8]) -> Option<(Option<String>, String)> {
    let (length, rest) = payload.split_first_chunk::<4>()?;
    let (route, text) = rest.split_at_checked(u32::from_be_bytes(*length) as usize)?;
    let text = String::from_utf8_lossy(text);
    let lines: Vec<_> = text.lines().map(str::trim_end).collect();
    let route = String::from_utf8_lossy(route).into_owned();
    let route = Some(route).filter(|route| !route.is_empty());
    Some((route, lines.join("\n    ")))
}

async fn read(mut input: pipe::Receiver, application: String, tail: Arc<Tail>) {
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut lines = Lines::default();
    let mut log = |line: String| {
        tracing::info!(target: "psgi", application, "{line}");
        tail.push(line);
    };
    while let Ok(bytes @ 1..) = input.read(&mut chunk).await {
        lines.push(&chunk[..bytes], &mut log);
    }
    lines.end(&mut log);
}

impl Tail {
    fn push(&self, line: String) {
        let mut lines = self.0.lock();
        if lines.len() == TAIL_LINES {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    fn text(&self) -> String {
        let mut lines = self.0.lock();
        lines.make_contiguous().join("\n")
    }
}

/// A splitter of bytes into lines of bounded length.
#[derive(Default)]
struct Lines {
    line: Vec<u8>,
    dropped: usize,
}

impl Lines {
    fn push(&mut self, bytes: &[u8], log: &mut impl FnMut(String)) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            match piece.strip_suffix(b"\n") {
                Some(last) => {
                    self.extend(last);
                    self.finish(log);
                }
                None => self.extend(piece),
            }
        }
    }

    fn end(&mut self, log: &mut impl FnMut(String)) {
        if !self.line.is_empty() {
            self.finish(log);
        }
    }

    fn extend(&mut self, bytes: &[u8]) {
        let space = LINE_BYTES_MAX - self.line.len();
        let (kept, dropped) = bytes.split_at(bytes.len().min(space));
        self.line.extend_from_slice(kept);
        self.dropped += dropped.len();
    }

    fn finish(&mut self, log: &mut impl FnMut(String)) {
        let line = mem::take(&mut self.line);
        let line = String::from_utf8_lossy(&line);
        let line = line.trim_end_matches('\r');
        match mem::take(&mut self.dropped) {
            0 => log(line.to_owned()),
            dropped => log(format!("{line} [and {dropped} bytes more]")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(chunks: &[&[u8]]) -> Vec<String> {
        let (mut lines, mut found) = (Lines::default(), Vec::new());
        for chunk in chunks {
            lines.push(chunk, &mut |line| found.push(line));
        }
        lines.end(&mut |line| found.push(line));
        found
    }

    #[test]
    fn lines_are_put_together_from_chunks() {
        let found = lines(&[b"on", b"e\ntwo\r\n\nfo", b"ur"]);
        assert_eq!(found, ["one", "two", "", "four"]);
    }

    #[test]
    fn a_long_line_is_cut_and_says_so() {
        let long = vec![b'x'; LINE_BYTES_MAX];
        let found = lines(&[&long, b"yz\n", b"next\n"]);
        assert_eq!(found[0].len(), LINE_BYTES_MAX + " [and 2 bytes more]".len());
        assert!(found[0].ends_with("x [and 2 bytes more]"));
        assert_eq!(found[1], "next");
    }

    #[test]
    fn an_error_cannot_forge_a_line() {
        let told = error(b"\0\0\0\x06GET /xbad\r\n2026 ERROR forged\n").expect("it is whole");
        let expected = "bad\n    2026 ERROR forged";
        assert_eq!(told, (Some(String::from("GET /x")), String::from(expected)));
        let without = error(b"\0\0\0\0bad").expect("it is whole");
        assert_eq!(without, (None, String::from("bad")));
        assert_eq!(error(b"\0\0\0\x06GET"), None);
    }

    #[test]
    fn the_tail_keeps_the_last_lines() {
        let tail = Tail::default();
        for number in 0..TAIL_LINES + 5 {
            tail.push(number.to_string());
        }
        let text = tail.text();
        assert_eq!(text.lines().count(), TAIL_LINES);
        assert_eq!(text.lines().next(), Some("5"));
    }
}
