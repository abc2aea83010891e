//! An actor that holds its worker is named, while it does.
#![allow(clippy::expect_used, reason = "tests fail by a panic")]

use std::io;
use std::sync::mpsc;
use std::time::Duration;

use greenroom_actor::{Actor, ActorSystem, Context, Dispatcher, Handler};
use tracing_subscriber::fmt::MakeWriter;

/// The time that the test waits for an event, before it fails.
const PATIENCE: Duration = Duration::from_mins(1);

struct Heavy(mpsc::Receiver<()>);
impl Actor for Heavy {}

struct Hold;
impl Handler<Hold> for Heavy {
    type Reply = ();
    fn handle(&mut self, _: Hold, _: &mut Context<Self>) {
        let _ = self.0.recv();
    }
}

/// The log, line by line.
#[derive(Clone)]
struct Lines(mpsc::Sender<String>);

impl io::Write for Lines {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let _ = self.0.send(String::from_utf8_lossy(line).into_owned());
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

#[test]
fn the_watchdog_names_an_actor_that_holds_its_worker_and_its_dispatcher() {
    let (sender, lines) = mpsc::channel();
    let log = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_writer(Lines(sender));
    log.init();
    let builder = ActorSystem::builder().dispatcher("default", Dispatcher::pool(1));
    let system = builder.build().expect("the system gives a thread");
    let (release, released) = mpsc::channel();
    let released = std::sync::Mutex::new(Some(released));
    let make = move || {
        Heavy(
            released
                .lock()
                .expect("no panic")
                .take()
                .expect("it is made once"),
        )
    };
    let heavy = system.build(make).name("heavy").spawn();
    heavy
        .expect("the dispatcher is there")
        .tell(Hold)
        .expect("the mailbox has room");
    let mut named = lines
        .recv_timeout(PATIENCE)
        .expect("it is named while it holds the worker");
    while !named.contains("an actor holds its worker") {
        named = lines
            .recv_timeout(PATIENCE)
            .expect("it is named while it holds the worker");
    }
    assert!(named.contains("WARN greenroom::actor"), "{named}");
    assert!(named.contains("actor=/heavy"), "{named}");
    assert!(named.contains("dispatcher=default"), "{named}");
    drop(release);
}
