//! The channels that the server is to be subscribed to, and those that it is.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use smallvec::SmallVec;
use tokio::sync::Notify;

use crate::Pattern;
use crate::core::Core;
use crate::subscription::Receiver;
use crate::table::Members;

/// The set of commands that a channel takes.
pub(crate) trait Kind: Copy + Send + Sync + 'static {
    /// Returns `true` if the channel may match more than one topic.
    fn is_pattern(self) -> bool;
}

/// The rule by which topics and patterns become channels of the server.
pub(crate) trait Naming: Send + Sync + 'static {
    /// The kind of channels.
    type Kind: Kind;

    fn channel(&self, pattern: &Pattern) -> Channel<Self::Kind>;
}

/// The channels of a bus: one entry for each topic and each pattern that is wanted, however many
/// subscriptions share it. Never locked while a subscriber's code runs.
pub(crate) struct Channels<N: Naming> {
    naming: N,
    state: Mutex<State<N::Kind>>,
    /// Notified when what is wanted differs from what was requested.
    pub(crate) changed: Notify,
}

struct State<K> {
    topics: HashMap<Arc<str>, Entry<K>>,
    patterns: HashMap<Arc<str>, Entry<K>>,
    /// Channels to look at, in the order in which they changed, each at most once: see
    /// [`Entry::is_listed`].
    to_look_at: VecDeque<Channel<K>>,
}

#[derive(Clone)]
pub(crate) struct Channel<K> {
    pub(crate) kind: K,
    pub(crate) name: Arc<str>,
}

struct Entry<K> {
    kind: K,
    /// The number of subscriptions.
    wanted: usize,
    /// The patterns of this channel: `/a/*` and `/a/**` are the same glob of Redis.
    patterns: SmallVec<[Pattern; 1]>,
    /// `true` if a request to subscribe went out on this connection.
    is_asked: bool,
    /// `true` if the server has confirmed it on this connection.
    is_live: bool,
    rejection: Option<Arc<str>>,
    is_listed: bool,
}

impl<K> Entry<K> {
    fn new(kind: K) -> Self {
        Self {
            kind,
            wanted: 0,
            patterns: SmallVec::new(),
            is_asked: false,
            is_live: false,
            rejection: None,
            is_listed: false,
        }
    }

    /// Returns the receivers of this channel. To be dropped without the lock: the last reference to
    /// a sink may be among them, and its end is a subscriber's code.
    fn members(&self, core: &Core) -> Vec<Members<Receiver>> {
        let patterns = self.patterns.iter();
        patterns
            .filter_map(|pattern| core.members(pattern))
            .collect()
    }
}

/// A request to the server.
pub(crate) enum Change<K> {
    Subscribe(Channel<K>),
    Unsubscribe(Channel<K>),
}

impl<N: Naming> Channels<N> {
    pub(crate) fn new(naming: N) -> Self {
        Self {
            naming,
            state: Mutex::new(State {
                topics: HashMap::new(),
                patterns: HashMap::new(),
                to_look_at: VecDeque::new(),
            }),
            changed: Notify::new(),
        }
    }

    /// Counts a subscription that is about to enter the table.
    pub(crate) fn enter(&self, pattern: &Pattern) {
        let channel = self.naming.channel(pattern);
        let mut state = self.state.lock();
        let entry = state
            .map(channel.kind)
            .entry(Arc::clone(&channel.name))
            .or_insert_with(|| Entry::new(channel.kind));
        entry.wanted += 1;
        if !entry.patterns.contains(pattern) {
            entry.patterns.push(pattern.clone());
        }
        if !entry.is_asked {
            state.list(channel);
            self.changed.notify_one();
        }
    }

    /// Passes on the server's replies so far to a receiver that has just entered the table, and so
    /// has missed them.
    pub(crate) fn settle(&self, receiver: &Receiver) {
        let channel = self.naming.channel(receiver.pattern());
        let mut state = self.state.lock();
        match state.map(channel.kind).get(&channel.name) {
            Some(entry) if entry.is_live => receiver.establish(),
            Some(Entry {
                rejection: Some(reason),
                ..
            }) => receiver.refuse(reason),
            _ => {}
        }
    }

    /// Removes a subscription that has left the table, or did not enter it.
    pub(crate) fn leave(&self, pattern: &Pattern) {
        let channel = self.naming.channel(pattern);
        let mut state = self.state.lock();
        let Some(entry) = state.map(channel.kind).get_mut(&channel.name) else {
            return;
        };
        entry.wanted -= 1;
        if entry.wanted == 0 {
            state.list(channel);
            self.changed.notify_one();
        }
    }

