//! Blocks of memory for messages and futures that are used again on the same thread.

use std::alloc::{self, Layout};
use std::cell::RefCell;
use std::ptr::NonNull;

/// Bytes in blocks of one class that a thread keeps; more go back to the allocator. Small messages
/// fill a mailbox of the default capacity twice.
const BYTES_KEPT_MAX: usize = 128 * 1_024;

/// Alignment of every block, in bytes. It leaves the low bits of a block's address free for a
/// lane's flags.
pub(crate) const BLOCK_ALIGN: usize = 16;

const CLASSES: usize = 5;
const SMALLEST_BYTES: usize = 64;

thread_local! {
    static POOL: RefCell<Pool> = const { RefCell::new(Pool([const { Vec::new() }; CLASSES])) };
}

struct Pool([Vec<NonNull<u8>>; CLASSES]);

impl Drop for Pool {
    fn drop(&mut self) {
        for (class, blocks) in self.0.iter_mut().enumerate() {
            for block in blocks.drain(..) {
                // SAFETY: every kept block was allocated with the layout of its class.
                unsafe { alloc::dealloc(block.as_ptr(), class_layout(class)) };
            }
        }
    }
}

/// A class of values whose memory comes from the same blocks.
#[derive(Clone, Copy)]
pub(crate) struct Class {
    layout: Layout,
    /// `None` for values that are too large to keep blocks of.
    number: Option<usize>,
}

impl Class {
    /// # Panics
    ///
    /// If the layout wants more than [`BLOCK_ALIGN`].
    pub(crate) const fn of(layout: Layout) -> Self {
        assert!(
            layout.align() <= BLOCK_ALIGN,
            "a message is aligned to at most 16 bytes"
        );
        let mut number = 0;
        while number < CLASSES && SMALLEST_BYTES << number < layout.size() {
            number += 1;
        }
        if number < CLASSES {
            Self {
                layout: class_layout(number),
                number: Some(number),
            }
        } else {
            Self {
                layout: aligned(layout.size()),
                number: None,
            }
        }
    }

    /// Returns memory for a value, from this thread's pool if it has some.
    #[inline]
    pub(crate) fn allocate(self) -> NonNull<u8> {
        let kept = self.number.and_then(|number| {
            POOL.try_with(|pool| pool.borrow_mut().0[number].pop())
                .unwrap_or(None)
        });
        kept.unwrap_or_else(|| allocate_fresh(self.layout))
    }

    /// Takes back the memory of a value.
    ///
    /// # Safety
    ///
    /// `block` came from [`allocate`](Self::allocate) of the same class, and nothing points to it
    /// any more.
    #[inline]
    pub(crate) unsafe fn release(self, block: NonNull<u8>) {
        let is_kept = self.number.is_some_and(|number| keep(number, block));
        if !is_kept {
            // SAFETY: `allocate` made blocks of this class with this layout.
            unsafe { alloc::dealloc(block.as_ptr(), self.layout) };
        }
    }
}

#[inline]
fn keep(class: usize, block: NonNull<u8>) -> bool {
    let kept = POOL.try_with(|pool| {
        let blocks = &mut pool.borrow_mut().0[class];
        // A block of this class has `SMALLEST_BYTES << class` bytes: shifts in place of a division.
        let has_room = blocks.len() < BYTES_KEPT_MAX >> class >> SMALLEST_BYTES.trailing_zeros();
        if has_room {
            blocks.push(block);
        }
        has_room
    });
    kept == Ok(true)
}

const fn class_layout(class: usize) -> Layout {
    aligned(SMALLEST_BYTES << class)
}

const fn aligned(bytes: usize) -> Layout {
    match Layout::from_size_align(bytes, BLOCK_ALIGN) {
        Ok(layout) => layout,
        Err(_) => panic!("a value's size leaves room for the alignment"),
    }
}

fn allocate_fresh(layout: Layout) -> NonNull<u8> {
    // SAFETY: the layout's size is not zero: classes begin at 64 bytes, large values are larger.
    let block = unsafe { alloc::alloc(layout) };
    NonNull::new(block).unwrap_or_else(|| alloc::handle_alloc_error(layout))
}
