//! A queue with a limit, between threads.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

/// A bounded queue.
#[derive(Debug)]
pub struct Queue<T> {
    items: Mutex<VecDeque<T>>,
    items_max: usize,
    filled: Condvar,
    taken: Condvar,
}

impl<T> Queue<T> {
    /// Makes one for at most so many items.
    #[must_use]
    pub fn new(items_max: usize) -> Self {
        Self {
            items: Mutex::default(),
            items_max,
            filled: Condvar::new(),
            taken: Condvar::new(),
        }
    }

    /// Adds an item, and waits for a place.
    pub fn push(&self, item: T) {
        let mut items = self.items.lock();
        while items.len() >= self.items_max {
            self.taken.wait(&mut items);
        }
        items.push_back(item);
        self.filled.notify_one();
    }

    /// Adds an item.
    ///
    /// # Errors
    /// The item, if there is no place.
    pub fn try_push(&self, item: T) -> Result<(), T> {
        let mut items = self.items.lock();
        if items.len() >= self.items_max {
            return Err(item);
        }
        items.push_back(item);
        self.filled.notify_one();
        Ok(())
    }

    /// Takes the oldest item, and waits for it.
    pub fn pop(&self) -> T {
        let mut items = self.items.lock();
        loop {
            if let Some(item) = items.pop_front() {
                self.taken.notify_one();
                return item;
            }
            self.filled.wait(&mut items);
        }
    }

    /// Takes up to so many of the oldest items; none if there was none for that long.
    pub fn pop_batch(&self, batch_max: usize, idle: Duration) -> Vec<T> {
        let until = Instant::now() + idle;
        let mut items = self.items.lock();
        while items.is_empty() {
            if self.filled.wait_until(&mut items, until).timed_out() {
                break;
            }
        }
        let batch = items.len().min(batch_max);
        let batch: Vec<_> = items.drain(..batch).collect();
        self.taken.notify_all();
        batch
    }

    /// Returns how many items wait.
    pub fn len(&self) -> usize {
        self.items.lock().len()
    }

    /// Returns whether no item waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
