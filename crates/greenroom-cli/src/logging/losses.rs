//! Lines that a log loses: counted, and told now and then.

use std::fmt;
use std::io::{self, Write};
use std::mem;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use tracing_appender::non_blocking::ErrorCounter;

/// The interval in which a log tells of losses that go on.
const INTERVAL: Duration = Duration::from_mins(1);

/// A log, by where its losses are told.
#[derive(Clone, Copy, Debug)]
pub(super) enum Log {
    /// The access log in a file: in the error log.
    Access,
    /// The error log in a file or in the journal: on standard error, too.
    Error,
    /// The error log on standard error: there alone, once it can be written.
    StandardError,
}

impl Log {
    const fn name(self) -> &'static str {
        match self {
            Self::Access => "access",
            Self::Error | Self::StandardError => "error",
        }
    }

    fn tell_failure(self, error: &io::Error) {
        match self {
            Self::Access => tracing::error!(%error, "the access log cannot be written"),
            Self::Error => on_standard_error(format_args!("cannot be written: {error}")),
            Self::StandardError => {}
        }
    }

    /// Says in the error log what this one has lost.
    fn tell(self, lost: Lost, news: &str) {
        let Lost {
            unwritten,
            queue_full,
        } = lost;
        tracing::warn!(log = self.name(), unwritten, queue_full, "{news}");
    }
}

/// Says on standard error how the error log is, which is elsewhere.
fn on_standard_error(news: fmt::Arguments<'_>) {
    // If that cannot be written either, there is no other place.
    let _unread = writeln!(io::stderr(), "greenroom: the error log {news}");
}

/// Numbers of lines that were lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Lost {
    /// They could not be written.
    unwritten: usize,
    /// They came while the queue was full.
    queue_full: usize,
}

impl Lost {
    fn since(self, before: Self) -> Self {
        Self {
            unwritten: self.unwritten - before.unwritten,
            queue_full: self.queue_full - before.queue_full,
        }
    }
}

impl fmt::Display for Lost {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unwritten, queue_full) = (self.unwritten, self.queue_full);
        write!(
            out,
            "{unwritten} lines as they could not be written, {queue_full} as its queue was full"
        )
    }
}

/// The count of what a log has lost since the start.
pub(super) struct Losses {
    log: Log,
    unwritten: AtomicUsize,
    /// Lines that could not be written yet, and are lost if they cannot be until the end.
    kept: AtomicUsize,
    /// The count of lines for which the queue had no room, once there is a queue.
    queue: OnceLock<ErrorCounter>,
}

impl Losses {
    pub(super) const fn new(log: Log) -> Self {
        Self {
            log,
            unwritten: AtomicUsize::new(0),
            kept: AtomicUsize::new(0),
            queue: OnceLock::new(),
        }
    }

    /// Has the lines counted, too, for which this queue has no room.
    pub(super) fn include(&self, queue: ErrorCounter) {
        self.queue.get_or_init(|| queue);
    }

    fn so_far(&self) -> Lost {
        let queue = self.queue.get();
        Lost {
            unwritten: self.unwritten.load(Ordering::Relaxed),
            queue_full: queue.map_or(0, ErrorCounter::dropped_lines),
        }
    }

    /// Says in the error log what that has lost itself, while it takes lines, and returns it.
    pub(super) fn tell_itself(&self) -> Lost {
        let lost = match self.log {
            Log::Access => Lost::default(),
            Log::Error | Log::StandardError => self.so_far(),
        };
        if lost != Lost::default() {
            self.log.tell(lost, "log lines were lost");
        }
        lost
    }

    /// Says what was lost, after the last line was written or was not, unless that was told.
    pub(super) fn tell_at_end(&self, told: Lost) {
        let mut lost = self.so_far();
        lost.unwritten += self.kept.load(Ordering::Relaxed);
        if lost == told {
            return;
        }
        match self.log {
            Log::Access => self.log.tell(lost, "log lines were lost"),
            Log::Error => on_standard_error(format_args!("has lost {lost}")),
            Log::StandardError => {}
        }
    }
}

/// A place that log lines are written to.
pub(super) trait Place: Write {
    /// Returns the number of lines that it keeps, as they could not be written yet.
    fn kept(&self) -> usize {
        0
    }
}

/// A place whose failures are counted and told, and end there.
///
/// The log's thread would not look at a line's error, and after one of a flush it would not see
/// that it is to end, and the program would wait for it.
pub(super) struct Watched<P> {
    place: P,
    losses: Arc<Losses>,
    /// `true` if the last line was lost.
    has_failed: bool,
    /// The count that the metric shows.
    metered: Lost,
    telling: Telling,
}

