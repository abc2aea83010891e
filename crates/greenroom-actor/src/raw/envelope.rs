//! A message of any type, in a block of the pool, with the functions that know its type.

use std::alloc::Layout;
use std::any::Any;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;

use super::job::Job;
use super::lane::Link;
use super::pool;
use crate::actor::Actor;
use crate::context::Context;
use crate::reason::Reason;

/// A value that is delivered to an actor, once.
pub(crate) trait Deliver<A: Actor>: Send + Sized + 'static {
    /// Calls the handler. One that is not done at once returns a job.
    fn deliver<'a>(self, actor: &'a mut A, context: &'a mut Context<A>) -> Option<Job<'a>>;

    /// Notes that it will not be delivered, and sends the error to an asker. Returns the message.
    fn refuse(self, reason: Reason) -> Box<dyn Any + Send>;

    /// The type of the message.
    fn message() -> &'static str;
}

/// A message that was not delivered.
pub(crate) struct Undelivered {
    pub(crate) message: &'static str,
    /// `None` if a handler has, or had, it.
    pub(crate) content: Option<Box<dyn Any + Send>>,
}

#[repr(C)]
struct Head<A: Actor> {
    link: Link,
    functions: &'static Functions<A>,
}

#[repr(C)]
struct Node<A: Actor, T> {
    head: Head<A>,
    content: T,
}

type DeliverFn<A> =
    for<'a> unsafe fn(NonNull<Head<A>>, &'a mut A, &'a mut Context<A>) -> Option<Job<'a>>;

struct Functions<A: Actor> {
    deliver: DeliverFn<A>,
    refuse: unsafe fn(NonNull<Head<A>>, Reason) -> Undelivered,
    message: fn() -> &'static str,
    discard: unsafe fn(NonNull<Head<A>>),
}

/// One message for an actor of type `A`.
pub(crate) struct Envelope<A: Actor> {
    node: NonNull<Head<A>>,
    owns: PhantomData<Head<A>>,
}

// SAFETY: an envelope owns its content, which is `Send` (`Deliver` says so).
unsafe impl<A: Actor> Send for Envelope<A> {}
// SAFETY: a shared reference to an envelope gives away the name of the message's type, no more.
unsafe impl<A: Actor> Sync for Envelope<A> {}

impl<A: Actor> Envelope<A> {
    pub(crate) fn new<T: Deliver<A>>(content: T) -> Self {
        let head = Head {
            link: Link::new(),
            functions: &OfContent::<A, T>::FUNCTIONS,
        };
        let block = OfContent::<A, T>::CLASS.allocate().cast::<Node<A, T>>();
        // SAFETY: the block is fresh, large enough and aligned for the node.
        unsafe { block.write(Node { head, content }) };
        Self {
            node: block.cast(),
            owns: PhantomData,
        }
    }

    pub(crate) fn deliver<'a>(
        self,
        actor: &'a mut A,
        context: &'a mut Context<A>,
    ) -> Option<Job<'a>> {
        let node = self.into_node();
        // SAFETY: the functions belong to the node's type, and take the node.
        unsafe { (node.as_ref().functions.deliver)(node, actor, context) }
    }

    pub(crate) fn refuse(self, reason: Reason) -> Undelivered {
        let node = self.into_node();
        // SAFETY: as above.
        unsafe { (node.as_ref().functions.refuse)(node, reason) }
    }

    /// Returns the function that names the type of the message: called only for a reader.
    pub(crate) fn message(&self) -> fn() -> &'static str {
        // SAFETY: an envelope's node is valid.
        unsafe { self.node.as_ref().functions.message }
    }

    pub(super) fn into_link(self) -> NonNull<Link> {
        self.into_node().cast()
    }

    /// # Safety
    ///
    /// `link` came from [`into_link`](Self::into_link) of an envelope of the same type, and is
    /// nobody else's.
    pub(super) unsafe fn from_link(link: NonNull<Link>) -> Self {
        Self {
            node: link.cast(),
            owns: PhantomData,
        }
    }

    fn into_node(self) -> NonNull<Head<A>> {
        ManuallyDrop::new(self).node
    }
}

impl<A: Actor> Drop for Envelope<A> {
    fn drop(&mut self) {
        // SAFETY: the functions belong to the node's type, and take the node.
        unsafe { (self.node.as_ref().functions.discard)(self.node) }
    }
}

struct OfContent<A, T>(PhantomData<(A, T)>);

impl<A: Actor, T: Deliver<A>> OfContent<A, T> {
    const CLASS: pool::Class = pool::Class::of(Layout::new::<Node<A, T>>());
    const FUNCTIONS: Functions<A> = Functions {
        deliver: Self::deliver,
        refuse: Self::refuse,
        message: T::message,
        discard: Self::discard,
    };

    unsafe fn deliver<'a>(
        node: NonNull<Head<A>>,
        actor: &'a mut A,
        context: &'a mut Context<A>,
    ) -> Option<Job<'a>> {
        // SAFETY: the caller gives the node away.
        let letter = unsafe { Self::unpack(node) };
        letter.deliver(actor, context)
    }

    unsafe fn refuse(node: NonNull<Head<A>>, reason: Reason) -> Undelivered {
        // SAFETY: the caller gives the node away.
        let content = unsafe { Self::unpack(node) };
        Undelivered {
            message: T::message(),
            content: Some(content.refuse(reason)),
        }
    }

    unsafe fn discard(node: NonNull<Head<A>>) {
        // SAFETY: the caller gives the node away.
        drop(unsafe { Self::unpack(node) });
    }

    /// Takes the content, and gives the block back first: what the handler sends may use it again.
    ///
    /// # Safety
    ///
    /// `node` is a valid `Node<A, T>` and is not used again.
    unsafe fn unpack(node: NonNull<Head<A>>) -> T {
        let node = node.cast::<Node<A, T>>();
        // SAFETY: the node is valid; its content is read once, its head needs no drop.
        unsafe {
            let content = std::ptr::read(&raw const (*node.as_ptr()).content);
            Self::CLASS.release(node.cast());
            content
        }
    }
}

/// Messages of one actor, the oldest first.
pub(crate) struct Chain<A: Actor> {
    first: *mut Link,
    owns: PhantomData<Envelope<A>>,
}

// SAFETY: a chain owns its envelopes, which are `Send`.
unsafe impl<A: Actor> Send for Chain<A> {}

impl<A: Actor> Chain<A> {
    pub(crate) const fn new() -> Self {
        Self {
            first: std::ptr::null_mut(),
            owns: PhantomData,
        }
    }

    /// # Safety
    ///
    /// `first` is null, or begins a list of links of envelopes for `A` that is nobody else's.
    pub(super) unsafe fn from_links(first: *mut Link) -> Self {
        Self {
            first,
            owns: PhantomData,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_null()
    }

    pub(crate) fn pop(&mut self) -> Option<Envelope<A>> {
        let link = NonNull::new(self.first)?;
        // SAFETY: a chain's links are valid and its own.
        unsafe {
            self.first = link.as_ref().next;
            Some(Envelope::from_link(link))
        }
    }

    /// Puts a message in front of all others.
    pub(crate) fn push_front(&mut self, envelope: Envelope<A>) {
        let link = envelope.into_link();
        // SAFETY: the link is this chain's now.
        unsafe { (*link.as_ptr()).next = self.first };
        self.first = link.as_ptr();
    }
}

impl<A: Actor> Drop for Chain<A> {
    fn drop(&mut self) {
        while let Some(envelope) = self.pop() {
            drop(envelope);
        }
    }
}
