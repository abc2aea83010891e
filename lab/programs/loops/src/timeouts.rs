//! Timeouts that each event moves into the future: tokio's own, and those of Greenroom's loops.

use std::cell::RefCell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep};

use crate::registry::{Key, Registry};
use crate::wheel::{Clock, Tick};

/// The precision of Greenroom's deadlines, as in `event_loop/mod.rs`.
const TICK: Duration = Duration::from_millis(250);

pub(crate) trait Timeout: 'static {
    /// Moves it to `after` from now.
    fn renew(&mut self, after: Duration);

    /// Completes when it has passed.
    fn poll_passed(&mut self, cx: &mut Context<'_>) -> Poll<()>;
}

impl Timeout for Pin<Box<Sleep>> {
    fn renew(&mut self, after: Duration) {
        self.as_mut().reset(Instant::now() + after);
    }

    fn poll_passed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.as_mut().poll(cx)
    }
}

/// The time of a loop and what waits in it, as in Greenroom's `Loop`.
#[derive(Default)]
pub(crate) struct Home {
    clock: Clock,
    registry: RefCell<Registry>,
}

impl Home {
    pub(crate) fn tick(&self) {
        let now = self.clock.tick();
        self.registry.borrow_mut().turn(now);
    }

    pub(crate) async fn tick_forever(self: Rc<Self>) {
        loop {
            sleep(TICK).await;
            self.tick();
        }
    }
}

/// The deadline of one connection.
pub(crate) struct Deadline {
    home: Rc<Home>,
    key: Key,
}

impl Deadline {
    pub(crate) fn new(home: &Rc<Home>, after: Duration) -> Self {
        let key = home.registry.borrow_mut().add();
        let home = Rc::clone(home);
        let mut deadline = Self { home, key };
        deadline.renew(after);
        deadline
    }
}

impl Timeout for Deadline {
    fn renew(&mut self, after: Duration) {
        let now = self.home.clock.now();
        let ticks = after.as_nanos().div_ceil(TICK.as_nanos()) + 1;
        let deadline = now + Tick::try_from(ticks).expect("an hour has 14,400 ticks");
        let mut registry = self.home.registry.borrow_mut();
        registry.wait(self.key, deadline, None, now);
    }

    fn poll_passed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let notice = self.home.registry.borrow_mut().notice(self.key, cx);
        if notice.expired {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }
}

impl Drop for Deadline {
    fn drop(&mut self) {
        self.home.registry.borrow_mut().remove(self.key);
    }
}
