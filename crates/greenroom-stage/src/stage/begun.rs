use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::time::Duration;

use rustc_hash::FxHashMap;

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
    /// By client, the work that was [held back](Self::hold_back).
    held_back: FxHashMap<u64, BinaryHeap<Reverse<Woken<T>>>>,
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
        self.len_without(&[])
    }

    /// Returns the number of items but for those that are held back of these clients.
    pub(super) fn len_without(&self, clients: &[u64]) -> usize {
        let held_back = self.held_back.iter();
        let held_back = held_back.filter(|(client, _)| !clients.contains(client));
        self.heap.len() + held_back.map(|(_, work)| work.len()).sum::<usize>()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.heap.is_empty() && self.held_back.is_empty()
    }

    /// True if there is work that is not held back.
    pub(super) fn has_next(&self) -> bool {
        !self.heap.is_empty()
    }

    pub(super) fn holds_back(&self) -> bool {
        !self.held_back.is_empty()
    }

    /// Holds work of these clients back that would be next, and brings back what was held back of
    /// others: of each its first, which is enough for one turn.
    ///
    /// All of it at once would come and go with each thread that a client is given and gives back.
    pub(super) fn hold_back(&mut self, clients: &[u64]) {
        let heap = &mut self.heap;
        self.held_back.retain(|client, work| {
            if clients.contains(client) {
                return true;
            }
            heap.extend(work.pop());
            !work.is_empty()
        });
        while let Some(next) = heap.peek_mut()
            && clients.contains(&next.0.flow.client)
        {
            let woken = PeekMut::pop(next);
            let of_client = self.held_back.entry(woken.0.flow.client);
            of_client.or_default().push(woken);
        }
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
        let woken = Reverse(Woken {
            used,
            arrival: self.arrival,
            flow,
            rest,
            work,
        });
        match self.held_back.get_mut(&flow.client) {
            Some(held_back) => held_back.push(woken),
            None => self.heap.push(woken),
        }
    }

    /// Takes the work whose turn it is. Nothing is charged for it in advance: when a poll ends
    /// nobody knows, and the order of what waits is settled.
    pub(super) fn pop(&mut self) -> Option<Turn<T>> {
        let Reverse(woken) = self.heap.pop()?;
        Some(self.taken(woken))
    }

    /// Takes out all work for which `is_out` holds, in no particular order.
    pub(super) fn take_out(&mut self, mut is_out: impl FnMut(&T) -> bool) -> Vec<Turn<T>> {
        let mut out = Vec::new();
        for heap in self.held_back.values_mut().chain([&mut self.heap]) {
            let all = std::mem::take(heap).into_iter();
            let (of_heap, rest): (Vec<_>, Vec<_>) = all.partition(|woken| is_out(&woken.0.work));
            out.extend(of_heap);
            *heap = rest.into();
        }
        self.held_back.retain(|_, work| !work.is_empty());
        out.into_iter()
            .map(|Reverse(woken)| self.taken(woken))
            .collect()
    }

    fn taken(&mut self, woken: Woken<T>) -> Turn<T> {
        self.backlog = self.backlog.saturating_sub(woken.rest);
        if self.is_empty() {
            self.heaviest = 0.0;
        }
        Turn {
            flow: woken.flow,
            expected: Duration::ZERO,
            work: woken.work,
        }
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
        self.heaviest = 0.0;
        for heap in self.held_back.values_mut().chain([&mut self.heap]) {
            let mut all = std::mem::take(heap).into_vec();
            for Reverse(woken) in &mut all {
                woken.used = usage.of_flow(woken.flow);
                self.heaviest = self.heaviest.max(woken.used);
            }
            *heap = all.into();
        }
    }
}

impl<T> Default for Begun<T> {
    fn default() -> Self {
        Self {
            heap: BinaryHeap::new(),
            held_back: FxHashMap::default(),
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
    fn what_is_held_back_goes_after_others_and_keeps_its_order() {
        let now = Instant::now();
        let (mut usage, mut begun) = (Usage::new(now), Begun::default());
        for work in 0..3 {
            begun.push(flow(11), MS, 0.0, work, &usage);
        }
        usage.charge(flow(22), MS, now);
        begun.push(flow(22), MS, 0.0, 10, &usage);
        begun.hold_back(&[11]);
        begun.push(flow(11), MS, 0.0, 3, &usage);
        assert_eq!((begun.len(), begun.len_without(&[11])), (5, 1));
        assert_eq!(begun.pop().map(|turn| turn.work), Some(10));
        assert!(!begun.has_next() && begun.holds_back() && !begun.is_empty());
        let mut order = Vec::new();
        while !begun.is_empty() {
            begun.hold_back(&[11]);
            assert!(!begun.has_next());
            begun.hold_back(&[]);
            order.extend(begun.pop().map(|turn| turn.work));
        }
        assert_eq!(order, [0, 1, 2, 3]);
    }

    #[test]
    fn what_is_taken_out_waits_no_more() {
        let now = Instant::now();
        let (usage, mut begun) = (Usage::new(now), Begun::default());
        for work in 0..10 {
            begun.push(flow(u64::from(work % 2)), MS, 0.0, work, &usage);
        }
        begun.hold_back(&[0]);
        let out = begun.take_out(|work| *work < 6);
        assert_eq!((out.len(), begun.len(), begun.backlog()), (6, 4, 4 * MS));
        begun.hold_back(&[]);
        begun.hold_back(&[]);
        assert!(!begun.holds_back());
        assert_eq!(order(begun), [6, 7, 8, 9]);
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
