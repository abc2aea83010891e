use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use pin_project_lite::pin_project;
use tokio::runtime::Handle;
use tracing::Span;

use super::error::Panicked;
use super::outcome::Outcome;
use super::shared::Shared;
use super::stats::Run;
use super::ticket::Ticket;
use crate::run_delay;
use crate::thread_state::cpu_time;

/// The shortest poll for which a reading of the run delay is taken: each costs 4 us.
const LOOKED_UP_FROM: Duration = Duration::from_millis(1);

/// The time of the latest poll on this thread.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Polled {
    pub(crate) poll: Run,
    /// All polls of the run, if it has ended.
    pub(crate) run: Option<Run>,
}

thread_local! {
    static LAST_POLL: Cell<Option<Polled>> = const { Cell::new(None) };
}

/// Takes the time of the poll that has just ended on this thread, once; `None` if there was none.
pub(crate) fn last_poll() -> Option<Polled> {
    LAST_POLL.take()
}

pin_project! {
    /// Work on a stage's thread: polled and dropped within the runtime that submitted it, so that
    /// its timers and sockets belong there, and polled within its caller's span; its time taken,
    /// its panics caught.
    pub(crate) struct Metered<F> {
        #[pin]
        work: Option<F>,
        runtime: Option<Handle>,
        span: Span,
        ticket: Arc<Ticket>,
        stage: Arc<Shared>,
        run: Run,
    }

    impl<F> PinnedDrop for Metered<F> {
        fn drop(this: Pin<&mut Self>) {
            this.give_up();
        }
    }
}

impl<F> Metered<F> {
    pub(crate) fn new(work: F, ticket: Arc<Ticket>, stage: Arc<Shared>) -> Self {
        Self {
            work: Some(work),
            runtime: Handle::try_current().ok(),
            span: Span::current(),
            ticket,
            stage,
            run: Run::default(),
        }
    }

    /// Records the time of a run that was given up in its midst: it shows how long such work takes
    /// at least.
    fn give_up(mut self: Pin<&mut Self>) {
        let is_unfinished = self.as_mut().project().work.is_some();
        self.as_mut().discard();
        let this = self.project();
        if is_unfinished && !this.run.held.is_zero() && this.ticket.is_whole_run() {
            this.stage.gave_up(this.ticket, this.run);
        }
    }

    /// Drops the future. A destructor that panics costs no thread either.
    fn discard(self: Pin<&mut Self>) {
        let mut this = self.project();
        if this.work.is_none() {
            return;
        }
        let _entered = this.runtime.as_ref().map(Handle::enter);
        let dropped = catch_unwind(AssertUnwindSafe(|| this.work.set(None)));
        if let Err(payload) = dropped {
            this.stage.log_panic(&Panicked::of(payload));
        }
    }
}

impl<F: Future> Future for Metered<F> {
    type Output = Outcome<F::Output>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let polled = self.as_mut().poll_metered(cx);
        let ended = match polled {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(output)) => Ok(output),
            Err(panicked) => Err(panicked),
        };
        self.as_mut().discard();
        let this = self.project();
        LAST_POLL.set(Some(Polled {
            run: Some(*this.run),
            ..LAST_POLL.take().unwrap_or_default()
        }));
        this.stage.end(this.ticket, this.run, ended.as_ref().err());
        let (runtime, stage) = (this.runtime.take(), Arc::clone(this.stage));
        Poll::Ready(Outcome::new(ended, runtime, stage))
    }
}

impl<F: Future> Metered<F> {
    fn poll_metered(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Result<Poll<F::Output>, Panicked> {
        let mut this = self.project();
        let work = this.work.as_mut().as_pin_mut().expect("polled until ready");
        let _entered = this.runtime.as_ref().map(Handle::enter);
        let _within = this.span.enter();
        let (began, cpu_began) = (Instant::now(), cpu_time());
        let client = this.ticket.submission.client;
        let polled = client.within(|| catch_unwind(AssertUnwindSafe(|| work.poll(cx))));
        let held = began.elapsed();
        let wanted = wanted(cpu_time().saturating_sub(cpu_began), held);
        this.run.add(wanted, held);
        this.ticket.note_wanted(this.run.wanted);
        LAST_POLL.set(Some(Polled {
            poll: Run { wanted, held },
            run: None,
        }));
        polled.map_err(Panicked::of)
    }
}

/// Returns the time for which a poll wanted a processor, having one or not. Run delays are read for
/// long polls only; a delay is never more than the poll was off the processor.
fn wanted(cpu: Duration, held: Duration) -> Duration {
    if held <= LOOKED_UP_FROM {
        return cpu;
    }
    cpu + run_delay::in_the_last(held).min(held.saturating_sub(cpu))
}
