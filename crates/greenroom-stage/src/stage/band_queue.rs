//! The waiting work of one band: new work, and work that was begun and woken, in turns.

use std::time::{Duration, Instant};

use super::begun::Begun;
use super::lanes::{Entry, Newcomer};
use crate::fair::{FairQueue, Flow, SetAside, Turn, Usage};

/// The most that new work waits for begun work, however long a run it is itself.
const OWED_MAX: Duration = Duration::from_millis(100);

/// New work and begun work of a band, each fair between flows.
///
/// If begun work always went first, new work would not begin to wait (for a database, say) before
/// all that has waited has computed: the processors would have everything to do at one time and
/// nothing at another, in turns. If it always went last, ever more would be begun under overload,
/// and nothing ended. So the work in process is kept as it is (`CONWIP`: Spearman, Woodruff, Hopp
/// 1990), in processor time and not in runs: beside begun work that waits, new work may begin once
/// begun work has used as much time as the last new run is expected to use in all. If no begun work
/// waits, new work begins at once: there is room for more in process.
///
/// All this is between equals. Work of a flow that will not have used as much by its end as the
/// other has by now, be it new or begun, does not wait for the other's turn: who floods a stage
/// holds up nobody else.
#[derive(Debug)]
pub(crate) struct BandQueue<T> {
    new: FairQueue<T>,
    begun: Begun<T>,
    /// The time that begun work is to use before new work begins beside it.
    owed: Duration,
    /// The time that its last poll used beyond that, which the next new run has for nothing.
    spare: Duration,
}

/// The work of the lighter flow.
enum Lighter {
    New,
    Begun,
}

impl<T> BandQueue<T> {
    pub(crate) fn len(&self) -> usize {
        self.new.len() + self.begun.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.new.is_empty() && self.begun.is_empty()
    }

    /// Returns the number of items that are not of these clients. Begun work of theirs counts until
    /// it is held back.
    pub(crate) fn len_without(&self, clients: &[u64]) -> usize {
        if clients.is_empty() {
            return self.len();
        }
        self.new.len_without(clients) + self.begun.len_without(clients)
    }

    /// True if begun work is held back, which was of a client that was set aside.
    pub(crate) fn holds_back(&self) -> bool {
        self.begun.holds_back()
    }

    /// Leaves no work that may be next to these clients, until it is [put back](Self::put_back).
    pub(crate) fn set_aside(&mut self, clients: &[u64]) -> Vec<SetAside<T>> {
        self.begun.hold_back(clients);
        self.new.set_aside(clients)
    }

    pub(crate) fn put_back(&mut self, aside: Vec<SetAside<T>>, usage: &Usage) {
        self.new.put_back(aside, usage);
    }

    /// Returns the time that all waiting work is expected to use.
    pub(crate) fn backlog(&self) -> Duration {
        self.new.backlog() + self.begun.backlog()
    }

    /// Returns the number of this flow's items of new work.
    pub(crate) fn len_of(&self, flow: Flow) -> usize {
        self.new.len_of(flow)
    }

    /// Returns the oldest new work of this flow. Begun work has waited already, and says nothing of
    /// the wait of new work.
    pub(crate) fn oldest(&self, flow: Flow) -> Option<&T> {
        self.new.oldest(flow)
    }

    pub(crate) fn push(&mut self, entry: Entry, work: T, usage: &Usage) {
        if entry.is_begun {
            let advance = entry
                .advance
                .map_or(0.0, |advance| usage.of_run(advance.time, advance.at));
            self.begun
                .push(entry.flow, entry.expected, advance, work, usage);
        } else {
            self.new.push(entry.flow, entry.expected, work, usage);
        }
    }

