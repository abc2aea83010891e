use std::cmp::{Ordering, Reverse};
use std::collections::binary_heap::PeekMut;
use std::collections::{BinaryHeap, VecDeque};
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;

use super::usage::{Flow, Usage};

/// Flows, or runs that were begun, that are looked at for a newcomer's sake, under the lock that
/// all others wait for; the rest is taken to be alike.
pub(crate) const LOOKED_AT_MAX: usize = 1_024;

/// Returns how long all of so many take, of which the first [`LOOKED_AT_MAX`] take `some`.
pub(crate) fn of_all(some: Duration, all: usize) -> Duration {
    let looked_at = all.clamp(1, LOOKED_AT_MAX) as u128;
    let nanos = some.as_nanos().saturating_mul(all.max(1) as u128) / looked_at;
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// Emptied routes and flows kept for reuse, so that a queue that is mostly empty allocates nothing
/// for each request.
const SPARE_MAX: usize = 64;

/// A queue of work that yields the work of the flow that has used least, and each flow's work in
/// the order of its arrival.
///
/// Adding costs the logarithm of the clients that wait on the same route; taking costs that and a
/// look at each route that has waiting work. The queue has no limit of its own: its owner bounds
/// it.
///
/// ```
/// use std::time::{Duration, Instant};
/// use greenroom_stage::fair::{FairQueue, Flow, Usage};
///
/// let (now, ms) = (Instant::now(), Duration::from_millis);
/// let (mut usage, mut queue) = (Usage::new(now), FairQueue::default());
/// let flood = Flow { route: 1, client: 11 };
/// let polite = Flow { route: 1, client: 22 };
/// for n in 0..100 {
///     queue.push(flood, ms(30), n, &usage);
/// }
/// assert_eq!(queue.pop(&usage).unwrap().work, 0);
/// usage.charge(flood, ms(30), now);
/// queue.push(polite, ms(30), 1_000, &usage);
/// // Its own, and one of the flood's, which will have used as much by then.
/// assert_eq!(queue.ahead(polite, &usage, Duration::MAX, now), ms(60));
/// assert_eq!(queue.pop(&usage).unwrap().work, 1_000); // its client has used less
/// assert_eq!(queue.pop(&usage).unwrap().work, 1);
/// ```
#[derive(Debug)]
pub struct FairQueue<T> {
    routes: Vec<RouteQueue<T>>,
    len: usize,
    backlog: Duration,
    /// The number of the next arrival, which decides between flows that are otherwise equal.
    arrival: u64,
    scale: u32,
    spare_routes: Vec<RouteQueue<T>>,
    spare_flows: Vec<FlowQueue<T>>,
}

/// Work whose turn has come.
#[derive(Debug)]
pub struct Turn<T> {
    /// The flow it belongs to.
    pub flow: Flow,
    /// The time it was expected to use.
    pub expected: Duration,
    /// The work.
    pub work: T,
}

/// The clients that wait on one route.
#[derive(Debug)]
struct RouteQueue<T> {
    route: u64,
    /// Each client of `flows` once, by its usage when last looked at: it may have used more since.
    clients: BinaryHeap<Reverse<Waiting>>,
    flows: FxHashMap<u64, FlowQueue<T>>,
    len: usize,
    backlog: Duration,
}

#[derive(Debug)]
struct FlowQueue<T> {
    work: VecDeque<(T, Duration)>,
    backlog: Duration,
}

/// The waiting work of one flow, outside of its queue for a moment.
#[derive(Debug)]
pub(crate) struct SetAside<T> {
    route: u64,
    waiting: Waiting,
    flow: FlowQueue<T>,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    used: f64,
    arrival: u64,
    client: u64,
}

impl<T> FairQueue<T> {
    /// Returns the number of waiting items.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// True if nothing waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the time that all waiting work is expected to use.
    #[must_use]
    pub fn backlog(&self) -> Duration {
        self.backlog
    }

    /// Adds work behind the waiting work of its flow.
    pub fn push(&mut self, flow: Flow, expected: Duration, work: T, usage: &Usage) {
        let queue = self.enter(flow, expected, usage);
        queue.work.push_back((work, expected));
    }

    /// Takes the first work of the flow that has used least.
    pub fn pop(&mut self, usage: &Usage) -> Option<Turn<T>> {
        self.follow_scale(usage);
        let index = self.next_route(usage)?;
        let queue = &mut self.routes[index];
        let mut top = queue.clients.peek_mut()?;
        let client = top.0.client;
        let flow = queue.flows.get_mut(&client)?;
        let (work, expected) = flow.work.pop_front()?;
        flow.backlog = flow.backlog.saturating_sub(expected);
        if flow.work.is_empty() {
            PeekMut::pop(top);
            self.spare_flows.extend(queue.flows.remove(&client));
            self.spare_flows.truncate(SPARE_MAX);
        } else {
            // Behind others that have used as much, so that equals take turns.
            top.0.arrival = self.arrival;
            self.arrival += 1;
            drop(top);
        }
        queue.len -= 1;
        queue.backlog = queue.backlog.saturating_sub(expected);
        let route = queue.route;
        self.len -= 1;
        self.backlog = self.backlog.saturating_sub(expected);
        self.leave_if_empty(index);
        Some(Turn {
            flow: Flow { route, client },
            expected,
            work,
        })
    }

    /// Returns the flow whose turn it is, and the work that [`pop`](Self::pop) would take.
    pub fn peek(&mut self, usage: &Usage) -> Option<(Flow, &T)> {
        let (flow, (work, _)) = self.front(usage)?;
        Some((flow, work))
    }

    /// Returns the flow whose turn it is, and the time that the work is expected to use that
    /// [`pop`](Self::pop) would take.
    pub(crate) fn head(&mut self, usage: &Usage) -> Option<(Flow, Duration)> {
        let (flow, (_, expected)) = self.front(usage)?;
        Some((flow, *expected))
    }

    fn front(&mut self, usage: &Usage) -> Option<(Flow, &(T, Duration))> {
        self.follow_scale(usage);
        let index = self.next_route(usage)?;
        let queue = &self.routes[index];
        let client = queue.clients.peek()?.0.client;
        let front = queue.flows.get(&client)?.work.front()?;
        let route = queue.route;
        Some((Flow { route, client }, front))
    }

    /// Moves a client forward after a refund of time that it had been charged in advance. A client
    /// that has used more needs no such call: that is seen when its turn comes.
    ///
    /// Costs a look at each route, and at all clients that wait on the routes of this client.
    pub fn refunded(&mut self, client: u64, usage: &Usage) {
        self.follow_scale(usage);
        let used = usage.client(client);
        let routes = self.routes.iter_mut();
        for queue in routes.filter(|queue| queue.flows.contains_key(&client)) {
            let mut clients = std::mem::take(&mut queue.clients).into_vec();
            let place = clients.iter_mut().find(|other| other.0.client == client);
            if let Some(Reverse(place)) = place {
                place.used = place.used.min(used);
            }
            queue.clients = clients.into();
        }
    }

    /// Returns the time that others and the flow itself are expected to use before new work of the
    /// flow has its turn, if no other work arrives; the sum stops at `enough`.
    ///
    /// Others go before it until they have used as much as it will have used when its turn comes.
    /// Of another route all waiting work is counted up to what its least client may use, so the
    /// result may be too much for a flow that uses much itself. Of thousands of clients that wait
    /// on its own route some are looked at, and stand for all.
    #[must_use]
    pub fn ahead(&self, flow: Flow, usage: &Usage, enough: Duration, now: Instant) -> Duration {
        let weight = usage.weight(now);
        let (route, client) = (usage.route(flow.route), usage.client(flow.client));
        let own = self.flow(flow).map_or(Duration::ZERO, |own| own.backlog);
        let mut ahead = own;
        for queue in &self.routes {
            if ahead >= enough {
                break;
            }
            if queue.route == flow.route {
                let reach = client + own.as_secs_f64() * weight;
                let enough = enough.saturating_sub(ahead);
                ahead += queue.before(flow.client, reach, weight, usage, enough);
            } else if let Some(least) = queue.clients.peek() {
                let reach = route + client + 2.0 * own.as_secs_f64() * weight;
                let gap = reach - usage.route(queue.route) - least.0.used;
                ahead += may_use(gap, weight, queue.backlog, queue.mean());
            }
        }
        ahead
    }

    /// Returns the oldest waiting work of this flow.
    #[must_use]
    pub fn oldest(&self, flow: Flow) -> Option<&T> {
        Some(&self.flow(flow)?.work.front()?.0)
    }

    /// Returns the number of this flow's waiting items.
    #[must_use]
    pub fn len_of(&self, flow: Flow) -> usize {
        self.flow(flow).map_or(0, |queue| queue.work.len())
    }

    /// Takes out all work for which `is_out` holds, in no particular order.
    pub fn take_out(&mut self, mut is_out: impl FnMut(&T) -> bool) -> Vec<T> {
        let mut out = Vec::new();
        for index in (0..self.routes.len()).rev() {
            let before = self.routes[index].backlog;
            let taken = out.len();
            self.routes[index].take_out(&mut is_out, &mut out);
            self.len -= out.len() - taken;
            let less = before.saturating_sub(self.routes[index].backlog);
            self.backlog = self.backlog.saturating_sub(less);
            self.leave_if_empty(index);
        }
        out
    }

    /// Returns the number of waiting items that are not of these clients.
    pub(crate) fn len_without(&self, clients: &[u64]) -> usize {
        let of_clients = |queue: &RouteQueue<T>| -> usize {
            let flows = clients.iter().filter_map(|client| queue.flows.get(client));
            flows.map(|flow| flow.work.len()).sum()
        };
        self.len - self.routes.iter().map(of_clients).sum::<usize>()
    }

    /// Takes all work of these clients out, to be [put back](Self::put_back).
    ///
    /// Costs a look at each route, and at all clients that wait on the routes of these clients.
    pub(crate) fn set_aside(&mut self, clients: &[u64]) -> Vec<SetAside<T>> {
        let mut aside = Vec::new();
        for index in (0..self.routes.len()).rev() {
            let queue = &mut self.routes[index];
            for client in clients {
                let Some((waiting, flow)) = queue.remove(*client) else {
                    continue;
                };
                self.len -= flow.work.len();
                self.backlog = self.backlog.saturating_sub(flow.backlog);
                aside.push(SetAside {
                    route: queue.route,
                    waiting,
                    flow,
                });
            }
            self.leave_if_empty(index);
        }
        aside
    }

    /// Puts work back that was set aside, in its former place among others.
    pub(crate) fn put_back(&mut self, aside: Vec<SetAside<T>>, usage: &Usage) {
        self.follow_scale(usage);
        for SetAside {
            route,
            waiting,
            flow,
        } in aside
        {
            self.len += flow.work.len();
            self.backlog += flow.backlog;
            let index = self.enter_route(route);
            let used = usage.client(waiting.client);
            self.routes[index].insert(Waiting { used, ..waiting }, flow);
        }
    }

    fn flow(&self, flow: Flow) -> Option<&FlowQueue<T>> {
        let queue = self.routes.iter().find(|queue| queue.route == flow.route)?;
        queue.flows.get(&flow.client)
    }

    /// Returns the queue of this flow, counted with one more item that is expected to use
    /// `expected`. A new flow takes its place among the others.
    fn enter(&mut self, flow: Flow, expected: Duration, usage: &Usage) -> &mut FlowQueue<T> {
        self.follow_scale(usage);
        self.len += 1;
        self.backlog += expected;
        let index = self.enter_route(flow.route);
        let queue = &mut self.routes[index];
        queue.len += 1;
        queue.backlog += expected;
        let (clients, spare) = (&mut queue.clients, &mut self.spare_flows);
        let arrival = &mut self.arrival;
        let queue = queue.flows.entry(flow.client).or_insert_with(|| {
            clients.push(Reverse(Waiting {
                used: usage.client(flow.client),
                arrival: *arrival,
                client: flow.client,
            }));
            *arrival += 1;
            spare.pop().unwrap_or_default()
        });
        queue.backlog += expected;
        queue
    }

    fn enter_route(&mut self, route: u64) -> usize {
        let found = self.routes.iter().position(|queue| queue.route == route);
        found.unwrap_or_else(|| {
            let mut queue = self.spare_routes.pop().unwrap_or_default();
            queue.route = route;
            self.routes.push(queue);
            self.routes.len() - 1
        })
    }

    /// Finds the route whose turn it is, with the client whose turn it is at its top.
    fn next_route(&mut self, usage: &Usage) -> Option<usize> {
        let routes = self.routes.iter_mut().enumerate();
        let least = routes.filter_map(|(index, queue)| {
            let client = queue.least(usage)?;
            let used = usage.route(queue.route) + client.used;
            Some((Waiting { used, ..client }, index))
        });
        least
            .min_by_key(|(waiting, _)| *waiting)
            .map(|(_, index)| index)
    }

    fn leave_if_empty(&mut self, index: usize) {
        if self.routes[index].flows.is_empty() {
            let emptied = self.routes.swap_remove(index);
            if self.spare_routes.len() < SPARE_MAX {
                self.spare_routes.push(emptied);
            }
        }
    }

    /// Looks at all usages again after a change of their scale.
    fn follow_scale(&mut self, usage: &Usage) {
        if self.scale == usage.scale() {
            return;
        }
        self.scale = usage.scale();
        for queue in &mut self.routes {
            let clients = queue.clients.drain().map(|Reverse(waiting)| {
                let used = usage.client(waiting.client);
                Reverse(Waiting { used, ..waiting })
            });
            queue.clients = clients.collect::<Vec<_>>().into();
        }
    }
}

impl<T> RouteQueue<T> {
    /// Returns the client that has used least. Usages are read anew only for the clients at the top
    /// of the heap.
    fn least(&mut self, usage: &Usage) -> Option<Waiting> {
        loop {
            let mut top = self.clients.peek_mut()?;
            let used = usage.client(top.0.client);
            if used <= top.0.used {
                return Some(top.0);
            }
            top.0.used = used;
        }
    }

    fn remove(&mut self, client: u64) -> Option<(Waiting, FlowQueue<T>)> {
        let flow = self.flows.remove(&client)?;
        self.len -= flow.work.len();
        self.backlog = self.backlog.saturating_sub(flow.backlog);
        let mut removed = None;
        self.clients.retain(|Reverse(waiting)| {
            let stays = waiting.client != client;
            removed = removed.or((!stays).then_some(*waiting));
            stays
        });
        Some((removed?, flow))
    }

    fn insert(&mut self, waiting: Waiting, flow: FlowQueue<T>) {
        self.len += flow.work.len();
        self.backlog += flow.backlog;
        self.clients.push(Reverse(waiting));
        self.flows.insert(waiting.client, flow);
    }

    /// Returns the time that others use before a client that will have used `reach` when its turn
    /// comes.
    fn before(
        &self,
        client: u64,
        reach: f64,
        weight: f64,
        usage: &Usage,
        enough: Duration,
    ) -> Duration {
        let mean = self.mean();
        let mut before = Duration::ZERO;
        if self.clients.peek().is_none_or(|least| least.0.used > reach) {
            return before;
        }
        for (other, queue) in self.flows.iter().take(LOOKED_AT_MAX) {
            if before >= enough {
                return before;
            }
            if *other != client {
                let gap = reach - usage.client(*other);
                before += may_use(gap, weight, queue.backlog, mean);
            }
        }
        of_all(before, self.flows.len())
    }

    /// Returns the mean of the time that a waiting item is expected to use.
    fn mean(&self) -> Duration {
        self.backlog / u32::try_from(self.len.max(1)).unwrap_or(u32::MAX)
    }

    fn take_out(&mut self, is_out: &mut impl FnMut(&T) -> bool, out: &mut Vec<T>) {
        let (route_len, route_backlog) = (&mut self.len, &mut self.backlog);
        self.flows.retain(|_, flow| {
            if !flow.work.iter().any(|(work, _)| is_out(work)) {
                return true;
            }
            for (work, expected) in std::mem::take(&mut flow.work) {
                if is_out(&work) {
                    flow.backlog = flow.backlog.saturating_sub(expected);
                    *route_len -= 1;
                    *route_backlog = route_backlog.saturating_sub(expected);
                    out.push(work);
                } else {
                    flow.work.push_back((work, expected));
                }
            }
            !flow.work.is_empty()
        });
        let flows = &self.flows;
        self.clients
            .retain(|Reverse(waiting)| flows.contains_key(&waiting.client));
    }
}

/// Returns how much of its backlog a flow that is behind by `gap` uses until it has caught up: the
/// last run that it begins is run to its end.
fn may_use(gap: f64, weight: f64, backlog: Duration, run: Duration) -> Duration {
    if gap < 0.0 {
        return Duration::ZERO;
    }
    let gap = Duration::try_from_secs_f64(gap / weight).unwrap_or(Duration::MAX);
    gap.saturating_add(run).min(backlog)
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Waiting {}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> Ordering {
        let used = self.used.total_cmp(&other.used);
        used.then(self.arrival.cmp(&other.arrival))
    }
}

impl<T> Default for FairQueue<T> {
    fn default() -> Self {
        Self {
            routes: Vec::new(),
            len: 0,
            backlog: Duration::ZERO,
            arrival: 0,
            scale: 0,
            spare_routes: Vec::new(),
            spare_flows: Vec::new(),
        }
    }
}

impl<T> Default for RouteQueue<T> {
    fn default() -> Self {
        Self {
            route: 0,
            clients: BinaryHeap::new(),
            flows: FxHashMap::default(),
            len: 0,
            backlog: Duration::ZERO,
        }
    }
}

impl<T> Default for FlowQueue<T> {
    fn default() -> Self {
        Self {
            work: VecDeque::new(),
            backlog: Duration::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);
    const FLOOD: Flow = Flow {
        route: 1,
        client: 11,
    };
    const POLITE: Flow = Flow {
        route: 1,
        client: 22,
    };

    #[test]
    fn who_has_used_as_much_as_a_flood_waits_for_one_run_of_it_and_not_for_all() {
        let now = Instant::now();
        let (usage, mut queue) = (Usage::new(now), FairQueue::default());
        (0..100).for_each(|n| queue.push(FLOOD, 30 * MS, n, &usage));
        let ahead = |flow| queue.ahead(flow, &usage, Duration::MAX, now);
        assert_eq!(ahead(POLITE), 30 * MS);
        let elsewhere = Flow { route: 2, ..POLITE };
        assert_eq!(ahead(elsewhere), 30 * MS);
        assert_eq!(ahead(FLOOD), 3_000 * MS);
    }

    #[test]
    fn of_thousands_of_clients_that_wait_some_stand_for_all() {
        let now = Instant::now();
        let (usage, mut queue) = (Usage::new(now), FairQueue::default());
        for client in 100..3_100 {
            queue.push(Flow { route: 1, client }, MS, client, &usage);
        }
        let ahead = queue.ahead(POLITE, &usage, Duration::MAX, now);
        assert_eq!(ahead, 3_000 * MS);
    }

    #[test]
    fn who_is_given_back_what_it_did_not_use_has_its_turn_earlier() {
        let now = Instant::now();
        let (mut usage, mut queue) = (Usage::new(now), FairQueue::default());
        usage.charge(FLOOD, 10 * MS, now);
        usage.charge(POLITE, 1_000 * MS, now);
        queue.push(FLOOD, MS, 1, &usage);
        queue.push(POLITE, MS, 2, &usage);
        assert_eq!(queue.peek(&usage), Some((FLOOD, &1)));
        usage.refund(POLITE, 999 * MS, now);
        queue.refunded(POLITE.client, &usage);
        assert_eq!(queue.peek(&usage), Some((POLITE, &2)));
        let turn = queue.pop(&usage).map(|turn| (turn.flow, turn.work));
        assert_eq!(turn, Some((POLITE, 2)));
    }

    #[test]
    fn what_is_set_aside_waits_nowhere_and_then_where_it_did() {
        let now = Instant::now();
        let (usage, mut queue) = (Usage::new(now), FairQueue::default());
        for n in 0..3 {
            queue.push(FLOOD, MS, n, &usage);
            queue.push(POLITE, MS, 10 + n, &usage);
            queue.push(Flow { route: 2, ..FLOOD }, MS, 20 + n, &usage);
        }
        assert_eq!(queue.len_without(&[FLOOD.client]), 3);
        let aside = queue.set_aside(&[FLOOD.client]);
        assert_eq!((queue.len(), queue.backlog()), (3, 3 * MS));
        assert_eq!(queue.pop(&usage).map(|turn| turn.work), Some(10));
        queue.put_back(aside, &usage);
        assert_eq!((queue.len(), queue.backlog()), (8, 8 * MS));
        let order: Vec<_> = std::iter::from_fn(|| queue.pop(&usage))
            .map(|turn| turn.work)
            .collect();
        assert_eq!(order, [0, 20, 11, 1, 21, 12, 2, 22]);
    }

    #[test]
    fn what_is_taken_out_is_expected_no_more() {
        let now = Instant::now();
        let (usage, mut queue) = (Usage::new(now), FairQueue::default());
        (0..100).for_each(|n| queue.push(FLOOD, 30 * MS, n, &usage));
        assert_eq!(queue.take_out(|n| n % 2 == 0).len(), 50);
        assert_eq!((queue.len(), queue.backlog()), (50, 1_500 * MS));
        let ahead = queue.ahead(POLITE, &usage, Duration::MAX, now);
        assert_eq!(ahead, 30 * MS);
    }
}