impl<P: Place> Watched<P> {
    pub(super) fn new(place: P, losses: Arc<Losses>) -> Self {
        Self {
            place,
            losses,
            has_failed: false,
            metered: Lost::default(),
            telling: Telling::default(),
        }
    }

    fn fail(&mut self, error: &io::Error) {
        if self.telling.fails(Instant::now()) {
            self.losses.log.tell_failure(error);
        }
    }

    fn succeed(&mut self) {
        let lost = self.telling.works(self.losses.so_far(), Instant::now());
        if let Some(lost) = lost {
            let log = self.losses.log;
            log.tell(lost, "the log takes all lines again");
            if matches!(log, Log::Error) {
                on_standard_error(format_args!("takes all lines again, and has lost {lost}"));
            }
        }
    }

    fn meter(&mut self) {
        let lost = self.losses.so_far();
        if lost == self.metered {
            return;
        }
        self.metered = lost;
        let log = self.losses.log.name();
        let counts = [
            ("unwritten", lost.unwritten),
            ("queue_full", lost.queue_full),
        ];
        for (reason, lines) in counts {
            let labels = [("log", log), ("reason", reason)];
            metrics::counter!("greenroom_log_lines_dropped_total", &labels).absolute(lines as u64);
        }
    }
}

impl<P: Place> Write for Watched<P> {
    /// Writes a whole line, or loses it.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let written = self.place.write_all(line);
        self.has_failed = written.is_err();
        if let Err(error) = written {
            self.losses.unwritten.fetch_add(1, Ordering::Relaxed);
            self.fail(&error);
        }
        // Each time, as a queue that is full may not be empty, and flushed, for long.
        self.meter();
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.place.flush();
        self.losses.kept.store(self.place.kept(), Ordering::Relaxed);
        match flushed {
            Err(error) => self.fail(&error),
            // The journal has nothing to flush: only a line shows whether it works.
            Ok(()) if self.has_failed => {}
            Ok(()) => self.succeed(),
        }
        Ok(())
    }
}

/// The last news of a log, and its time.
#[derive(Debug, Default)]
struct Telling {
    lost: Lost,
    /// `true` if it was told that the log cannot be written, and not yet that it can.
    is_failing: bool,
    last: Option<Instant>,
}

impl Telling {
    /// Returns `true` if it is to be told that the log cannot be written.
    fn fails(&mut self, now: Instant) -> bool {
        if self.is_soon(now) {
            return false;
        }
        (self.is_failing, self.last) = (true, Some(now));
        true
    }

    /// Returns what was lost, if it is to be told that the log takes lines.
    fn works(&mut self, lost: Lost, now: Instant) -> Option<Lost> {
        let is_again = mem::take(&mut self.is_failing);
        if !is_again && (lost == self.lost || self.is_soon(now)) {
            return None;
        }
        self.last = Some(now);
        Some(lost.since(mem::replace(&mut self.lost, lost)))
    }

