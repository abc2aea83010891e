//! What the server is to be subscribed to, and what it is.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};

use smallvec::SmallVec;
use tokio::sync::Notify;

use crate::Pattern;
use crate::core::Core;
use crate::lock::lock;
use crate::subscription::Receiver;
use crate::table::Members;

use super::channel::{Kind, name};

/// One entry for each topic and each glob that somebody wants, however many subscriptions share
/// it. Never locked while a subscriber's code runs.
pub(super) struct Channels {
    is_sharded: bool,
    state: Mutex<State>,
    /// Something differs between what is wanted and what was asked for.
    pub(super) changed: Notify,
}

#[derive(Default)]
struct State {
    topics: HashMap<Arc<str>, Entry>,
    globs: HashMap<Arc<str>, Entry>,
    /// In the order in which they changed, each at most once: see [`Entry::is_listed`].
    to_look_at: VecDeque<Channel>,
}

#[derive(Clone)]
pub(super) struct Channel {
    pub(super) kind: Kind,
    pub(super) name: Arc<str>,
}

#[derive(Default)]
struct Entry {
    /// How many subscriptions there are.
    wanted: usize,
    /// `/a/*` and `/a/**` are the same glob.
    patterns: SmallVec<[Pattern; 1]>,
    /// A request to subscribe went out on this connection.
    is_asked: bool,
    /// The server has confirmed it on this connection.
    is_live: bool,
    refusal: Option<Arc<str>>,
    is_listed: bool,
}

impl Entry {
    /// To be dropped without the lock: the last reference to a sink may be among them, and its end
    /// is a subscriber's code.
    fn members(&self, core: &Core) -> Vec<Members<Receiver>> {
        let patterns = self.patterns.iter();
        patterns
            .filter_map(|pattern| core.members(pattern))
            .collect()
    }
}

/// What to ask the server for.
pub(super) enum Change {
    Subscribe(Channel),
    Unsubscribe(Channel),
}

impl Channels {
    pub(super) fn new(is_sharded: bool) -> Self {
        Self {
            is_sharded,
            state: Mutex::default(),
            changed: Notify::new(),
        }
    }

    /// One more subscription is about to enter the table.
    pub(super) fn enter(&self, pattern: &Pattern) {
        let channel = self.channel(pattern);
        let mut state = lock(&self.state);
        let entry = state
            .map(channel.kind)
            .entry(Arc::clone(&channel.name))
            .or_default();
        entry.wanted += 1;
        if !entry.patterns.contains(pattern) {
            entry.patterns.push(pattern.clone());
        }
        if !entry.is_asked {
            state.list(channel);
            self.changed.notify_one();
        }
    }

    /// It is in the table. What the server answered before that, it has not been told.
    pub(super) fn settle(&self, receiver: &Receiver) {
        let channel = self.channel(receiver.pattern());
        let mut state = lock(&self.state);
        match state.map(channel.kind).get(&channel.name) {
            Some(entry) if entry.is_live => receiver.establish(),
            Some(Entry {
                refusal: Some(reason),
                ..
            }) => receiver.refuse(reason),
            _ => {}
        }
    }

    /// A subscription has left the table, or did not enter it.
    pub(super) fn leave(&self, pattern: &Pattern) {
        let channel = self.channel(pattern);
        let mut state = lock(&self.state);
        let Some(entry) = state.map(channel.kind).get_mut(&channel.name) else {
            return;
        };
        entry.wanted -= 1;
        if entry.wanted == 0 {
            state.list(channel);
            self.changed.notify_one();
        }
    }

    /// Up to `changes_max` of what to ask for next. It counts as asked for from now on.
    pub(super) fn next_changes(&self, changes_max: usize) -> Vec<Change> {
        let mut state = lock(&self.state);
        let mut changes = Vec::new();
        while changes.len() < changes_max
            && let Some(channel) = state.to_look_at.pop_front()
        {
            changes.extend(state.look_at(channel));
        }
        changes
    }

    /// The server has confirmed a channel: tells all who had been heard before of the gap. A second
    /// confirmation on the same connection, as after a look at the cluster's slots, changes nothing.
    pub(super) fn confirm(&self, kind: Kind, name: &str, core: &Core) {
        let members;
        let owed: Vec<_> = {
            let mut state = lock(&self.state);
            let Some(entry) = state.map(kind).get_mut(name) else {
                return;
            };
            if std::mem::replace(&mut entry.is_live, true) {
                return;
            }
            // Under the lock, so that who is about to settle finds the channel live after this,
            // and not before: then it would be owed a gap here.
            members = entry.members(core);
            let receivers = members.iter().flat_map(|members| members.iter());
            receivers.filter(|receiver| receiver.confirm()).collect()
        };
        core.meters.reconnect_gaps.add(owed.len() as u64);
        for receiver in owed {
            receiver.tell_reconnected();
        }
    }

    pub(super) fn refuse(&self, channel: &Channel, reason: &Arc<str>, core: &Core) {
        let members = {
            let mut state = lock(&self.state);
            let Some(entry) = state.map(channel.kind).get_mut(&channel.name) else {
                return;
            };
            entry.refusal = Some(Arc::clone(reason));
            entry.members(core)
        };
        for receiver in members.iter().flat_map(|members| members.iter()) {
            receiver.refuse(reason);
        }
    }

    /// Whether the server is to be subscribed to it on this connection.
    pub(super) fn is_asked(&self, kind: Kind, name: &str) -> bool {
        let mut state = lock(&self.state);
        let entry = state.map(kind).get(name);
        entry.is_some_and(|entry| entry.is_asked)
    }

    /// The connection is lost: all is to be asked for again on the next.
    pub(super) fn lost(&self) {
        let mut state = lock(&self.state);
        let state = &mut *state;
        state.to_look_at.clear();
        let topic = if self.is_sharded {
            Kind::Shard
        } else {
            Kind::Topic
        };
        for (kind, map) in [(topic, &mut state.topics), (Kind::Glob, &mut state.globs)] {
            for (name, entry) in map {
                entry.is_asked = false;
                entry.is_live = false;
                entry.refusal = None;
                entry.is_listed = true;
                let name = Arc::clone(name);
                state.to_look_at.push_back(Channel { kind, name });
            }
        }
    }

    pub(super) fn patterns(&self, glob: &str) -> SmallVec<[Pattern; 1]> {
        let state = lock(&self.state);
        let entry = state.globs.get(glob);
        entry
            .map(|entry| entry.patterns.clone())
            .unwrap_or_default()
    }

    /// How many the server has confirmed.
    pub(super) fn live(&self) -> usize {
        let state = lock(&self.state);
        let entries = state.topics.values().chain(state.globs.values());
        entries.filter(|entry| entry.is_live).count()
    }

    fn channel(&self, pattern: &Pattern) -> Channel {
        Channel {
            kind: Kind::of(pattern, self.is_sharded),
            name: name(pattern),
        }
    }
}

impl State {
    fn map(&mut self, kind: Kind) -> &mut HashMap<Arc<str>, Entry> {
        match kind {
            Kind::Topic | Kind::Shard => &mut self.topics,
            Kind::Glob => &mut self.globs,
        }
    }

    fn list(&mut self, channel: Channel) {
        let Some(entry) = self.map(channel.kind).get_mut(&channel.name) else {
            return;
        };
        if !std::mem::replace(&mut entry.is_listed, true) {
            self.to_look_at.push_back(channel);
        }
    }

    fn look_at(&mut self, channel: Channel) -> Option<Change> {
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
