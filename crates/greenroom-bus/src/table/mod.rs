//! The table of subscribers, by topic and by pattern.

mod trie;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use smallvec::SmallVec;

use crate::{Pattern, Topic};
use trie::Trie;

/// An entry of a table. It keeps its place in its list for the table, so that leaving a list of
/// many takes no search.
pub(crate) trait Member {
    fn place(&self) -> &Place;
}

/// The index of a member in its list. Read and written under the table's exclusive lock only.
#[derive(Default)]
pub(crate) struct Place(AtomicUsize);

/// The members of one topic or pattern. A publisher takes a clone and delivers without a lock.
/// Joining and leaving change the list in place, unless a publisher holds it: then they copy it.
pub(crate) type Members<M> = Arc<Vec<Arc<M>>>;

/// The lists that one message goes to. Most messages go to one or two, which need no allocation.
pub(crate) type Matches<M> = SmallVec<[Members<M>; 4]>;

pub(crate) struct Table<M> {
    topics: HashMap<Topic, Members<M>>,
    patterns: Trie<Members<M>>,
    size: usize,
}

impl<M: Member> Table<M> {
    pub(crate) fn new() -> Self {
        Self {
            topics: HashMap::new(),
            patterns: Trie::new(),
            size: 0,
        }
    }

    /// Returns the numbers of members, of topics that have members, and of patterns with wildcards
    /// that have.
    pub(crate) fn sizes(&self) -> (usize, usize, usize) {
        (self.size, self.topics.len(), self.patterns.len())
    }

    pub(crate) fn insert(&mut self, pattern: &Pattern, member: Arc<M>) {
        let members = match pattern.topic() {
            Some(topic) => self.topics.entry(topic).or_default(),
            None => self.patterns.get_or_insert_default(pattern),
        };
        let members = Arc::make_mut(members);
        member.place().0.store(members.len(), Ordering::Relaxed);
        members.push(member);
        self.size += 1;
    }

    /// Removes a member. Returns `true` if it was there.
    pub(crate) fn remove(&mut self, pattern: &Pattern, member: &Arc<M>) -> bool {
        let members = if pattern.has_wildcard() {
            self.patterns.get_mut(pattern)
        } else {
            self.topics.get_mut(pattern.as_str())
        };
        let Some(members) = members.map(Arc::make_mut) else {
            return false;
        };
        let place = member.place().0.load(Ordering::Relaxed);
        if !members
            .get(place)
            .is_some_and(|found| Arc::ptr_eq(found, member))
        {
            return false;
        }
        members.swap_remove(place);
        if let Some(moved) = members.get(place) {
            moved.place().0.store(place, Ordering::Relaxed);
        }
        self.size -= 1;
        if members.is_empty() {
            self.forget(pattern);
        }
        true
    }

    /// Returns the subscribers that get a message on `topic`.
    pub(crate) fn matching(&self, topic: &Topic) -> Matches<M> {
        let mut found = Matches::new();
        found.extend(self.topics.get(topic).cloned());
        if self.patterns.len() > 0 {
            self.patterns
                .visit(topic, &mut |members| found.push(Arc::clone(members)));
        }
        found
    }

    /// Returns the subscribers of this pattern itself.
    pub(crate) fn of(&self, pattern: &Pattern) -> Option<Members<M>> {
        if pattern.has_wildcard() {
            self.patterns.get(pattern).cloned()
        } else {
            self.topics.get(pattern.as_str()).cloned()
        }
    }

    /// Returns the subscribers of one topic, and the topic as they named it.
    pub(crate) fn of_topic(&self, topic: &str) -> Option<(Topic, Members<M>)> {
        let (topic, members) = self.topics.get_key_value(topic)?;
        Some((topic.clone(), Arc::clone(members)))
    }

    pub(crate) fn all(&self) -> Vec<Members<M>> {
        let mut all: Vec<_> = self.topics.values().cloned().collect();
        self.patterns
            .visit_all(&mut |members| all.push(Arc::clone(members)));
        all
    }

    fn forget(&mut self, pattern: &Pattern) {
        if pattern.has_wildcard() {
            self.patterns.remove(pattern);
        } else {
            self.topics.remove(pattern.as_str());
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    struct Named(Pattern, Place);

    impl Member for Named {
        fn place(&self) -> &Place {
            &self.1
        }
    }

    fn member(pattern: &Pattern) -> Arc<Named> {
        Arc::new(Named(pattern.clone(), Place::default()))
    }

    fn found(table: &Table<Named>, topic: &Topic) -> Vec<String> {
        let mut names: Vec<_> = table
            .matching(topic)
            .iter()
            .flat_map(|members| members.iter().map(|member| member.0.to_string()))
            .collect();
        names.sort();
        names
    }

    /// Generates topics of few names, so that many patterns match.
    fn a_topic() -> impl Strategy<Value = Topic> {
        proptest::collection::vec("[ab]", 1..5)
            .prop_map(|names| Topic::new(&format!("/{}", names.join("/"))).expect("a topic"))
    }

    fn a_pattern() -> impl Strategy<Value = Pattern> {
        let segments = proptest::collection::vec("[ab*]", 1..5);
        (segments, proptest::bool::ANY).prop_map(|(mut segments, has_rest)| {
            if has_rest {
                segments.push("**".to_owned());
            }
            Pattern::new(&format!("/{}", segments.join("/"))).expect("a pattern")
        })
    }

    proptest! {
        #[test]
        fn the_table_finds_what_matches_one_by_one(
            patterns in proptest::collection::vec(a_pattern(), 0..40),
            leavers in proptest::collection::vec(proptest::bool::ANY, 40),
            topics in proptest::collection::vec(a_topic(), 1..10),
        ) {
            let mut table = Table::new();
            let members: Vec<_> = patterns.iter().map(member).collect();
            for (pattern, member) in patterns.iter().zip(&members) {
                table.insert(pattern, Arc::clone(member));
            }
            let mut stayed = Vec::new();
            for ((pattern, member), leaves) in patterns.iter().zip(&members).zip(leavers) {
                if leaves {
                    table.remove(pattern, member);
                } else {
                    stayed.push(pattern);
                }
            }
            for topic in &topics {
                let mut expected: Vec<_> = stayed
                    .iter()
                    .filter(|pattern| pattern.matches(topic))
                    .map(ToString::to_string)
                    .collect();
                expected.sort();
                prop_assert_eq!(found(&table, topic), expected);
            }
            prop_assert_eq!(table.sizes().0, stayed.len());
            for (pattern, member) in patterns.iter().zip(&members) {
                table.remove(pattern, member);
            }
            prop_assert_eq!(table.sizes(), (0, 0, 0));
            prop_assert!(table.all().is_empty());
        }
    }

    #[test]
    fn a_publisher_keeps_the_list_that_it_took() {
        let pattern = Pattern::new("/a").expect("a pattern");
        let topic = Topic::new("/a").expect("a topic");
        let mut table = Table::new();
        let (first, second) = (member(&pattern), member(&pattern));
        table.insert(&pattern, Arc::clone(&first));
        let taken = table.matching(&topic);
        table.insert(&pattern, second);
        table.remove(&pattern, &first);
        assert_eq!(taken[0].len(), 1);
        assert!(Arc::ptr_eq(&taken[0][0], &first));
        assert_eq!(found(&table, &topic), ["/a"]);
    }
}
