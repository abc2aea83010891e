//! The choice of a request's target.

use std::sync::Arc;

use super::{Endpoint, PathTurns, Turns};

/// The targets, grouped by the connections that can serve them.
#[derive(Debug)]
pub(crate) struct Routes {
    origins: Vec<Origin>,
    turns: Turns,
    origin_of: Vec<usize>,
    /// The paths of the only target, if it has several.
    paths: Option<Arc<PathTurns>>,
}

/// Targets that share connections: same address, same authority, same use of TLS.
#[derive(Debug)]
struct Origin {
    endpoints: Vec<usize>,
    turns: Turns,
}

impl Routes {
    /// Groups the endpoints; `skipped` turns are taken in advance, so that threads do not all begin
    /// with the same target.
    pub(crate) fn new(endpoints: &[Endpoint], skipped: u32) -> Self {
        let mut groups: Vec<Vec<usize>> = Vec::new();
        let mut origin_of = Vec::new();
        for (index, endpoint) in endpoints.iter().enumerate() {
            let known = groups
                .iter()
                .position(|group| share_connections(&endpoints[group[0]], endpoint));
            let origin = known.unwrap_or(groups.len());
            if known.is_none() {
                groups.push(Vec::new());
            }
            groups[origin].push(index);
            origin_of.push(origin);
        }
        let weight = |index: &usize| endpoints[*index].target.weight;
        let sums = groups.iter().map(|group| group.iter().map(weight).sum());
        let mut routes = Self {
            turns: Turns::new(sums),
            origins: groups
                .into_iter()
                .map(|group| Origin {
                    turns: Turns::new(group.iter().map(weight)),
                    endpoints: group,
                })
                .collect(),
            origin_of,
            paths: None,
        };
        for _ in 0..skipped {
            routes.next();
        }
        routes
    }

    /// Lets the only target's paths take turns; the numbers of targets are then those of turns.
    pub(crate) fn through(self, paths: Option<Arc<PathTurns>>) -> Self {
        Self { paths, ..self }
    }

    /// Returns the number of groups.
    pub(crate) fn origins(&self) -> usize {
        self.origins.len()
    }

    /// Returns the group of a target, or of a turn among the paths.
    pub(crate) fn origin_of(&self, endpoint: usize) -> usize {
        match self.paths {
            Some(_) => 0,
            None => self.origin_of[endpoint],
        }
    }

    /// Returns the group that is next.
    pub(crate) fn next_origin(&mut self) -> usize {
        self.turns.next()
    }

    /// Returns a target of a group, to connect to.
    pub(crate) fn first_of(&self, origin: usize) -> usize {
        self.origins[origin].endpoints[0]
    }

    /// Returns the target, or turn among the paths, that is next.
    pub(crate) fn next(&mut self) -> usize {
        let origin = self.next_origin();
        self.next_within(origin)
    }

    /// Returns the target, or turn among the paths, that is next in one group.
    pub(crate) fn next_within(&mut self, origin: usize) -> usize {
        if let Some(paths) = &self.paths {
            return paths.next();
        }
        let origin = &mut self.origins[origin];
        origin.endpoints[origin.turns.next()]
    }
}

fn share_connections(one: &Endpoint, other: &Endpoint) -> bool {
    one.address == other.address
        && one.target.authority == other.target.authority
        && one.tls.is_some() == other.tls.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::Address;

    fn endpoint(url: &str, port: u16) -> Endpoint {
        Endpoint {
            target: url.parse().expect("a URL"),
            address: Address::Tcp(([127, 0, 0, 1], port).into()),
            tls: None,
        }
    }

    #[test]
    fn paths_of_one_server_share_connections() {
        let endpoints = [
            endpoint("http://one/a", 1),
            endpoint("http://two/", 2),
            endpoint("weight=2 http://one/b", 1),
        ];
        let mut routes = Routes::new(&endpoints, 0);
        assert_eq!(routes.origins(), 2);
        assert_eq!(routes.origin_of(0), routes.origin_of(2));
        let within: Vec<_> = (0..3).map(|_| routes.next_within(0)).collect();
        assert_eq!(within, [2, 0, 2]);
    }

    #[test]
    fn each_target_gets_its_turns() {
        let endpoints = [
            endpoint("http://one/a", 1),
            endpoint("weight=3 http://two/", 2),
            endpoint("weight=2 http://one/b", 1),
        ];
        let mut routes = Routes::new(&endpoints, 5);
        let mut turns = [0; 3];
        for _ in 0..600 {
            turns[routes.next()] += 1;
        }
        assert_eq!(turns, [100, 300, 200]);
    }
}
