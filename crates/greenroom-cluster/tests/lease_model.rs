//! A model of leases, fences and storage, looked through by a checker: every order of every step of
//! two nodes that would have the same entity.
//!
//! The model allows more than the world does. A node may take another for dead at any time, whether
//! it is or not: so clocks, pauses, partitions and what the bucket of nodes says do not matter. Any
//! look at a record may be an old one. A node may end at any step, and a save that it has sent may
//! arrive later, whoever has the entity then. An acknowledgement may be lost. A message may come
//! again at any time, to any node.

use stateright::{Checker, Model, Property};

const NODES: usize = 2;
const MESSAGES: usize = 2;
/// The claims after which the model ends.
const CLAIMS_MAX: u8 = 3;

/// The part of the protocol that is followed: all of it, but for tests that see it fail.
#[derive(Clone, Copy)]
struct Protocol {
    store: Store,
    /// A new activation writes its fence before it does anything else.
    writes_fence: bool,
    /// The ids of messages are saved in the same write as what they changed.
    saves_ids: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Store {
    /// A save replaces the record of the revision that the activation wrote last: `JetStream`.
    Revisions,
    /// A save is refused if the record's fence is larger: a conditional write of SQL.
    Fences,
}

/// The content: how often each message was applied, and the ids that are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Content {
    times: [u8; MESSAGES],
    known: [bool; MESSAGES],
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Record {
    revision: u8,
    fence: u8,
    content: Content,
}

/// A node's progress with the entity. The fence is the revision of the lease that it claimed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum Node {
    #[default]
    Idle,
    Claiming {
        lease: u8,
    },
    Owner {
        fence: u8,
    },
    Loading {
        fence: u8,
        record: Record,
    },
    Active {
        fence: u8,
        record: Record,
    },
    /// It waits for the acknowledgement of this save.
    Saving {
        save: Save,
    },
}

/// A save on its way to the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Save {
    fence: u8,
    revision: u8,
    content: Content,
    message: usize,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct State {
    /// The revision of the lease.
    lease: u8,
    record: Record,
    /// The record before the last write, which a look may still show.
    old_record: Record,
    nodes: [Node; NODES],
    /// The saves that were sent and have not arrived: at most one of each claim.
    sent: Vec<Save>,
    /// The messages of which a node had the acknowledgement that they were saved.
    acknowledged: [bool; MESSAGES],
    /// The fences of the activations that saved something, and were told so.
    savers: Vec<u8>,
    /// The newest fence with which a state was loaded.
    loaded: u8,
    /// An older activation wrote after a newer one had loaded.
    has_late_write: bool,
    /// A save was refused.
    has_refusal: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    ReadLease { node: usize, is_old: bool },
    Claim { node: usize },
    ReadRecord { node: usize, is_old: bool },
    WriteFence { node: usize },
    Send { node: usize, message: usize },
    Arrive { save: usize, is_acknowledged: bool },
    End { node: usize },
}

impl Model for Protocol {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State::default()]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for (node, progress) in state.nodes.iter().enumerate() {
            match progress {
                Node::Idle if state.lease < CLAIMS_MAX => {
                    let read = |is_old| Action::ReadLease { node, is_old };
                    actions.extend([false, true].map(read));
                }
                Node::Idle | Node::Saving { .. } => {}
                Node::Claiming { .. } => actions.push(Action::Claim { node }),
                Node::Owner { .. } => {
                    let read = |is_old| Action::ReadRecord { node, is_old };
                    actions.extend([false, true].map(read));
                }
                Node::Loading { .. } => actions.push(Action::WriteFence { node }),
                Node::Active { record, .. } => {
                    let Content { known, times } = record.content;
                    // Twice is once too often: what follows is of no interest.
                    let may_come = |message: &usize| !known[*message] && times[*message] < 2;
                    let new = (0..MESSAGES).filter(may_come);
                    actions.extend(new.map(|message| Action::Send { node, message }));
                }
            }
            if !matches!(progress, Node::Idle) {
                actions.push(Action::End { node });
            }
        }
        for save in 0..state.sent.len() {
            let arrive = |is_acknowledged| Action::Arrive {
                save,
                is_acknowledged,
            };
            actions.extend([false, true].map(arrive));
        }
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let mut next = state.clone();
        match action {
            Action::ReadLease { node, is_old } => next.read_lease(node, is_old),
            Action::Claim { node } => next.claim(node),
            Action::ReadRecord { node, is_old } => next.read_record(node, is_old),
            Action::WriteFence { node } => next.write_fence(node, *self),
            Action::Send { node, message } => next.send(node, message, *self),
            Action::Arrive {
                save,
                is_acknowledged,
            } => next.arrive(save, is_acknowledged, self.store),
            Action::End { node } => next.nodes[node] = Node::Idle,
        }
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(NO_LATE_WRITE, |_, state: &State| !state.has_late_write),
            Property::always(NOTHING_LOST, |_, state: &State| {
                let mut acknowledged = (0..MESSAGES).filter(|of| state.acknowledged[*of]);
                acknowledged.all(|of| state.record.content.times[of] > 0)
            }),
            Property::always(NOTHING_TWICE, |_, state: &State| {
                state.record.content.times.iter().all(|times| *times < 2)
            }),
            Property::sometimes(TAKEN_OVER, |_, state: &State| state.savers.len() > 1),
            Property::sometimes(REFUSED, |_, state: &State| state.has_refusal),
        ]
    }
}

