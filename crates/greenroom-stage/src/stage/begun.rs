use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::time::Duration;

use crate::fair::{Flow, LOOKED_AT_MAX, Turn, Usage, of_all};

/// Begun work that waits for a thread again, in the order of what its flow had used when it was
/// woken.
///
/// Usages grow with time, so of flows that use as much the oldest work goes first, and even the
/// work of a flood has its turn a few half-lives later. A queue that looks at usages anew would
/// leave behind who is taken for a flood, as happens to some among thousands of clients.
#[derive(Debug)]
pub(super) struct Begun<T> {
    heap: BinaryHeap<Reverse<Woken<T>>>,
    backlog: Duration,
    arrival: u64,
    scale: u32,
    /// No work that waits is of a flow that had used more.
    heaviest: f64,
}

#[derive(Debug)]
struct Woken<T> {
    used: f64,
    arrival: u64,
    flow: Flow,
    /// The time that it is yet expected to use.
    rest: Duration,
    work: T,
}

/// The work whose turn is next.
#[derive(Clone, Copy, Debug)]
pub(super) struct Next {
    pub(super) flow: Flow,
    pub(super) rest: Duration,
    /// The usage of its flow when it was woken.
    pub(super) used: f64,
}

impl<T> Begun<T> {
    pub(super) fn len(&self) -> usize {
        self.heap.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    /// Returns the time that all of it is expected to use.
    pub(super) fn backlog(&self) -> Duration {
        self.backlog
    }

    /// Adds work that is yet expected to use `rest`. `advance` is what its flow is charged with for
    /// this same work, and has not used yet.
    pub(super) fn push(
        &mut self,
        flow: Flow,
        rest: Duration,
        advance: f64,
        work: T,
        usage: &Usage,
    ) {
        self.follow_scale(usage);
        let used = (usage.of_flow(flow) - advance).max(0.0);
        self.heaviest = self.heaviest.max(used);
        self.backlog += rest;
        self.arrival += 1;
        self.heap.push(Reverse(Woken {
            used,
            arrival: self.arrival,
            flow,
            rest,
            work,
        }));
    }

    /// Takes the work whose turn it is. Nothing is charged for it in advance: when a poll ends
    /// nobody knows, and the order of what waits is settled.
    pub(super) fn pop(&mut self) -> Option<Turn<T>> {
        let Reverse(woken) = self.heap.pop()?;
        self.backlog = self.backlog.saturating_sub(woken.rest);
        if self.heap.is_empty() {
            self.heaviest = 0.0;
        }
        Some(Turn {
            flow: woken.flow,
            expected: Duration::ZERO,
            work: woken.work,
        })
    }

    pub(super) fn next(&mut self, usage: &Usage) -> Option<Next> {
        self.follow_scale(usage);
        let woken = &self.heap.peek()?.0;
        Some(Next {
            flow: woken.flow,
            rest: woken.rest,
            used: woken.used,
        })
    }

    /// Returns the time that goes before work of a flow which has used `reach` when it is woken, if
    /// nothing more is woken meanwhile; of a long queue an estimate.
    pub(super) fn ahead(&self, reach: f64) -> Duration {
        if reach >= self.heaviest {
            return self.backlog;
        }
        let some = self.heap.iter().take(LOOKED_AT_MAX).map(|woken| &woken.0);
        let before = some.filter(|woken| woken.used <= reach);
        let before = before.map(|woken| woken.rest).sum();
        of_all(before, self.heap.len()).min(self.backlog)
    }

    /// Looks at all usages again after a change of their scale.
    fn follow_scale(&mut self, usage: &Usage) {
        if self.scale == usage.scale() {
            return;
        }
        self.scale = usage.scale();
        let mut all = std::mem::take(&mut self.heap).into_vec();
        for Reverse(woken) in &mut all {
            woken.used = usage.of_flow(woken.flow);
        }
        self.heaviest = all.iter().map(|woken| woken.0.used).fold(0.0, f64::max);
        self.heap = all.into();
    }
}

impl<T> Default for Begun<T> {
    fn default() -> Self {
        Self {
            heap: BinaryHeap::new(),
            backlog: Duration::ZERO,
            arrival: 0,
            scale: 0,
            heaviest: 0.0,
        }
    }
}

impl<T> PartialEq for Woken<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<T> Eq for Woken<T> {}

impl<T> PartialOrd for Woken<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Woken<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        let used = self.used.total_cmp(&other.used);
        used.then(self.arrival.cmp(&other.arrival))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fair::HALF_LIFE;
    use std::time::Instant;

    const MS: Duration = Duration::from_millis(1);

    fn flow(client: u64) -> Flow {
        Flow { route: 1, client }
    }

    fn order(mut begun: Begun<u32>) -> Vec<u32> {
        std::iter::from_fn(|| begun.pop().map(|turn| turn.work)).collect()
    }

    #[test]
    fn who_has_used_less_goes_first_and_of_equals_the_oldest() {
        let now = Instant::now();
        let (mut usage, mut begun) = (Usage::new(now), Begun::default());
        usage.charge(flow(11), 100 * MS, now);
        begun.push(flow(11), MS, 0.0, 1, &usage);
        begun.push(flow(22), MS, 0.0, 2, &usage);
        begun.push(flow(33), MS, 0.0, 3, &usage);
        assert_eq!((begun.len(), begun.backlog()), (3, 3 * MS));
        assert_eq!(order(begun), [2, 3, 1]);
    }

    #[test]
    fn the_work_of_a_flood_has_its_turn_some_half_lives_later() {
        let now = Instant::now();
        let (mut usage, mut begun) = (Usage::new(now), Begun::default());
        usage.charge(flow(11), 100 * MS, now);
        begun.push(flow(11), MS, 0.0, 1, &usage);
        for later in 1..=3 {
            let then = now + HALF_LIFE * later;
            usage.charge(flow(22), 20 * MS, then);
            begun.push(flow(22), MS, 0.0, 1 + later, &usage);
        }
        assert_eq!(order(begun), [2, 1, 3, 4]);
    }

    #[test]
    fn of_a_long_queue_what_is_looked_at_stands_for_all() {
        let now = Instant::now();
        let (mut usage, mut begun) = (Usage::new(now), Begun::default());
        for client in 0..2_000 {
            begun.push(flow(client), MS, 0.0, 0, &usage);
        }
        let heavy = Flow {
            route: 2,
            client: 9,
        };
        usage.charge(heavy, 100 * MS, now);
        begun.push(heavy, MS, 0.0, 1, &usage);
        let ahead = begun.ahead(0.0);
        assert!((1_990 * MS..=2_001 * MS).contains(&ahead), "{ahead:?}");
    }

    #[test]
    fn it_outlives_a_change_of_the_scale_of_usages() {
        let now = Instant::now();
        let (mut usage, mut begun) = (Usage::new(now), Begun::default());
        usage.charge(flow(11), 100 * MS, now);
        begun.push(flow(11), MS, 0.0, 1, &usage);
        usage.charge(flow(22), MS, now + HALF_LIFE * 600);
        begun.push(flow(22), MS, 0.0, 2, &usage);
        begun.push(flow(11), MS, 0.0, 3, &usage);
        assert!(begun.ahead(0.0).is_zero());
        assert_eq!(begun.ahead(f64::MAX), 3 * MS);
        assert_eq!(order(begun), [1, 3, 2]);
    }
}
