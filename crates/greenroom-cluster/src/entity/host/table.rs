use std::collections::{BTreeMap, HashMap, VecDeque};

use tokio::time::Instant;

use crate::names::EntityId;

/// The entities that are active at a node, and those that are being activated or passivated. `A` is
/// an activation, `Q` a message that waits.
///
/// Each entity is idle, or has one *runner*: a task that gives it its messages one by one, and ends
/// when there are none. Whoever makes an entity busy starts its runner.
pub(super) struct Table<A, Q> {
    slots: HashMap<EntityId, Slot<A, Q>>,
    /// The idle entities, by the moment and the turn in which they became so: the one that is idle
    /// longest first.
    idle: BTreeMap<(Instant, u64), EntityId>,
    turn: u64,
    /// The entities that make room for others, and are not gone yet.
    evicted: usize,
}

enum Slot<A, Q> {
    Busy(Busy<A, Q>),
    Idle {
        active: A,
        since: Instant,
        turn: u64,
    },
}

struct Busy<A, Q> {
    queue: VecDeque<Q>,
    /// For those who would end it; the runner has its own.
    active: Option<A>,
    is_evicted: bool,
}

/// The limits of a table.
#[expect(clippy::struct_field_names, reason = "limits are named so everywhere")]
pub(super) struct TableLimits {
    pub(super) active_max: usize,
    /// Entities that may make room for others at a time.
    pub(super) evicted_max: usize,
    pub(super) queue_max: usize,
}

/// The outcome of giving a message to an entity.
pub(super) enum Offer<A, Q> {
    /// Its runner will get to it.
    Queued,
    /// It has a runner from now on, which the caller starts, and so has the entity that makes room.
    Begin {
        active: Option<A>,
        evicted: Option<(EntityId, A)>,
    },
    /// There is no room.
    Full(Q),
}

/// Room for an entity.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Room<A> {
    Free,
    /// The entity that makes room, which is to be passivated.
    By((EntityId, A)),
    None,
}

/// The next task of a runner.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next<Q> {
    Handle(Q),
    /// To end the activation, and ask again.
    End,
    /// Nothing: the entity has no runner any more.
    Rest,
}

impl<A: Clone, Q> Table<A, Q> {
    pub(super) fn new() -> Self {
        Self {
            slots: HashMap::new(),
            idle: BTreeMap::new(),
            turn: 0,
            evicted: 0,
        }
    }

    /// Returns the number of entities that are active, or will be or were a moment ago.
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(super) fn idle(&self) -> usize {
        self.idle.len()
    }

    pub(super) fn offer(&mut self, id: &EntityId, message: Q, limits: &TableLimits) -> Offer<A, Q> {
        match self.slots.get_mut(id) {
            Some(Slot::Busy(busy)) if busy.queue.len() >= limits.queue_max => Offer::Full(message),
            Some(Slot::Busy(busy)) => {
                busy.queue.push_back(message);
                Offer::Queued
            }
            Some(Slot::Idle { .. }) => {
                let active = self.begin(id, Some(message));
                let evicted = None;
                Offer::Begin { active, evicted }
            }
            None => self.offer_new(id, message, limits),
        }
    }

    fn offer_new(&mut self, id: &EntityId, message: Q, limits: &TableLimits) -> Offer<A, Q> {
        let evicted = match self.room(limits.active_max - 1, limits.evicted_max) {
            Room::Free => None,
            Room::By(evicted) => Some(evicted),
            Room::None => return Offer::Full(message),
        };
        let busy = Busy {
            queue: VecDeque::from([message]),
            active: None,
            is_evicted: false,
        };
        self.slots.insert(id.clone(), Slot::Busy(busy));
        let active = None;
        Offer::Begin { active, evicted }
    }

    /// Makes room for an entity that is in the table already.
    pub(super) fn make_room(&mut self, limits: &TableLimits) -> Room<A> {
        self.room(limits.active_max, limits.evicted_max)
    }

    fn room(&mut self, len_max: usize, evicted_max: usize) -> Room<A> {
        if self.slots.len() - self.evicted <= len_max {
            return Room::Free;
        }
        if self.evicted >= evicted_max {
            return Room::None;
        }
        let evicted = self.take_idle(|_| true, true);
        evicted.map_or(Room::None, Room::By)
    }