const NO_LATE_WRITE: &str = "no activation writes after a newer one has loaded";
const NOTHING_LOST: &str = "what was acknowledged stays";
const NOTHING_TWICE: &str = "no message is applied twice";
const TAKEN_OVER: &str = "an entity is taken over, and goes on";
const REFUSED: &str = "a late save is refused";

impl State {
    /// Reads the lease, and believes whatever it likes of the node that has it.
    fn read_lease(&mut self, node: usize, is_old: bool) {
        let lease = self.lease.saturating_sub(u8::from(is_old));
        self.nodes[node] = Node::Claiming { lease };
    }

    /// Replaces the lease, if it is the one that was read.
    fn claim(&mut self, node: usize) {
        let Node::Claiming { lease } = self.nodes[node] else {
            return;
        };
        self.nodes[node] = if lease == self.lease {
            self.lease += 1;
            Node::Owner { fence: self.lease }
        } else {
            Node::Idle
        };
    }

    fn read_record(&mut self, node: usize, is_old: bool) {
        let Node::Owner { fence } = self.nodes[node] else {
            return;
        };
        let record = if is_old { self.old_record } else { self.record };
        self.nodes[node] = if record.fence > fence {
            Node::Idle
        } else {
            Node::Loading { fence, record }
        };
    }

    fn write_fence(&mut self, node: usize, protocol: Protocol) {
        let Node::Loading { fence, mut record } = self.nodes[node] else {
            return;
        };
        if protocol.store == Store::Fences {
            // SQL reads and writes in one step: what was read before does not count.
            record = self.record;
        }
        let may_write = match protocol.store {
            Store::Revisions => record.revision == self.record.revision,
            Store::Fences => self.record.fence <= fence,
        };
        if protocol.writes_fence && !may_write {
            self.nodes[node] = Node::Owner { fence };
            return;
        }
        if protocol.writes_fence {
            record.revision += 1;
            record.fence = fence;
            self.write(record);
        }
        self.loaded = self.loaded.max(fence);
        self.nodes[node] = Node::Active { fence, record };
    }

    /// Applies a message in memory, and sends the save.
    fn send(&mut self, node: usize, message: usize, protocol: Protocol) {
        let Node::Active { fence, record } = self.nodes[node] else {
            return;
        };
        let mut content = record.content;
        content.times[message] += 1;
        content.known[message] = protocol.saves_ids;
        let save = Save {
            fence,
            revision: record.revision,
            content,
            message,
        };
        self.sent.push(save);
        self.nodes[node] = Node::Saving { save };
    }

    fn arrive(&mut self, save: usize, is_acknowledged: bool, store: Store) {
        let save = self.sent.remove(save);
        let is_taken = match store {
            Store::Revisions => save.revision == self.record.revision,
            Store::Fences => self.record.fence <= save.fence,
        };
        if is_taken {
            self.has_late_write |= save.fence < self.loaded;
            self.write(Record {
                revision: self.record.revision + 1,
                fence: save.fence,
                content: save.content,
            });
        }
        self.has_refusal |= !is_taken;
        let waits = |node: &&mut Node| matches!(node, Node::Saving { save: of } if *of == save);
        let Some(node) = self.nodes.iter_mut().find(waits) else {
            return;
        };
        if !is_acknowledged {
            return;
        }
        *node = Node::Idle;
        if is_taken {
            let (fence, record) = (save.fence, self.record);
            *node = Node::Active { fence, record };
            self.acknowledged[save.message] = true;
            if !self.savers.contains(&fence) {
                self.savers.push(fence);
            }
        }
    }

    fn write(&mut self, record: Record) {
        self.old_record = self.record;
        self.record = record;
    }
}

const WHOLE: Protocol = Protocol {
    store: Store::Revisions,
    writes_fence: true,
    saves_ids: true,
};

/// Looks through all states. Returns the promises that are broken.
fn broken(protocol: Protocol) -> Vec<&'static str> {
    let checker = protocol.checker().spawn_bfs().join();
    assert!(checker.is_done());
    let promises = [NO_LATE_WRITE, NOTHING_LOST, NOTHING_TWICE];
    let broken = promises
        .into_iter()
        .filter(|promise| checker.discovery(promise).is_some());
    for seen in [TAKEN_OVER, REFUSED] {
        assert!(checker.discovery(seen).is_some(), "never seen: {seen}");
    }
    broken.collect()
}

#[test]
fn all_promises_are_kept_with_records_that_are_replaced() {
    assert_eq!(broken(WHOLE), [""; 0]);
}

#[test]
fn all_promises_are_kept_with_conditional_writes() {
    let store = Store::Fences;
    assert_eq!(broken(Protocol { store, ..WHOLE }), [""; 0]);
}

#[test]
fn without_the_write_of_the_fence_an_older_activation_writes_on() {
    let writes_fence = false;
    let protocol = Protocol {
        writes_fence,
        ..WHOLE
    };
    assert!(broken(protocol).contains(&NO_LATE_WRITE));
    let store = Store::Fences;
    let broken = broken(Protocol { store, ..protocol });
    assert!(
        broken.contains(&NO_LATE_WRITE) && broken.contains(&NOTHING_LOST),
        "{broken:?}"
    );
}

#[test]
fn without_the_ids_in_the_same_write_a_message_is_applied_twice() {
    let saves_ids = false;
    assert!(broken(Protocol { saves_ids, ..WHOLE }).contains(&NOTHING_TWICE));
}
