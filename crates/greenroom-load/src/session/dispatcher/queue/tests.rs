use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Wake;
use std::time::Duration;

use super::*;
use crate::plan::Schedule;
use crate::run::{Address, Endpoint};

const MS: u64 = 1_000_000;

#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn endpoint(port: u16) -> Endpoint {
    Endpoint {
        target: "http://host/".parse().expect("a URL"),
        address: Address::Tcp(([127, 0, 0, 1], port).into()),
        tls: None,
    }
}

/// Returns a request each ms for 10 ms, to as many servers.
fn queue(connections: usize, servers: u16) -> Queue {
    let schedule = Schedule::constant(1000.0, Duration::from_millis(10)).expect("a schedule");
    let endpoints: Vec<_> = (1..=servers).map(endpoint).collect();
    let routes = Routes::new(&endpoints, 0);
    let pacer = Pacer::new(schedule.arrivals(0, 1), 10 * MS);
    Queue::new(pacer, connections, routes)
}

fn poll(queue: &mut Queue, slot: usize, now: u64, free: usize) -> Poll<Option<u64>> {
    let ticket = queue.poll_ticket(slot, now, free, Waker::noop());
    ticket.map(|ticket| ticket.map(|ticket| ticket.due.intended))
}

/// Adds the first connection, which served the first request.
fn connected(queue: &mut Queue) -> usize {
    let ticket = queue.dispatch(0).expect("the first is due at once");
    queue.enter(ticket.due.target)
}

#[test]
fn what_is_due_goes_to_a_free_stream_before_a_new_connection() {
    let mut queue = queue(2, 1);
    let slot = connected(&mut queue);
    assert_eq!(poll(&mut queue, slot, 0, 2), Poll::Pending);
    assert_eq!(queue.dispatch(2 * MS), None);
    assert_eq!(poll(&mut queue, slot, 2 * MS, 2), Poll::Ready(Some(MS)));
    assert_eq!(poll(&mut queue, slot, 2 * MS, 1), Poll::Ready(Some(2 * MS)));
    let next = queue.dispatch(3 * MS).expect("both streams are taken");
    assert_eq!((next.due.intended, next.free_since), (3 * MS, 0));
    assert_eq!(queue.dispatch(4 * MS), None, "all connections are open");
}

#[test]
fn what_waits_goes_out_in_order_when_a_stream_is_free() {
    let mut queue = queue(1, 1);
    let slot = connected(&mut queue);
    assert_eq!(queue.dispatch(5 * MS), None);
    let ticket = queue.poll_ticket(slot, 5 * MS, 1, Waker::noop());
    let due = Due {
        intended: MS,
        target: 0,
    };
    let expected = Ticket::new(due, 5 * MS);
    assert_eq!(ticket, Poll::Ready(Some(expected)));
    assert_eq!(poll(&mut queue, slot, 6 * MS, 1), Poll::Ready(Some(2 * MS)));
}

#[test]
fn a_connection_that_ends_gives_back_what_it_did_not_send() {
    let mut queue = queue(1, 1);
    let slot = connected(&mut queue);
    assert_eq!(poll(&mut queue, slot, 0, 1), Poll::Pending);
    assert_eq!(queue.dispatch(MS), None);
    queue.leave(slot);
    queue.vacate(0, 2 * MS);
    let again = queue.dispatch(2 * MS).expect("it waits for a connection");
    assert_eq!((again.due.intended, again.free_since), (MS, 2 * MS));
}

#[test]
fn a_server_without_connection_gets_that_of_another() {
    let mut queue = queue(1, 2);
    let counter = Arc::new(Wakes::default());
    let slot = connected(&mut queue);
    let waker = Waker::from(Arc::clone(&counter));
    assert!(queue.poll_ticket(slot, 0, 1, &waker).is_pending());
    assert_eq!(queue.dispatch(MS), None);
    assert_eq!(counter.0.load(Ordering::SeqCst), 1);
    assert_eq!(poll(&mut queue, slot, MS, 1), Poll::Ready(None));
    queue.leave(slot);
    queue.vacate(0, MS);
    let ticket = queue.dispatch(MS).expect("there is a slot");
    assert_eq!((ticket.due.target, ticket.due.intended), (1, MS));
}

#[test]
fn at_the_end_what_waits_is_reported_and_connections_end() {
    let mut queue = queue(1, 1);
    let slot = connected(&mut queue);
    assert_eq!(queue.pacer.count_due(10 * MS), 10);
    let mut never_sent = Vec::new();
    queue.abandon(|time| never_sent.push(time));
    assert_eq!(
        never_sent,
        (1..10).map(|ms| (ms * MS, 10 * MS)).collect::<Vec<_>>()
    );
    assert!(queue.pacer.is_over());
    assert_eq!(poll(&mut queue, slot, 10 * MS, 1), Poll::Ready(None));
}