    /// Makes an idle entity busy, and returns its activation.
    fn begin(&mut self, id: &EntityId, message: Option<Q>) -> Option<A> {
        let slot = self.slots.get_mut(id)?;
        let Slot::Idle {
            active,
            since,
            turn,
        } = slot
        else {
            return None;
        };
        self.idle.remove(&(*since, *turn));
        let active = active.clone();
        *slot = Slot::Busy(Busy {
            queue: message.into_iter().collect(),
            active: Some(active.clone()),
            is_evicted: false,
        });
        Some(active)
    }

    /// Makes the entity busy that is idle longest, if that is since a moment which fits, so that it
    /// is passivated.
    pub(super) fn take_idle(
        &mut self,
        fits: impl FnOnce(Instant) -> bool,
        is_evicted: bool,
    ) -> Option<(EntityId, A)> {
        if !fits(self.idle_since()?) {
            return None;
        }
        let id = self.idle.first_key_value()?.1.clone();
        let active = self.begin(&id, None)?;
        if let Some(Slot::Busy(busy)) = self.slots.get_mut(&id) {
            busy.is_evicted = is_evicted;
            self.evicted += usize::from(is_evicted);
        }
        Some((id, active))
    }

    /// Returns the moment since which the entity is idle that is so longest.
    pub(super) fn idle_since(&self) -> Option<Instant> {
        self.idle.first_key_value().map(|((since, _), _)| *since)
    }

    /// Returns the next task of an entity's runner. An entity without messages becomes idle since
    /// this moment, if it may, or is removed if it is not active.
    pub(super) fn next(&mut self, id: &EntityId, since: Instant, may_rest: bool) -> Next<Q> {
        let Some(Slot::Busy(busy)) = self.slots.get_mut(id) else {
            return Next::Rest;
        };
        if let Some(message) = busy.queue.pop_front() {
            return Next::Handle(message);
        }
        let Some(active) = busy.active.clone() else {
            self.remove(id);
            return Next::Rest;
        };
        if !may_rest {
            return Next::End;
        }
        self.turn += 1;
        self.idle.insert((since, self.turn), id.clone());
        let idle = Slot::Idle {
            active,
            since,
            turn: self.turn,
        };
        self.slots.insert(id.clone(), idle);
        Next::Rest
    }

    /// Notes the activation of a busy entity, or its end.
    pub(super) fn set_active(&mut self, id: &EntityId, active: Option<A>) {
        if let Some(Slot::Busy(busy)) = self.slots.get_mut(id) {
            // Once it has ended, it makes no room any more but takes it.
            self.evicted -= usize::from(std::mem::take(&mut busy.is_evicted));
            busy.active = active;
        }
    }

    /// Returns those of the messages that wait for a busy entity.
    pub(super) fn take_queued(
        &mut self,
        id: &EntityId,
        is_one: impl Fn(&Q) -> bool,
    ) -> VecDeque<Q> {
        match self.slots.get_mut(id) {
            Some(Slot::Busy(busy)) if busy.queue.iter().any(&is_one) => {
                let (taken, left) = busy.queue.drain(..).partition(is_one);
                busy.queue = left;
                taken
            }
            _ => VecDeque::new(),
        }
    }

    /// Returns the messages that wait for a busy entity.
    pub(super) fn take_queue(&mut self, id: &EntityId) -> VecDeque<Q> {
        match self.slots.get_mut(id) {
            Some(Slot::Busy(busy)) => std::mem::take(&mut busy.queue),
            _ => VecDeque::new(),
        }
    }

    /// Removes a busy entity whose runner failed. Returns its activation and its messages.
    pub(super) fn remove(&mut self, id: &EntityId) -> (Option<A>, VecDeque<Q>) {
        match self.slots.remove(id) {
            Some(Slot::Busy(busy)) => {
                self.evicted -= usize::from(busy.is_evicted);
                (busy.active, busy.queue)
            }
            Some(Slot::Idle {
                active,
                since,
                turn,
            }) => {
                self.idle.remove(&(since, turn));
                (Some(active), VecDeque::new())
            }
            None => (None, VecDeque::new()),
        }
    }

