//! Many timers and I/O watchers, which are made, called once and destroyed.

use std::cell::Cell;
use std::fs;
use std::future::poll_fn;
use std::io::ErrorKind;
use std::os::unix::net::UnixStream as StdStream;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::sync::Notify;
use tokio::task::{JoinSet, yield_now};
use tokio::time::Instant;

use crate::timeouts::Timeout;
use crate::{as_float, micros_each};

/// The calls that are still to come.
struct Calls {
    todo: Cell<usize>,
    done: Notify,
}

impl Calls {
    fn count(&self) {
        self.todo.set(self.todo.get() - 1);
        if self.todo.get() == 0 {
            self.done.notify_one();
        }
    }
}

/// Measures `pairs` tasks, each with a descriptor that is writable and a timeout of `soon`, which
/// `turn` brings about if time alone does not.
pub(crate) async fn measure<T: Timeout>(
    pairs: usize,
    soon: impl Fn() -> T,
    turn: impl FnOnce(),
) -> Result<Value> {
    let (writable, _other) = StdStream::pair()?;
    writable.set_nonblocking(true)?;
    // epoll knows a descriptor once.
    let handles: Result<Vec<_>, _> = (0..pairs).map(|_| writable.try_clone()).collect();
    let handles = handles.context("too few descriptors")?;
    let calls = Rc::new(Calls {
        todo: Cell::new(2 * pairs),
        done: Notify::new(),
    });
    let mut tasks = JoinSet::new();

    let (before, begun) = (resident_bytes()?, Instant::now());
    for handle in handles {
        let stream = UnixStream::from_std(handle)?;
        tasks.spawn_local(watch(stream, soon(), Rc::clone(&calls)));
    }
    let create = micros_each(begun, 2 * pairs);
    let bytes = (resident_bytes()? - before) / as_float(2 * pairs);

    let begun = Instant::now();
    yield_now().await;
    turn();
    calls.done.notified().await;
    let invoke = micros_each(begun, 2 * pairs);

    let begun = Instant::now();
    tasks.shutdown().await;
    let destroy = micros_each(begun, 2 * pairs);
    Ok(json!({
        "watchers": 2 * pairs,
        "bytes": bytes,
        "create_us": create,
        "invoke_us": invoke,
        "destroy_us": destroy,
    }))
}

async fn watch<T: Timeout>(stream: UnixStream, mut timeout: T, calls: Rc<Calls>) {
    let mut has_passed = false;
    poll_fn(|cx| {
        if !has_passed && timeout.poll_passed(cx).is_ready() {
            has_passed = true;
            calls.count();
        }
        count_writable(&stream, &calls, cx)
    })
    .await;
}

/// Never completes: it is there until its task is aborted.
fn count_writable(stream: &UnixStream, calls: &Calls, cx: &mut Context<'_>) -> Poll<()> {
    loop {
        ready!(stream.poll_write_ready(cx)).expect("the runtime is there");
        // So that the runtime asks the system again.
        let full = stream.try_io(Interest::WRITABLE, || {
            Err::<(), _>(ErrorKind::WouldBlock.into())
        });
        debug_assert!(full.is_err());
        calls.count();
    }
}

fn resident_bytes() -> Result<f64> {
    let statm = fs::read_to_string("/proc/self/statm")?;
    let pages = statm.split(' ').nth(1).context("statm has seven numbers")?;
    Ok(pages.parse::<f64>()? * 4096.0)
}