    /// Takes the work whose turn it is. The flag is `true` for begun work.
    pub(crate) fn pop(&mut self, usage: &Usage, now: Instant) -> Option<(Turn<T>, bool)> {
        if self.new.is_empty() {
            return self.pop_begun().map(|turn| (turn, true));
        }
        if !self.begun.has_next() {
            return Some((self.new.pop(usage)?, false));
        }
        match self.lighter(usage, now) {
            Some(Lighter::New) => Some((self.new.pop(usage)?, false)),
            None if self.owed.is_zero() => self.pop_new_in_turn(usage),
            None | Some(Lighter::Begun) => self.pop_begun().map(|turn| (turn, true)),
        }
    }

    /// Compares the flows whose turns are next, by what they will have used and what they have.
    fn lighter(&mut self, usage: &Usage, now: Instant) -> Option<Lighter> {
        let (flow, expected) = self.new.head(usage)?;
        let begun = self.begun.next(usage)?;
        let used = usage.of_flow(flow);
        if used + usage.of_run(expected, now) <= begun.used {
            return Some(Lighter::New);
        }
        let begun_ends = usage.of_flow(begun.flow) + usage.of_run(begun.rest, now);
        (begun.flow != flow && begun_ends <= used).then_some(Lighter::Begun)
    }

    fn pop_new_in_turn(&mut self, usage: &Usage) -> Option<(Turn<T>, bool)> {
        let turn = self.new.pop(usage)?;
        self.owed = turn.expected.saturating_sub(self.spare).min(OWED_MAX);
        self.spare = Duration::ZERO;
        Some((turn, false))
    }

    /// Takes the begun work whose turn it is.
    pub(crate) fn pop_begun(&mut self) -> Option<Turn<T>> {
        let turn = self.begun.pop()?;
        self.forget_owed_if_none();
        Some(turn)
    }

    /// Forgets what begun work is to use before new work begins, if none waits.
    fn forget_owed_if_none(&mut self) {
        if !self.begun.has_next() {
            (self.owed, self.spare) = (Duration::ZERO, Duration::ZERO);
        }
    }

    /// Takes into account the time that begun work of this band has used.
    pub(crate) fn begun_used(&mut self, used: Duration) {
        if self.begun.has_next() {
            self.spare = used.saturating_sub(self.owed);
            self.owed = self.owed.saturating_sub(used);
        }
    }

    /// Takes back what new work owed that was not begun after all.
    pub(crate) fn not_begun(&mut self, expected: Duration) {
        self.owed = self.owed.saturating_sub(expected);
    }

    /// Moves a client forward after a refund of time.
    pub(crate) fn refunded(&mut self, client: u64, usage: &Usage) {
        self.new.refunded(client, usage);
    }

    /// Returns the time that is expected to be used before a newcomer has its turn, of what waits
    /// now; the sum stops at `enough`.
    ///
    /// It begins in turn with begun work, and so waits for new work only. But what it computes
    /// after its first wait comes behind the begun work of flows that have used no more: where that
    /// takes longer than `begun_max`, as after a stall of a database, the rest counts.
    pub(crate) fn ahead(
        &self,
        newcomer: &Newcomer,
        usage: &Usage,
        enough: Duration,
        now: Instant,
    ) -> Duration {
        let new = self.new.ahead(newcomer.flow, usage, enough, now);
        if self.begun.backlog() <= newcomer.begun_max {
            return new;
        }
        let reach = usage.of_flow(newcomer.flow) + usage.of_run(newcomer.expected, now);
        let begun = self.begun.ahead(reach);
        new + begun.saturating_sub(newcomer.begun_max)
    }

    /// Takes out the new work for which `is_out` holds. Work that was begun ends at its turn.
    pub(crate) fn take_out(&mut self, is_out: impl FnMut(&T) -> bool) -> Vec<T> {
        self.new.take_out(is_out)
    }

    /// Takes out the begun work for which `is_out` holds.
    pub(crate) fn take_out_begun(&mut self, is_out: impl FnMut(&T) -> bool) -> Vec<Turn<T>> {
        let out = self.begun.take_out(is_out);
        self.forget_owed_if_none();
        out
    }
}