    /// Returns the activations of busy entities.
    pub(super) fn busy(&self) -> Vec<A> {
        let busy = self.slots.values().filter_map(|slot| match slot {
            Slot::Busy(busy) => busy.active.clone(),
            Slot::Idle { .. } => None,
        });
        busy.collect()
    }

    /// Removes the idle entities, and returns all activations.
    pub(super) fn end_all(&mut self) -> Vec<A> {
        let idle: Vec<_> = std::mem::take(&mut self.idle).into_values().collect();
        let mut ended: Vec<_> = idle.iter().filter_map(|id| self.remove(id).0).collect();
        ended.extend(self.busy());
        ended
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const LIMITS: TableLimits = TableLimits {
        active_max: 3,
        evicted_max: 1,
        queue_max: 2,
    };

    type Entities = Table<&'static str, u32>;

    fn id(id: &str) -> EntityId {
        EntityId::new(id).expect("it is short")
    }

    fn activate(table: &mut Entities, name: &'static str, now: Instant) {
        let offer = table.offer(&id(name), 0, &LIMITS);
        assert!(matches!(offer, Offer::Begin { active: None, .. }));
        table.set_active(&id(name), Some(name));
        assert_eq!(table.next(&id(name), now, true), Next::Handle(0));
        assert_eq!(table.next(&id(name), now, true), Next::Rest);
    }

    #[test]
    fn messages_wait_in_order_and_up_to_the_limit() {
        let (mut table, now, a) = (Entities::new(), Instant::now(), id("a"));
        assert!(matches!(
            table.offer(&a, 1, &LIMITS),
            Offer::Begin { active: None, .. }
        ));
        assert!(matches!(table.offer(&a, 2, &LIMITS), Offer::Queued));
        assert!(matches!(table.offer(&a, 3, &LIMITS), Offer::Full(3)));
        assert_eq!(table.next(&a, now, true), Next::Handle(1));
        assert!(matches!(table.offer(&a, 4, &LIMITS), Offer::Queued));
        assert_eq!(table.next(&a, now, true), Next::Handle(2));
        assert_eq!(table.next(&a, now, true), Next::Handle(4));
        assert_eq!(table.next(&a, now, true), Next::Rest);
        assert_eq!(table.len(), 0, "it was never activated");
    }

    #[test]
    fn an_idle_entity_goes_on_where_it_was() {
        let (mut table, now) = (Entities::new(), Instant::now());
        activate(&mut table, "a", now);
        assert_eq!((table.len(), table.idle()), (1, 1));
        let offer = table.offer(&id("a"), 1, &LIMITS);
        assert!(matches!(
            offer,
            Offer::Begin {
                active: Some("a"),
                evicted: None
            }
        ));
        assert_eq!((table.len(), table.idle()), (1, 0));
    }

    #[test]
    fn the_one_that_is_idle_longest_makes_room() {
        let (mut table, now) = (Entities::new(), Instant::now());
        for name in ["a", "b", "c"] {
            activate(&mut table, name, now);
        }
        // Used again, `a` is idle since now, and `b` is idle longest.
        table.offer(&id("a"), 1, &LIMITS);
        table.next(&id("a"), now, true);
        table.next(&id("a"), now, true);
        let Offer::Begin { evicted, .. } = table.offer(&id("d"), 1, &LIMITS) else {
            panic!("there is room");
        };
        assert_eq!(evicted, Some((id("b"), "b")));
        // One at a time: as long as `b` is there, nothing else makes room.
        assert!(matches!(table.offer(&id("e"), 1, &LIMITS), Offer::Full(1)));
        table.set_active(&id("b"), None);
        assert_eq!(table.next(&id("b"), now, true), Next::Rest);
        let Offer::Begin { evicted, .. } = table.offer(&id("e"), 1, &LIMITS) else {
            panic!("there is room");
        };
        assert_eq!(evicted, Some((id("c"), "c")));
    }

    #[test]
    fn an_entity_that_made_room_comes_back_only_if_there_is_some() {
        let (mut table, now) = (Entities::new(), Instant::now());
        for name in ["a", "b", "c", "d"] {
            table.offer(&id(name), 0, &LIMITS);
            table.set_active(&id(name), Some(name));
            table.next(&id(name), now, true);
            if name < "c" {
                table.next(&id(name), now, true);
            }
        }
        // `a` has made room for `d`; now there is a message for it.
        table.offer(&id("a"), 1, &LIMITS);
        table.set_active(&id("a"), None);
        assert_eq!(table.next(&id("a"), now, true), Next::Handle(1));
        assert_eq!(table.make_room(&LIMITS), Room::By((id("b"), "b")));
        table.set_active(&id("a"), Some("a"));
        table.offer(&id("b"), 1, &LIMITS);
        table.set_active(&id("b"), None);
        assert_eq!(table.make_room(&LIMITS), Room::None, "all others are busy");
    }

    #[test]
    fn an_entity_that_is_busy_makes_no_room() {
        let mut table = Entities::new();
        for name in ["a", "b", "c"] {
            table.offer(&id(name), 0, &LIMITS);
        }
        assert!(matches!(table.offer(&id("d"), 1, &LIMITS), Offer::Full(1)));
    }

    #[test]
    fn entities_are_passivated_when_they_were_idle_for_long() {
        let (mut table, now) = (Entities::new(), Instant::now());
        let later = now + Duration::from_secs(1);
        activate(&mut table, "a", now);
        activate(&mut table, "b", later);
        assert_eq!(table.idle_since(), Some(now));
        assert_eq!(
            table.take_idle(|since| since <= now, false),
            Some((id("a"), "a"))
        );
        assert_eq!(table.take_idle(|since| since <= now, false), None);
        // A message that comes meanwhile waits until the entity can be activated again.
        assert!(matches!(table.offer(&id("a"), 7, &LIMITS), Offer::Queued));
        table.set_active(&id("a"), None);
        assert_eq!(table.next(&id("a"), later, true), Next::Handle(7));
    }

    #[test]
    fn an_entity_may_count_as_idle_later_than_others() {
        let (mut table, now) = (Entities::new(), Instant::now());
        let later = now + Duration::from_secs(1);
        activate(&mut table, "a", later);
        activate(&mut table, "b", now);
        for (name, since) in [("b", now), ("a", later)] {
            assert_eq!(table.idle_since(), Some(since));
            assert_eq!(table.take_idle(|_| true, false), Some((id(name), name)));
        }
    }

    #[test]
    fn copies_of_a_message_are_taken_out_of_the_queue() {
        let (mut table, now) = (Entities::new(), Instant::now());
        for message in [1, 0] {
            table.offer(&id("a"), message, &LIMITS);
        }
        assert_eq!(table.take_queued(&id("a"), |message| *message == 1), [1]);
        assert!(table.take_queued(&id("b"), |_| true).is_empty());
        assert_eq!(table.next(&id("a"), now, true), Next::Handle(0));
    }

    #[test]
    fn a_host_that_drains_keeps_nothing_idle() {
        let (mut table, now) = (Entities::new(), Instant::now());
        table.offer(&id("a"), 0, &LIMITS);
        table.set_active(&id("a"), Some("a"));
        assert_eq!(table.next(&id("a"), now, false), Next::Handle(0));
        assert_eq!(table.next(&id("a"), now, false), Next::End);
        table.set_active(&id("a"), None);
        assert_eq!(table.next(&id("a"), now, false), Next::Rest);
        assert_eq!(table.len(), 0);
    }

    #[test]
    fn all_activations_end_with_the_lease() {
        let (mut table, now) = (Entities::new(), Instant::now());
        activate(&mut table, "a", now);
        activate(&mut table, "b", now);
        table.offer(&id("b"), 1, &LIMITS);
        table.offer(&id("c"), 1, &LIMITS);
        let mut ended = table.end_all();
        ended.sort_unstable();
        assert_eq!(ended, ["a", "b"]);
        // Those with a runner stay until it has got to their messages.
        assert_eq!((table.len(), table.idle()), (2, 0));
    }
}
