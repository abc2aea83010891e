//! The lanes: waiting work of a stage, in the order in which its threads take it.

use std::time::{Duration, Instant};

use super::band_queue::BandQueue;
use crate::admission::Standing;
use crate::fair::{Flow, Turn, Usage};

/// Every eighth turn is that of the long bands, if anything waits there: they must not stand still,
/// however much goes before them.
const LONG_EVERY: u64 = 8;

/// Every 64th turn is that of bulk work that was begun, if any waits: a response that was begun is
/// not to stand still for as long as other work is there. New bulk work is refused by then.
const BULK_EVERY: u64 = 64;

/// The bands of waiting work, the first before the last. Within a band it is fair between flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Band {
    /// The most important.
    Critical,
    /// Of a route that is likely short.
    Short,
    /// Of any other route.
    Normal,
    /// The least important.
    Bulk,
}

const BANDS: [Band; 4] = [Band::Critical, Band::Short, Band::Normal, Band::Bulk];

/// The two kinds of runs: one does not wait for a thread that the other holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Length {
    /// Likely over soon.
    Short,
    /// Long, or of unknown length.
    Long,
}

pub(crate) const LENGTHS: [Length; 2] = [Length::Short, Length::Long];

impl Band {
    pub(crate) fn length(self) -> Length {
        match self {
            Self::Critical | Self::Short => Length::Short,
            Self::Normal | Self::Bulk => Length::Long,
        }
    }

    /// Returns those of the clients whose work in this band has no turn when theirs has none.
    /// Critical work is little, and needed most when there is overload.
    fn without(self, clients: &[u64]) -> &[u64] {
        if self == Self::Critical { &[] } else { clients }
    }

    /// True if work of this band has its turn before, or in turn with, work of the other.
    fn goes_before(self, other: Self) -> bool {
        self == Self::Critical || (self.length() == other.length() && self as u8 <= other as u8)
    }
}

/// Work that enters the lanes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) band: Band,
    pub(crate) flow: Flow,
    /// The time that it is yet expected to use.
    pub(crate) expected: Duration,
    /// The charge of its flow for it, if it was woken in its first poll.
    pub(crate) advance: Option<Advance>,
    /// It was begun before, and woken.
    pub(crate) is_begun: bool,
}

impl Entry {
    /// Returns the entry of begun work that is only to be dropped, as its client has left. It goes
    /// with critical work: what it holds may be what all others wait for.
    pub(crate) fn of_left(flow: Flow) -> Self {
        Self {
            band: Band::Critical,
            flow,
            expected: Duration::ZERO,
            advance: None,
            is_begun: true,
        }
    }
}

/// Time that a flow is charged with for a run, and has not used by a moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Advance {
    pub(crate) time: Duration,
    pub(crate) at: Instant,
}

/// Work that asks to be admitted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Newcomer {
    pub(crate) band: Band,
    pub(crate) flow: Flow,
    /// The time that it is expected to use.
    pub(crate) expected: Duration,
    /// The time that begun work may need before it counts as going before the newcomer.
    pub(crate) begun_max: Duration,
}

/// Work whose turn has come.
#[derive(Debug)]
pub(crate) struct Taken<T> {
    pub(crate) turn: Turn<T>,
    pub(crate) band: Band,
    pub(crate) is_begun: bool,
}

/// The time that a run, or a part of it, has used.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spent {
    pub(crate) flow: Flow,
    pub(crate) band: Band,
    pub(crate) is_begun: bool,
    /// The time that was charged in advance, and when.
    pub(crate) expected: Duration,
    pub(crate) charged: Instant,
    pub(crate) used: Duration,
    /// The whole run, if it has ended.
    pub(crate) run: Option<Ended>,
}

impl Spent {
    /// Nothing of what was charged when this work was taken.
    pub(crate) fn nothing<T>(taken: &Taken<T>, charged: Instant) -> Self {
        Self {
            flow: taken.turn.flow,
            band: taken.band,
            is_begun: taken.is_begun,
            expected: taken.turn.expected,
            charged,
            used: Duration::ZERO,
            run: None,
        }
    }
}