    /// Returns the most requests that are due now.
    pub(crate) fn due(&self) -> usize {
        self.state.lock().to_look_at.len()
    }

    /// Takes up to `changes_max` requests. They count as sent from now on.
    pub(crate) fn next_changes(&self, changes_max: usize) -> Vec<Change<N::Kind>> {
        let mut state = self.state.lock();
        let mut changes = Vec::new();
        while changes.len() < changes_max
            && let Some(channel) = state.to_look_at.pop_front()
        {
            changes.extend(state.look_at(channel));
        }
        changes
    }

    /// Notes that the server has confirmed a channel, and delivers the gap, if there may be one, to
    /// all who had been active before. A second confirmation on the same connection, as after a
    /// look at the cluster's slots, changes nothing.
    pub(crate) fn confirm(&self, kind: N::Kind, name: &str, has_gap: bool, core: &Core) {
        let members;
        let owed: Vec<_> = {
            let mut state = self.state.lock();
            let Some(entry) = state.map(kind).get_mut(name) else {
                return;
            };
            if std::mem::replace(&mut entry.is_live, true) {
                return;
            }
            // Under the lock, so that a receiver about to settle finds the channel live after this,
            // and not before: then it would be owed a gap here.
            members = entry.members(core);
            let receivers = members.iter().flat_map(|members| members.iter());
            let was_active = receivers.filter(|receiver| receiver.confirm());
            was_active.filter(|_| has_gap).collect()
        };
        for receiver in owed {
            core.notify_of_gap(receiver);
        }
    }

    pub(crate) fn refuse(&self, channel: &Channel<N::Kind>, reason: &Arc<str>, core: &Core) {
        let members = {
            let mut state = self.state.lock();
            let Some(entry) = state.map(channel.kind).get_mut(&channel.name) else {
                return;
            };
            entry.rejection = Some(Arc::clone(reason));
            entry.members(core)
        };
        for receiver in members.iter().flat_map(|members| members.iter()) {
            receiver.refuse(reason);
        }
    }

    /// Returns `true` if a request to subscribe went out on this connection and is still wanted.
    pub(crate) fn is_asked(&self, kind: N::Kind, name: &str) -> bool {
        let mut state = self.state.lock();
        let entry = state.map(kind).get(name);
        entry.is_some_and(|entry| entry.is_asked)
    }

    /// Forgets the lost connection's state: all is to be requested again on the next.
    pub(crate) fn lost(&self) {
        let mut state = self.state.lock();
        let state = &mut *state;
        state.to_look_at.clear();
        for map in [&mut state.topics, &mut state.patterns] {
            for (name, entry) in map {
                entry.is_asked = false;
                entry.is_live = false;
                entry.rejection = None;
                entry.is_listed = true;
                state.to_look_at.push_back(Channel {
                    kind: entry.kind,
                    name: Arc::clone(name),
                });
            }
        }
    }

    pub(crate) fn patterns(&self, kind: N::Kind, name: &str) -> SmallVec<[Pattern; 1]> {
        let mut state = self.state.lock();
        let entry = state.map(kind).get(name);
        entry
            .map(|entry| entry.patterns.clone())
            .unwrap_or_default()
    }

    /// Returns the number of channels that the server has confirmed.
    pub(crate) fn live(&self) -> usize {
        let state = self.state.lock();
        let entries = state.topics.values().chain(state.patterns.values());
        entries.filter(|entry| entry.is_live).count()
    }
}

impl<K: Kind> State<K> {
    fn map(&mut self, kind: K) -> &mut HashMap<Arc<str>, Entry<K>> {
        if kind.is_pattern() {
            &mut self.patterns
        } else {
            &mut self.topics
        }
    }

    fn list(&mut self, channel: Channel<K>) {
        let Some(entry) = self.map(channel.kind).get_mut(&channel.name) else {
            return;
        };
        if !std::mem::replace(&mut entry.is_listed, true) {
            self.to_look_at.push_back(channel);
        }
    }

    fn look_at(&mut self, channel: Channel<K>) -> Option<Change<K>> {
        let map = self.map(channel.kind);
        let entry = map.get_mut(&channel.name)?;
        entry.is_listed = false;
        match (entry.wanted, entry.is_asked) {
            (0, is_asked) => {
                map.remove(&channel.name);
                is_asked.then_some(Change::Unsubscribe(channel))
            }
            (_, false) => {
                entry.is_asked = true;
                Some(Change::Subscribe(channel))
            }
            (_, true) => None,
        }
    }
}
