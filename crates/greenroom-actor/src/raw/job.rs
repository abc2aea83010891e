//! A handler's future, in a block of the pool.

use std::alloc::Layout;
use std::marker::PhantomData;
use std::pin::Pin;
use std::ptr::NonNull;
use std::task::{Context, Poll};

use super::pool::Class;
use crate::BoxError;

/// The outcome of a handler or a hook.
pub(crate) type JobEnd = Result<(), BoxError>;

/// A future in a job.
trait Run: Send {
    fn poll(self: Pin<&mut Self>, waker: &mut Context<'_>) -> Poll<JobEnd>;
}

/// The description of a job, read without a reference to its future, which may hold references into
/// itself: a reference to the whole would invalidate those.
#[derive(Clone, Copy)]
struct Header {
    about: &'static str,
    class: Class,
}

#[repr(C)]
struct Running<F> {
    header: Header,
    future: F,
}

impl<F: Future<Output = JobEnd> + Send> Run for Running<F> {
    fn poll(self: Pin<&mut Self>, waker: &mut Context<'_>) -> Poll<JobEnd> {
        // SAFETY: the future is pinned with what holds it: it is never moved out, and nothing has
        // a destructor that could.
        unsafe { self.map_unchecked_mut(|running| &mut running.future) }.poll(waker)
    }
}

/// A future that may borrow for `'a`.
pub(crate) struct Job<'a> {
    running: NonNull<dyn Run + 'a>,
    owns: PhantomData<Box<dyn Run + 'a>>,
}

// SAFETY: a job owns its future, which is `Send`.
unsafe impl Send for Job<'_> {}

impl<'a> Job<'a> {
    /// Creates a job of a future, about a message or a hook.
    pub(crate) fn new<F>(about: &'static str, future: F) -> Self
    where
        F: Future<Output = JobEnd> + Send + 'a,
    {
        let class = const { Class::of(Layout::new::<Running<F>>()) };
        let block = class.allocate().cast::<Running<F>>();
        let header = Header { about, class };
        // SAFETY: the block is fresh, large enough and aligned for what runs.
        unsafe { block.write(Running { header, future }) };
        Self {
            running: block as NonNull<dyn Run + 'a>,
            owns: PhantomData,
        }
    }

    pub(crate) fn about(&self) -> &'static str {
        self.header().about
    }

    pub(crate) fn poll(&mut self, waker: &mut Context<'_>) -> Poll<JobEnd> {
        // SAFETY: the future is valid until it is dropped in place, stays where it is until then,
        // and is only reached through this job.
        let running = unsafe { Pin::new_unchecked(self.running.as_mut()) };
        running.poll(waker)
    }

    fn header(&self) -> Header {
        // SAFETY: what runs is valid, and begins with its header (`repr(C)`), which is copied.
        unsafe { self.running.cast::<Header>().read() }
    }

    /// # Safety
    ///
    /// What the future borrows outlives the job in truth, and is touched by nobody else until the
    /// job is dropped.
    pub(super) unsafe fn forget_lifetime(self) -> Job<'static> {
        // SAFETY: only the lifetime changes, for which the caller vouches.
        unsafe { std::mem::transmute::<Job<'a>, Job<'static>>(self) }
    }
}

impl Drop for Job<'_> {
    fn drop(&mut self) {
        struct Block(NonNull<u8>, Class);

        impl Drop for Block {
            fn drop(&mut self) {
                // SAFETY: `Job::new` allocated the block with the layout of its future, which is
                // dropped by now, or had a destructor that panicked.
                unsafe { self.1.release(self.0) };
            }
        }

        let block = Block(self.running.cast(), self.header().class);
        // SAFETY: what runs is valid until it is dropped here; nobody reaches it after this.
        unsafe { self.running.drop_in_place() };
        drop(block);
    }
}
