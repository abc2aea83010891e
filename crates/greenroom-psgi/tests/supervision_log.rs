//! Perl's output in the log. Alone in its program, because the log belongs to the process.

use std::fs;
use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use greenroom_psgi::Gateway;
use tokio::time::{sleep, timeout};

/// The time-out of a line, far longer than it takes on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);

const APPLICATION: &str = "$| = 1; print qq{to the output\\n}; print STDERR qq{to the error\\n}; \
     print STDERR 'x' x 1_000_000, qq{\\n}; print STDERR qq{the end\\n}; sub { [200, [], []] }";

#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl Written {
    /// Waits for the line that contains `text`, and returns it.
    async fn line(&self, text: &str) -> String {
        let wait = async {
            loop {
                let written = self.text();
                // The last one may not be complete.
                let mut lines = written
                    .split_inclusive('\n')
                    .filter(|line| line.ends_with('\n'));
                if let Some(line) = lines.find(|line| line.contains(text)) {
                    return line.to_owned();
                }
                sleep(Duration::from_millis(5)).await;
            }
        };
        let line = timeout(PATIENCE, wait).await;
        line.unwrap_or_else(|_| panic!("no `{text}` in {}", self.text()))
    }

    fn text(&self) -> String {
        let bytes = self.0.lock().expect("nobody panics with it");
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("nobody panics with it").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn lines_come_with_the_applications_name_and_long_ones_are_cut() {
    let written = Written::default();
    let writer = written.clone();
    tracing_subscriber::fmt()
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .init();
    let folder = tempfile::tempdir().expect("the temporary directory can be written");
    let file = folder.path().join("app.psgi");
    fs::write(&file, APPLICATION).expect("it can be written");
    let gateway = Gateway::builder(&file).workers(1).start().await;
    let gateway = gateway.expect("the application can be loaded");
    for text in ["to the output", "to the error", "the end"] {
        let line = written.line(text).await;
        assert!(line.contains(" INFO psgi: "), "{line}");
        assert!(line.contains(&file.display().to_string()), "{line}");
    }
    let long = written.line("xxx").await;
    assert!(
        long.contains("x [and 991808 bytes more]"),
        "{}",
        &long[long.len() - 200..]
    );
    assert!(long.len() < 10_000);
    gateway.shutdown().await;
}