    fn is_soon(&self, now: Instant) -> bool {
        self.last.is_some_and(|last| now - last < INTERVAL)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::sync::mpsc;

    use parking_lot::Mutex;
    use tracing::subscriber::with_default;
    use tracing_appender::non_blocking::NonBlockingBuilder;

    use super::super::gathering::Gathering;
    use super::super::{LINES_WAITING_MAX, Sink};
    use super::*;

    /// A disk that may be full, or a journal that may not be there.
    #[derive(Clone, Default)]
    struct Disk {
        is_full: Arc<AtomicBool>,
        written: Arc<Mutex<Vec<u8>>>,
    }

    impl Disk {
        fn lines(&self) -> Vec<String> {
            let written = self.written.lock().clone();
            let text = String::from_utf8(written).expect("text");
            text.lines().map(str::to_owned).collect()
        }
    }

    impl Place for Disk {}

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.is_full.load(Ordering::Relaxed) {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.written.lock().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// A disk that is full, and tells of its end.
    struct Full(mpsc::Sender<()>);

    impl Drop for Full {
        fn drop(&mut self) {
            self.0.send(()).expect("it is waited for");
        }
    }

    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// A reader that takes nothing until it is told to.
    struct Slow(mpsc::Receiver<()>);

    impl Place for Slow {}

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            // Once the sender is gone it takes all.
            let _gone = self.0.recv();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Returns the lines that the error log has of some work.
    fn told(work: impl FnOnce()) -> Vec<String> {
        let error_log = Disk::default();
        let written = error_log.clone();
        let lines = tracing_subscriber::fmt().with_ansi(false).without_time();
        let lines = lines.with_writer(move || error_log.clone()).finish();
        with_default(lines, work);
        written.lines()
    }

    #[test]
    fn a_log_that_fails_says_so_and_once_it_works_what_was_lost() {
        let disk = Disk::default();
        let losses = Arc::new(Losses::new(Log::Access));
        let mut log = Watched::new(Gathering::new(disk.clone()), Arc::clone(&losses));
        let line = [&[b'a'; 99][..], b"\n"].concat();
        let mut write = |lines: usize| {
            for _ in 0..lines {
                log.write_all(&line).expect("it does not fail");
            }
            log.flush().expect("it does not fail");
        };
        let fail = |is_full| disk.is_full.store(is_full, Ordering::Relaxed);
        let told = told(|| {
            write(1);
            fail(true);
            write(30);
            // 40 of the 50 are kept.
            write(20);
            losses.tell_at_end(Lost::default());
            fail(false);
            write(1);
            write(1);
            losses.tell_at_end(Lost::default());
        });
        assert_eq!(disk.lines().len(), 1 + 40 + 1 + 1);
        let (name, number) = ("log=\"access\" unwritten=", " queue_full=0");
        let expected = [
            "the access log cannot be written error=no storage space".to_owned(),
            format!("log lines were lost {name}50{number}"),
            format!("the log takes all lines again {name}10{number}"),
            format!("log lines were lost {name}10{number}"),
        ];
        assert_eq!(told.len(), expected.len(), "{told:#?}");
        for (line, end) in told.iter().zip(&expected) {
            assert!(line.ends_with(end), "{line}");
        }
    }

    #[test]
    fn a_place_with_nothing_to_flush_works_again_with_its_next_line() {
        let (disk, losses) = (Disk::default(), Arc::new(Losses::new(Log::StandardError)));
        let mut journal = Watched::new(disk.clone(), losses);
        let mut write = || {
            journal.write_all(b"a line\n").expect("it does not fail");
            journal.flush().expect("it does not fail");
        };
        disk.is_full.store(true, Ordering::Relaxed);
        assert!(told(&mut write).is_empty());
        disk.is_full.store(false, Ordering::Relaxed);
        let told = told(&mut write);
        assert_eq!(told.len(), 1, "{told:#?}");
        assert!(
            told[0].ends_with("again log=\"error\" unwritten=1 queue_full=0"),
            "{told:#?}"
        );
    }

    #[test]
    fn losses_that_go_on_are_told_once_a_minute() {
        let (mut telling, begin) = (Telling::default(), Instant::now());
        let lost = |unwritten| Lost {
            unwritten,
            queue_full: 0,
        };
        assert_eq!(telling.works(lost(0), begin), None);
        assert!(telling.fails(begin));
        assert!(!telling.fails(begin + INTERVAL / 2));
        assert!(telling.fails(begin + INTERVAL));
        let again = begin + INTERVAL * 5 / 4;
        assert_eq!(telling.works(lost(3), again), Some(lost(3)));
        assert!(!telling.fails(again + INTERVAL / 2));
        assert_eq!(telling.works(lost(5), again + INTERVAL / 2), None);
        assert_eq!(telling.works(lost(5), again + INTERVAL), Some(lost(2)));
        assert_eq!(telling.works(lost(5), again + INTERVAL * 3), None);
    }

    #[test]
    fn lines_that_come_too_quickly_are_told_at_the_end() {
        let (release, released) = mpsc::channel();
        let (mut lines, sink) = Sink::start(Log::StandardError, Slow(released));
        for _ in 0..LINES_WAITING_MAX + 10 {
            lines.write_all(b"a line\n").expect("it does not fail");
        }
        drop(release);
        let told = told(|| sink.end());
        assert_eq!(told.len(), 1, "{told:#?}");
        // Its thread may have taken one from the queue.
        let is_told = |lines: usize| {
            let end = format!("log lines were lost log=\"error\" unwritten=0 queue_full={lines}");
            told[0].ends_with(&end)
        };
        assert!(is_told(10) || is_told(9), "{told:#?}");
    }

    #[test]
    fn a_log_that_cannot_be_written_ends_all_the_same() {
        let log = NonBlockingBuilder::default().lossy(false);
        let (end, ended) = mpsc::channel();
        let losses = Arc::new(Losses::new(Log::StandardError));
        let place = Watched::new(Gathering::new(Full(end)), losses);
        let (mut lines, guard) = log.finish(place);
        lines
            .write_all(b"a line\n")
            .expect("it waits to be written");
        drop(guard);
        let ended = ended.recv_timeout(Duration::from_mins(1));
        ended.expect("the log's thread has ended");
        drop(lines);
    }
}
