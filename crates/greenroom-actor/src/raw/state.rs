//! The cell of an actor's state and context, and of the job that may borrow both while it waits.

use std::cell::{Cell, UnsafeCell};
use std::task::{self, Poll};

use super::envelope::Envelope;
use super::job::{Job, JobEnd};
use crate::BoxError;
use crate::actor::Actor;
use crate::context::Context;
use crate::panics::{Panic, catch};

/// The outcome of giving an actor something to do.
pub(crate) enum Served {
    Done,
    /// It waits: a job is kept, and polled again by [`StateCell::poll`].
    Pending,
    Failed(Fault),
}

/// The reason of a failure.
pub(crate) enum Fault {
    Panic(Panic),
    Error(BoxError),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    Vacant,
    Ready,
    /// A handler or a job borrows the actor and the context.
    Busy,
}

/// The state of an actor, its context and its job. The cell is not `Sync`, so one thread at a time
/// can reach it; `usage` keeps that thread from reaching the actor twice.
pub(crate) struct StateCell<A: Actor> {
    usage: Cell<Use>,
    // Dropped first: it may borrow the two below.
    job: UnsafeCell<Option<Job<'static>>>,
    actor: UnsafeCell<Option<A>>,
    context: UnsafeCell<Context<A>>,
}

impl<A: Actor> StateCell<A> {
    pub(crate) fn new(context: Context<A>) -> Self {
        Self {
            usage: Cell::new(Use::Vacant),
            job: UnsafeCell::new(None),
            actor: UnsafeCell::new(None),
            context: UnsafeCell::new(context),
        }
    }

    /// # Panics
    ///
    /// If there is a state already.
    pub(crate) fn install(&self, actor: A) {
        assert!(self.usage.get() == Use::Vacant, "the cell has an actor");
        // SAFETY: nothing borrows the actor of a vacant cell.
        unsafe { *self.actor.get() = Some(actor) };
        self.usage.set(Use::Ready);
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.usage.get() == Use::Busy
    }

    /// Returns `true` if there is a state and nothing borrows it.
    pub(crate) fn is_ready(&self) -> bool {
        self.usage.get() == Use::Ready
    }

    /// Returns the message or the hook that the job that waits is about.
    pub(crate) fn about(&self) -> Option<&'static str> {
        // SAFETY: as in `poll`; the reference ends here.
        unsafe { (*self.job.get()).as_ref() }.map(Job::about)
    }

    /// Gives the actor a message, and polls the job that may come of it once.
    ///
    /// # Panics
    ///
    /// If the cell is not ready.
    pub(crate) fn serve(&self, waker: &mut task::Context<'_>, envelope: Envelope<A>) -> Served {
        self.begin(waker, |actor, context| envelope.deliver(actor, context))
    }

    /// Calls a hook of the actor.
    ///
    /// # Panics
    ///
    /// If the cell is not ready.
    pub(crate) fn hook<F>(&self, waker: &mut task::Context<'_>, hook: F) -> Served
    where
        F: for<'a> FnOnce(&'a mut A, &'a mut Context<A>) -> Job<'a>,
    {
        self.begin(waker, |actor, context| Some(hook(actor, context)))
    }

    /// Calls a function that is done when it returns with the actor.
    ///
    /// # Panics
    ///
    /// If the cell is not ready.
    pub(crate) fn call<F, R>(&self, function: F) -> Result<R, Fault>
    where
        F: FnOnce(&mut A, &mut Context<A>) -> R,
    {
        let (actor, context) = self.occupy();
        let result = catch(|| function(actor, context));
        self.usage.set(Use::Ready);
        result.map_err(Fault::Panic)
    }

    /// Polls the job that waits.
    ///
    /// # Panics
    ///
    /// If there is none.
    pub(crate) fn poll(&self, waker: &mut task::Context<'_>) -> Served {
        // SAFETY: only this thread reaches the cell, and no reference to the job outlives a call.
        let job = unsafe { &mut *self.job.get() };
        let polled = {
            let job = job.as_mut().expect("a job waits");
            catch(|| job.poll(waker))
        };
        match polled {
            Ok(Poll::Pending) => Served::Pending,
            Ok(Poll::Ready(end)) => self.finish(served(end)),
            Err(panic) => self.finish(Served::Failed(Fault::Panic(panic))),
        }
    }

    /// Drops the job, if one waits. Returns `true` if so.
    pub(crate) fn cancel(&self) -> bool {
        // SAFETY: as in `poll`. The slot is emptied before the future is dropped.
        let job = unsafe { (*self.job.get()).take() };
        let was_busy = job.is_some();
        if was_busy {
            drop(catch(|| drop(job)));
            self.usage.set(Use::Ready);
        }
        was_busy
    }

    /// Drops job and actor.
    pub(crate) fn vacate(&self) {
        self.cancel();
        assert!(self.usage.get() != Use::Busy, "a handler runs");
        self.usage.set(Use::Vacant);
        // SAFETY: no job is left, and no handler runs.
        let actor = unsafe { (*self.actor.get()).take() };
        drop(catch(|| drop(actor)));
    }

    /// Calls a function with the context.
    ///
    /// # Panics
    ///
    /// If a handler or a job borrows it.
    pub(crate) fn with_context<R>(&self, function: impl FnOnce(&mut Context<A>) -> R) -> R {
        let before = self.usage.replace(Use::Busy);
        assert!(before != Use::Busy, "the context is borrowed");
        let _borrowed = Borrowed {
            usage: &self.usage,
            before,
        };
        // SAFETY: nobody else borrows it, for `usage` was not busy, and is until this returns or
        // panics.
        function(unsafe { &mut *self.context.get() })
    }

    fn begin<F>(&self, waker: &mut task::Context<'_>, function: F) -> Served
    where
        F: for<'a> FnOnce(&'a mut A, &'a mut Context<A>) -> Option<Job<'a>>,
    {
        let (actor, context) = self.occupy();
        let begun = catch(|| function(actor, context));
        let job = match begun {
            Ok(None) => {
                self.usage.set(Use::Ready);
                return Served::Done;
            }
            Ok(Some(job)) => job,
            Err(panic) => {
                self.usage.set(Use::Ready);
                return Served::Failed(Fault::Panic(panic));
            }
        };
        // SAFETY: the job borrows the actor and the context, which stay in place until the job is
        // dropped: `usage` is busy meanwhile, and the job is declared, and so dropped, before them.
        unsafe { *self.job.get() = Some(job.forget_lifetime()) };
        self.poll(waker)
    }

    #[expect(
        clippy::mut_from_ref,
        reason = "`usage` lets only one borrow at a time begin"
    )]
    fn occupy(&self) -> (&mut A, &mut Context<A>) {
        assert!(self.usage.get() == Use::Ready, "the cell is ready");
        self.usage.set(Use::Busy);
        // SAFETY: nobody else borrows them, for `usage` was ready, and is busy until they are
        // given back.
        unsafe {
            let actor = (*self.actor.get())
                .as_mut()
                .expect("a ready cell has an actor");
            (actor, &mut *self.context.get())
        }
    }

    fn finish(&self, served: Served) -> Served {
        self.cancel();
        served
    }
}

/// A guard that gives the context back, also when the function that has it panics.
struct Borrowed<'a> {
    usage: &'a Cell<Use>,
    before: Use,
}

impl Drop for Borrowed<'_> {
    fn drop(&mut self) {
        self.usage.set(self.before);
    }
}

fn served(end: JobEnd) -> Served {
    match end {
        Ok(()) => Served::Done,
        Err(error) => Served::Failed(Fault::Error(error)),
    }
}
