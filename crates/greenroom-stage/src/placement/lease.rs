use std::cell::RefCell;
use std::ops::Deref;
use std::sync::Arc;

use super::Shared;

/// The number of placements beyond which a loop drops its counters of those that it does not use.
const COUNTERS_MAX: usize = 64;

thread_local! {
    /// The counters of this thread; `None` if it is no loop.
    static COUNTERS: RefCell<Option<Vec<Arc<Counter>>>> = const { RefCell::new(None) };
}

/// A reference to a placement, which its services and the requests under way have: it lives as long
/// as one of them.
///
/// A service is cloned for each request. Loops that all counted on the placement itself would wait
/// for each other's caches; so each has a counter of its own, which it keeps for as long as it
/// runs.
#[derive(Debug)]
pub(super) struct Lease(Arc<Counter>);

#[derive(Debug)]
struct Counter(Arc<Shared>);

/// Has leases that are cloned on this thread, which is a loop, counted by the thread itself.
pub(crate) fn count_on_this_thread() {
    COUNTERS.with_borrow_mut(|counters| {
        counters.get_or_insert_default();
    });
}

impl Lease {
    pub(super) fn new(shared: &Arc<Shared>) -> Self {
        Self(Arc::new(Counter(Arc::clone(shared))))
    }

    /// Returns another one by the same counter: for the request of a service, which was cloned on
    /// the thread that calls it.
    pub(super) fn again(&self) -> Self {
        Self(Arc::clone(&self.0))
    }

    /// Returns a lease by the counter of this thread, if it is a loop.
    fn of_this_thread(shared: &Arc<Shared>) -> Option<Self> {
        // Fails while the thread ends.
        let counted = COUNTERS.try_with(|counters| {
            let mut counters = counters.borrow_mut();
            let counters = counters.as_mut()?;
            let own = counters.iter().find(|own| Arc::ptr_eq(&own.0, shared));
            if let Some(own) = own {
                return Some(Self(Arc::clone(own)));
            }
            if counters.len() >= COUNTERS_MAX {
                counters.retain(|own| Arc::strong_count(own) > 1);
            }
            let lease = Self::new(shared);
            counters.push(Arc::clone(&lease.0));
            Some(lease)
        });
        counted.ok().flatten()
    }
}

impl Clone for Lease {
    fn clone(&self) -> Self {
        Self::of_this_thread(&self.0.0).unwrap_or_else(|| self.again())
    }
}

impl Deref for Lease {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Placement;
    use std::thread;

    #[test]
    fn a_loop_counts_by_itself_until_it_ends() {
        let shared = Placement::inline().shared;
        let lease = Lease::new(&shared);
        let counted = Arc::strong_count(&shared);
        thread::scope(|scope| {
            let on_loop = || {
                count_on_this_thread();
                let clones: Vec<_> = (0..100).map(|_| lease.clone()).collect();
                assert_eq!(Arc::strong_count(&shared), counted + 1);
                drop(clones);
                assert_eq!(Arc::strong_count(&shared), counted + 1);
            };
            scope.spawn(on_loop).join().expect("it asserts");
        });
        assert_eq!(Arc::strong_count(&shared), counted);
    }

    #[test]
    fn a_loop_keeps_few_placements_that_are_not_used() {
        let first = Placement::inline().shared;
        let weak = Arc::downgrade(&first);
        let on_loop = move || {
            count_on_this_thread();
            drop(Lease::new(&first).clone());
            drop(first);
            assert!(weak.upgrade().is_some());
            for _ in 0..COUNTERS_MAX {
                drop(Lease::new(&Placement::inline().shared).clone());
            }
            assert!(weak.upgrade().is_none());
        };
        thread::spawn(on_loop).join().expect("it asserts");
    }
}
