//! Requests to the same place share its connections.

use crate::plan::StreamPlan;
use crate::run::{Endpoint, Turns};

/// The requests of a stream, by the place that they go to.
#[derive(Debug)]
pub(super) struct Groups {
    /// What is sent, by number.
    pub(super) requests: Vec<Box<[u8]>>,
    places: Vec<Group>,
    turns: Turns,
}

#[derive(Debug)]
struct Group {
    endpoint: Endpoint,
    /// Numbers of its requests.
    requests: Vec<usize>,
    turns: Turns,
}

impl Groups {
    pub(super) fn new(plan: &StreamPlan, endpoints: &[Endpoint]) -> Self {
        let requests = endpoints
            .iter()
            .map(|endpoint| plan.request.encode(&endpoint.target, plan.keep_alive))
            .map(Vec::into_boxed_slice)
            .collect();
        let mut members: Vec<(&Endpoint, Vec<usize>)> = Vec::new();
        for (number, endpoint) in endpoints.iter().enumerate() {
            match members
                .iter_mut()
                .find(|(first, _)| shares(first, endpoint))
            {
                Some((_, numbers)) => numbers.push(number),
                None => members.push((endpoint, vec![number])),
            }
        }
        let weight = |number: &usize| endpoints[*number].target.weight;
        let total = |numbers: &[usize]| numbers.iter().map(weight).sum();
        Self {
            requests,
            turns: Turns::new(members.iter().map(|(_, numbers)| total(numbers))),
            places: members
                .iter()
                .map(|(endpoint, numbers)| Group {
                    endpoint: (*endpoint).clone(),
                    turns: Turns::new(numbers.iter().map(weight)),
                    requests: numbers.clone(),
                })
                .collect(),
        }
    }

    pub(super) fn count(&self) -> usize {
        self.places.len()
    }

    /// The group whose turn it is.
    pub(super) fn next_group(&mut self) -> usize {
        self.turns.next()
    }

    /// The number of the request whose turn it is in a group.
    pub(super) fn next_request(&mut self, group: usize) -> usize {
        let group = &mut self.places[group];
        group.requests[group.turns.next()]
    }

    pub(super) fn endpoint(&self, group: usize) -> &Endpoint {
        &self.places[group].endpoint
    }
}

fn shares(one: &Endpoint, other: &Endpoint) -> bool {
    one.address == other.address
        && one.target.scheme == other.target.scheme
        && (one.tls.is_none() || one.target.host() == other.target.host())
}
