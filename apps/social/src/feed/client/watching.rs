use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use greenroom::actor::Context;

use super::super::frame::Notices;
use super::super::log::Log;
use super::super::waker::Waker;
use super::super::watchable;
use super::{Client, Cursor};
use crate::model::Id;

/// The topics of a client.
#[derive(Debug)]
pub(super) struct Watching {
    viewer: Option<Id>,
    topics_max: usize,
    /// The client's waker, created by the first watch.
    waker: Option<Arc<Waker>>,
    pub(super) cursors: Vec<Cursor>,
    /// Topics that the Feeder has not opened yet, with the positions to begin at.
    asked: HashMap<Arc<str>, Option<u64>>,
}

/// The client asked for too many topics that it may not watch, and is disconnected.
#[derive(Debug)]
pub(super) struct TooManyRefused;

impl Watching {
    pub(super) fn new(viewer: Option<Id>, topics_max: usize) -> Self {
        Self {
            viewer,
            topics_max,
            waker: None,
            cursors: Vec::new(),
            asked: HashMap::new(),
        }
    }

    pub(super) fn waker(&mut self, context: &Context<Client>) -> Arc<Waker> {
        let waker = self
            .waker
            .get_or_insert_with(|| Arc::new(Waker::new(context.myself().clone())));
        Arc::clone(waker)
    }

    /// Removes these topics, and returns those that were watched.
    pub(super) fn unwatch(&mut self, topics: Vec<String>, notices: &mut Notices) -> Vec<Arc<str>> {
        let mut left = Vec::new();
        for topic in topics {
            notices.forget(&topic);
            if let Some(index) = self.find(&topic) {
                left.push(Arc::clone(self.cursors.swap_remove(index).topic()));
            } else if let Some((topic, _)) = self.asked.remove_entry(&*topic) {
                left.push(topic);
            }
        }
        left
    }

    /// Adds topics, or resets their positions. Returns those that the Feeder is to open.
    pub(super) fn watch(
        &mut self,
        topics: BTreeMap<String, Option<u64>>,
        notices: &mut Notices,
    ) -> Result<Vec<Arc<str>>, TooManyRefused> {
        let mut new = Vec::new();
        for (topic, position) in topics {
            if let Some(index) = self.find(&topic) {
                notices.forget(&topic);
                self.cursors[index].rewind(position);
            } else if let Some(asked) = self.asked.get_mut(&*topic) {
                *asked = position;
            } else if let Err(reason) = self.check(&topic) {
                if !notices.refuse(topic, reason) {
                    return Err(TooManyRefused);
                }
            } else {
                let topic: Arc<str> = topic.into();
                self.asked.insert(Arc::clone(&topic), position);
                new.push(topic);
            }
        }
        Ok(new)
    }

    /// Adds cursors for the logs that the Feeder has opened.
    pub(super) fn open(&mut self, logs: Vec<Arc<Log>>) {
        for log in logs {
            if let Some(position) = self.asked.remove(log.topic()) {
                self.cursors.push(Cursor::new(log, position));
            }
        }
        if self.asked.is_empty() {
            self.asked.shrink_to_fit();
        }
    }

    /// Returns the cursor of a topic, if it is still at this position.
    pub(super) fn cursor_at(&mut self, topic: &str, position: u64) -> Option<&mut Cursor> {
        let index = self.find(topic)?;
        Some(&mut self.cursors[index]).filter(|cursor| cursor.position() == position)
    }

    pub(super) fn leave(&self) {
        if let Some(waker) = &self.waker {
            waker.leave();
        }
    }

    fn check(&self, topic: &str) -> Result<(), String> {
        watchable::check(topic, self.viewer)?;
        if self.cursors.len() + self.asked.len() >= self.topics_max {
            return Err(format!("a client may watch {} topics", self.topics_max));
        }
        Ok(())
    }

    fn find(&self, topic: &str) -> Option<usize> {
        self.cursors
            .iter()
            .position(|cursor| &**cursor.topic() == topic)
    }
}