impl<T> Default for BandQueue<T> {
    fn default() -> Self {
        Self {
            new: FairQueue::default(),
            begun: Begun::default(),
            owed: Duration::ZERO,
            spare: Duration::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::lanes::Band;
    use super::*;

    const MS: Duration = Duration::from_millis(1);
    const FLOOD: Flow = Flow {
        route: 1,
        client: 11,
    };
    const POLITE: Flow = Flow {
        route: 1,
        client: 22,
    };

    struct Queue {
        band: BandQueue<&'static str>,
        usage: Usage,
        now: Instant,
    }

    impl Queue {
        fn new() -> Self {
            let now = Instant::now();
            Self {
                band: BandQueue::default(),
                usage: Usage::new(now),
                now,
            }
        }

        fn push(&mut self, flow: Flow, expected: Duration, is_begun: bool, work: &'static str) {
            let entry = Entry {
                band: Band::Normal,
                flow,
                expected,
                advance: None,
                is_begun,
            };
            self.band.push(entry, work, &self.usage);
        }

        fn pop(&mut self) -> Option<&'static str> {
            let popped = self.band.pop(&self.usage, self.now);
            popped.map(|(turn, _)| turn.work)
        }
    }

    #[test]
    fn new_work_begins_once_begun_work_has_used_as_much_as_it_is_expected_to() {
        let mut queue = Queue::new();
        for work in ["new 1", "new 2", "new 3"] {
            queue.push(FLOOD, 3 * MS, false, work);
        }
        for work in ["begun 1", "begun 2", "begun 3", "begun 4"] {
            queue.push(FLOOD, 2 * MS, true, work);
        }
        assert_eq!(queue.pop(), Some("new 1"));
        assert_eq!(queue.pop(), Some("begun 1"));
        queue.band.begun_used(2 * MS);
        assert_eq!(queue.pop(), Some("begun 2"));
        queue.band.begun_used(2 * MS);
        assert_eq!(queue.pop(), Some("new 2"));
        // 1 ms was used beyond, and 2 are owed.
        assert_eq!(queue.pop(), Some("begun 3"));
        queue.band.begun_used(2 * MS);
        assert_eq!(queue.pop(), Some("new 3"));
    }

    #[test]
    fn new_work_that_is_dropped_owes_nothing() {
        let mut queue = Queue::new();
        queue.push(FLOOD, 3 * MS, false, "dropped");
        queue.push(FLOOD, 3 * MS, false, "new");
        queue.push(FLOOD, MS, true, "begun");
        assert_eq!(queue.pop(), Some("dropped"));
        queue.band.not_begun(3 * MS);
        assert_eq!(queue.pop(), Some("new"));
    }

    #[test]
    fn neither_new_nor_begun_work_waits_for_that_of_a_flood() {
        let mut queue = Queue::new();
        queue.usage.charge(FLOOD, 100 * MS, queue.now);
        for _ in 0..2 {
            queue.push(FLOOD, 10 * MS, false, "flood's new");
            queue.push(POLITE, MS, true, "polite's begun");
            assert_eq!(queue.pop(), Some("polite's begun"));
        }
        queue.push(FLOOD, 10 * MS, true, "flood's begun");
        for _ in 0..2 {
            queue.push(POLITE, 10 * MS, false, "polite's new");
            assert_eq!(queue.pop(), Some("polite's new"));
        }
    }

    #[test]
    fn a_newcomer_is_told_of_begun_work_beyond_what_there_may_be() {
        let mut queue = Queue::new();
        for _ in 0..100 {
            queue.push(FLOOD, 10 * MS, true, "begun");
        }
        queue.push(FLOOD, 10 * MS, false, "new");
        let ahead = |flow, begun_max| {
            let newcomer = Newcomer {
                band: Band::Normal,
                flow,
                expected: 10 * MS,
                begun_max,
            };
            let Queue { band, usage, now } = &queue;
            band.ahead(&newcomer, usage, Duration::MAX, *now)
        };
        assert_eq!(ahead(FLOOD, 1_000 * MS), 10 * MS);
        assert_eq!(ahead(FLOOD, 400 * MS), 610 * MS);
    }
}