/// A run that has ended, or was given up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ended {
    /// The time for which it wanted a processor.
    pub(crate) wanted: Duration,
    /// The time that its caller had stated for it.
    pub(crate) stated: Option<Duration>,
}

/// The queues of a stage, one for each band, and the usage of its clients and routes.
#[derive(Debug)]
pub(crate) struct Lanes<T> {
    queues: [BandQueue<T>; BANDS.len()],
    pub(crate) usage: Usage,
    pub(crate) standing: Standing,
    taken: u64,
}

impl<T> Lanes<T> {
    pub(crate) fn new(queue_wait_max: Duration, now: Instant) -> Self {
        Self {
            queues: std::array::from_fn(|_| BandQueue::default()),
            usage: Usage::new(now),
            standing: Standing::new(queue_wait_max),
            taken: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.queues.iter().map(BandQueue::len).sum()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queues.iter().all(BandQueue::is_empty)
    }

    pub(crate) fn len_of(&self, length: Length) -> usize {
        self.len_without(length, &[])
    }

    /// Returns the number of waiting items of this length that [have a turn](Self::without) without
    /// these clients.
    pub(crate) fn len_without(&self, length: Length, clients: &[u64]) -> usize {
        let bands = BANDS.iter().filter(|band| band.length() == length);
        let len = |band: &Band| self.queue(*band).len_without(band.without(clients));
        bands.map(len).sum()
    }

    pub(crate) fn queue(&self, band: Band) -> &BandQueue<T> {
        &self.queues[band as usize]
    }

    pub(crate) fn push(&mut self, entry: Entry, work: T) {
        self.queues[entry.band as usize].push(entry, work, &self.usage);
    }

    /// Takes the work whose turn it is, of the lengths for which a thread may be had, and
    /// [without](Self::without) the clients that may have none. The time it is expected to use is
    /// charged now, or the next would be of the same flow.
    pub(crate) fn pop(
        &mut self,
        may_take: impl Fn(Length) -> bool,
        clients: &[u64],
        now: Instant,
    ) -> Option<Taken<T>> {
        let taken = self.without(clients, |lanes| {
            lanes
                .pop_out_of_order(&may_take, now)
                .or_else(|| lanes.pop_of(&BANDS, &may_take, now))
        })?;
        self.taken += 1;
        self.usage.charge(taken.turn.flow, taken.turn.expected, now);
        if self.is_empty() {
            self.standing.emptied();
        }
        Some(taken)
    }

    /// Looks at the lanes as if nothing waited of these clients, critical work apart.
    pub(crate) fn without<R>(&mut self, clients: &[u64], look: impl FnOnce(&mut Self) -> R) -> R {
        if clients.is_empty() && !self.queues.iter().any(BandQueue::holds_back) {
            return look(self);
        }
        let aside = BANDS.map(|band| self.queues[band as usize].set_aside(band.without(clients)));
        let looked = look(self);
        for (queue, aside) in self.queues.iter_mut().zip(aside) {
            queue.put_back(aside, &self.usage);
        }
        looked
    }

    /// Takes the work whose turn it is whatever goes before it.
    fn pop_out_of_order(
        &mut self,
        may_take: impl Fn(Length) -> bool,
        now: Instant,
    ) -> Option<Taken<T>> {
        let is_turn = |every: u64| self.taken % every == every - 1;
        if !is_turn(LONG_EVERY) || !may_take(Length::Long) {
            return None;
        }
        let bulk = is_turn(BULK_EVERY).then(|| self.queues[Band::Bulk as usize].pop_begun());
        let bulk = bulk.flatten().map(|turn| Taken {
            turn,
            band: Band::Bulk,
            is_begun: true,
        });
        bulk.or_else(|| self.pop_of(&BANDS[2..], may_take, now))
    }

    /// Puts work back that was taken for short, and is not: it waits with work of unknown length.
    pub(crate) fn demote(&mut self, taken: Taken<T>, now: Instant) {
        self.settle(&Spent::nothing(&taken, now), now);
        let entry = Entry {
            band: Band::Normal,
            flow: taken.turn.flow,
            expected: taken.turn.expected,
            advance: None,
            is_begun: false,
        };
        self.push(entry, taken.turn.work);
    }

    fn pop_of(
        &mut self,
        bands: &[Band],
        may_take: impl Fn(Length) -> bool,
        now: Instant,
    ) -> Option<Taken<T>> {
        let mut bands = bands.iter().filter(|band| may_take(band.length()));
        bands.find_map(|&band| {
            let (turn, is_begun) = self.queues[band as usize].pop(&self.usage, now)?;
            Some(Taken {
                turn,
                band,
                is_begun,
            })
        })
    }

    /// Corrects the charge that was made in advance.
    pub(crate) fn settle(&mut self, spent: &Spent, now: Instant) {
        let flow = spent.flow;
        let queue = &mut self.queues[spent.band as usize];
        if spent.is_begun {
            queue.begun_used(spent.used);
        } else if spent.used.is_zero() {
            queue.not_begun(spent.expected);
        }
        if let Some(more) = spent.used.checked_sub(spent.expected) {
            self.usage.charge(flow, more, now);
        } else {
            let unused = spent.expected.saturating_sub(spent.used);
            self.usage.refund(flow, unused, spent.charged);
            for queue in &mut self.queues {
                queue.refunded(flow.client, &self.usage);
            }
        }
        if let Some(run) = spent.run {
            self.learn(flow.route, run);
        }
    }

    pub(crate) fn learn(&mut self, route: u64, run: Ended) {
        match run.stated {
            Some(stated) => self.usage.learn_stated(route, stated, run.wanted),
            None => self.usage.learn(route, run.wanted),
        }
    }

    /// Learns of a run that would have taken at least this time. If less was expected of it, that
    /// was too little; if more was, that may be right.
    pub(crate) fn learn_at_least(&mut self, route: u64, run: Ended) {
        if run.wanted > self.expected(route, run.stated) {
            self.learn(route, run);
        }
    }

    /// Returns the time that a run of this route is expected to use, for which its caller may have
    /// stated one.
    pub(crate) fn expected(&self, route: u64, stated: Option<Duration>) -> Duration {
        match stated {
            Some(stated) => self.usage.expected_of_stated(route, stated),
            None => self.usage.expected(route),
        }
    }

    /// Returns the time that is expected to be used before a newcomer has its turn; up to `enough`
    /// only. See [`BandQueue::ahead`].
    pub(crate) fn ahead(&self, newcomer: &Newcomer, enough: Duration, now: Instant) -> Duration {
        let band = newcomer.band;
        let others = BANDS
            .iter()
            .filter(|other| **other != band && other.goes_before(band));
        let before: Duration = others.map(|other| self.queue(*other).backlog()).sum();
        let own = self.queue(band);
        let all = before + own.backlog();
        if all.is_zero() || before >= enough {
            return all;
        }
        let enough = enough.saturating_sub(before);
        before + own.ahead(newcomer, &self.usage, enough, now)
    }

    /// Returns the time that all waiting work that goes before or with work of this band is
    /// expected to use.
    pub(crate) fn backlog(&self, band: Band) -> Duration {
        let bands = BANDS.iter().filter(|other| other.goes_before(band));
        bands.map(|other| self.queue(*other).backlog()).sum()
    }

    /// Moves begun work forward for which `has_left` holds: see [`Entry::of_left`].
    pub(crate) fn bring_forward(&mut self, mut has_left: impl FnMut(&T) -> bool) {
        for band in &BANDS[1..] {
            for turn in self.queues[*band as usize].take_out_begun(&mut has_left) {
                self.push(Entry::of_left(turn.flow), turn.work);
            }
        }
    }

    /// Takes out the new work for which `is_out` holds.
    pub(crate) fn take_out(&mut self, mut is_out: impl FnMut(&T) -> bool) -> Vec<T> {
        let queues = self.queues.iter_mut();
        queues
            .flat_map(|queue| queue.take_out(&mut is_out))
            .collect()
    }
}
