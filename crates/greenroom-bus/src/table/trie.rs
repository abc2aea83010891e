//! A trie of patterns by their segments.

use std::collections::HashMap;

use crate::topic::Segment;
use crate::{Pattern, Topic};

/// A map from patterns to values. Looking up the patterns that match a topic costs one step for
/// each prefix of a pattern that the topic shares, however many patterns there are.
pub(super) struct Trie<V> {
    root: Node<V>,
    len: usize,
}

/// A node, at most [`SEGMENTS_MAX`](crate::SEGMENTS_MAX) deep, which bounds every recursion here.
struct Node<V> {
    literals: HashMap<Box<str>, Self>,
    one: Option<Box<Self>>,
    /// The value of the pattern that ends here with `**`.
    rest: Option<V>,
    /// The value of the pattern that ends here.
    end: Option<V>,
}

impl<V> Default for Node<V> {
    fn default() -> Self {
        Self {
            literals: HashMap::new(),
            one: None,
            rest: None,
            end: None,
        }
    }
}

impl<V> Trie<V> {
    pub(super) fn new() -> Self {
        Self {
            root: Node::default(),
            len: 0,
        }
    }

    /// Returns the number of patterns that have a value.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn get_or_insert_default(&mut self, pattern: &Pattern) -> &mut V
    where
        V: Default,
    {
        let mut node = &mut self.root;
        let mut has_rest = false;
        for segment in pattern.segments() {
            node = match segment {
                Segment::Literal(literal) => node.literals.entry(literal.into()).or_default(),
                Segment::One => node.one.get_or_insert_default(),
                Segment::Rest => {
                    has_rest = true;
                    break;
                }
            };
        }
        let value = if has_rest {
            &mut node.rest
        } else {
            &mut node.end
        };
        self.len += usize::from(value.is_none());
        value.get_or_insert_default()
    }

    pub(super) fn get(&self, pattern: &Pattern) -> Option<&V> {
        let mut node = &self.root;
        for segment in pattern.segments() {
            node = match segment {
                Segment::Literal(literal) => node.literals.get(literal)?,
                Segment::One => node.one.as_deref()?,
                Segment::Rest => return node.rest.as_ref(),
            };
        }
        node.end.as_ref()
    }

    pub(super) fn get_mut(&mut self, pattern: &Pattern) -> Option<&mut V> {
        let mut node = &mut self.root;
        for segment in pattern.segments() {
            node = match segment {
                Segment::Literal(literal) => node.literals.get_mut(literal)?,
                Segment::One => node.one.as_deref_mut()?,
                Segment::Rest => return node.rest.as_mut(),
            };
        }
        node.end.as_mut()
    }

    pub(super) fn remove(&mut self, pattern: &Pattern) {
        let removed = self.root.remove(pattern.segments());
        self.len -= usize::from(removed.is_some());
    }

    /// Calls `found` with the value of each pattern that matches.
    pub(super) fn visit<'a>(&'a self, topic: &'a Topic, found: &mut impl FnMut(&'a V)) {
        self.root.visit(topic.segments(), found);
    }

    pub(super) fn visit_all<'a>(&'a self, found: &mut impl FnMut(&'a V)) {
        self.root.visit_all(found);
    }
}

impl<V> Node<V> {
    fn visit<'a>(
        &'a self,
        mut names: impl Iterator<Item = &'a str> + Clone,
        found: &mut impl FnMut(&'a V),
    ) {
        let Some(name) = names.next() else {
            self.end.iter().for_each(found);
            return;
        };
        self.rest.iter().for_each(&mut *found);
        if let Some(node) = self.literals.get(name) {
            node.visit(names.clone(), found);
        }
        if let Some(node) = &self.one {
            node.visit(names, found);
        }
    }

    fn visit_all<'a>(&'a self, found: &mut impl FnMut(&'a V)) {
        self.rest.iter().for_each(&mut *found);
        self.end.iter().for_each(&mut *found);
        for node in self.literals.values().chain(self.one.as_deref()) {
            node.visit_all(found);
        }
    }

    /// Takes out the value, and every node that is then empty.
    fn remove<'a>(&mut self, mut segments: impl Iterator<Item = Segment<'a>>) -> Option<V> {
        match segments.next() {
            None => self.end.take(),
            Some(Segment::Rest) => self.rest.take(),
            Some(Segment::Literal(literal)) => {
                let node = self.literals.get_mut(literal)?;
                let value = node.remove(segments);
                if node.is_empty() {
                    self.literals.remove(literal);
                }
                value
            }
            Some(Segment::One) => {
                let value = self.one.as_mut()?.remove(segments);
                self.one.take_if(|node| node.is_empty());
                value
            }
        }
    }

    fn is_empty(&self) -> bool {
        self.literals.is_empty() && self.one.is_none() && self.rest.is_none() && self.end.is_none()
    }
}
