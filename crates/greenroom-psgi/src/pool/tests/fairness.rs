//! The order of requests, and the choice of those that are admitted.

use greenroom_stage::Reason;

use super::simulation::{Asked, Simulation};
use super::*;

const MS: Duration = Duration::from_millis(1);

fn one_second(builder: Builder) -> Builder {
    builder.queue_wait_max(Duration::from_secs(1))
}

fn asked(name: &str, path: &'static str, takes: Duration) -> Asked {
    let client = Client::named(name);
    Asked {
        client,
        path,
        takes,
    }
}

/// Keeps `requests` requests of a flood in the queue, as far as they are admitted.
fn flood(simulation: &mut Simulation, asked: Asked, requests: usize) {
    for _ in simulation.count_waiting(asked.client)..requests {
        simulation.ask(asked);
    }
}

/// Returns the number of requests that begin between a request's coming and its beginning.
async fn begun_before(simulation: &mut Simulation, asked: Asked, flooding: Asked) -> usize {
    let before = simulation.begun.len();
    simulation.ask(asked);
    loop {
        let begun = simulation.begun[before..].iter();
        if let Some(place) = begun.clone().position(|begun| *begun == asked) {
            return place;
        }
        assert!(!simulation.is_refused(asked.client), "{asked:?}");
        assert!(simulation.step().await);
        flood(simulation, flooding, 200);
    }
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_one_client_does_not_starve_another_of_the_same_path() {
    let mut simulation = Simulation::new(1, one_second);
    let flooding = asked("flood", "/page", 50 * MS);
    for _ in 0..100 {
        flood(&mut simulation, flooding, 200);
        simulation.step().await;
    }
    let polite = asked("polite", "/page", 50 * MS);
    for _ in 0..20 {
        assert_eq!(
            begun_before(&mut simulation, polite, flooding).await,
            0,
            "only the run under way is waited for"
        );
        // It asks for less than half of the worker: one of four.
        for _ in 0..3 {
            simulation.step().await;
            flood(&mut simulation, flooding, 200);
        }
    }
    assert!(simulation.is_refused(flooding.client));
    assert!(!simulation.is_refused(polite.client));
}

#[tokio::test(start_paused = true)]
async fn who_asks_for_as_much_as_a_flood_gets_half_of_the_worker() {
    let mut simulation = Simulation::new(1, one_second);
    let one = asked("one", "/page", 10 * MS);
    let other = asked("other", "/page", 40 * MS);
    for _ in 0..400 {
        flood(&mut simulation, one, 200);
        flood(&mut simulation, other, 50);
        simulation.step().await;
    }
    let used = |asked: Asked| {
        let begun = simulation.begun.iter().filter(|begun| **begun == asked);
        begun.map(|begun| begun.takes).sum::<Duration>()
    };
    let ratio = used(one).as_secs_f64() / used(other).as_secs_f64();
    assert!((0.8..1.25).contains(&ratio), "{ratio}");
}

#[tokio::test(start_paused = true)]
async fn a_flood_on_one_path_does_not_starve_another_of_the_same_client() {
    let mut simulation = Simulation::new(1, one_second);
    let slow = asked("client", "/slow", 50 * MS);
    let quick = asked("client", "/quick", 2 * MS);
    simulation.ask(quick);
    simulation.drain().await;
    for _ in 0..100 {
        flood(&mut simulation, slow, 200);
        simulation.step().await;
    }
    let before = simulation.refused.len();
    assert!(before > 0);
    for _ in 0..20 {
        let begun = simulation.begun.len();
        simulation.ask(quick);
        simulation.step().await;
        assert_eq!(simulation.begun[begun], quick, "it goes next");
        simulation.step().await;
    }
    let refused = simulation.refused[before..].iter();
    assert!(refused.clone().all(|(asked, _)| *asked == slow));
}

#[tokio::test(start_paused = true)]
async fn a_crowd_on_one_path_does_not_starve_who_asks_for_another() {
    let mut simulation = Simulation::new(2, one_second);
    let names: Vec<String> = (0..400).map(|number| format!("crowd {number}")).collect();
    let crowd = |name: &String| asked(name, "/login", 30 * MS);
    let page = asked("reader", "/page", 3 * MS);
    simulation.ask(page);
    simulation.drain().await;
    simulation.ask(crowd(&names[0]));
    simulation.drain().await;
    for name in &names {
        simulation.ask(crowd(name));
    }
    for _ in 0..20 {
        let begun = simulation.begun.len();
        simulation.ask(page);
        simulation.step().await;
        assert_eq!(simulation.begun[begun], page);
        simulation.step().await;
    }
    assert!(!simulation.is_refused(page.client));
}

#[tokio::test(start_paused = true)]
async fn a_burst_that_drains_by_itself_is_not_refused() {
    let mut simulation = Simulation::new(1, one_second);
    let burst = asked("burst", "/page", 50 * MS);
    simulation.ask(burst);
    simulation.drain().await;
    // 30 x 50 ms = 1.5 s, and 1.8 s are allowed in a burst.
    for _ in 0..10 {
        (0..30).for_each(|_| simulation.ask(burst));
        simulation.drain().await;
        tokio::time::advance(1_500 * MS).await;
    }
    assert_eq!((simulation.refused.len(), simulation.begun.len()), (0, 301));
    assert!(!simulation.pool.status().is_standing);
}

#[tokio::test(start_paused = true)]
async fn a_burst_on_a_route_of_which_nothing_is_known_is_not_dropped() {
    let mut simulation = Simulation::new(1, one_second);
    let burst = asked("burst", "/new", 50 * MS);
    // 3.5 s: it was admitted as if it took 1.4 ms, and none is dropped before 4 s.
    (0..70).for_each(|_| simulation.ask(burst));
    simulation.drain().await;
    assert_eq!((simulation.refused.len(), simulation.begun.len()), (0, 70));
    assert_eq!(simulation.elapsed(), 3_500 * MS);
}

#[tokio::test(start_paused = true)]
async fn a_queue_that_stands_is_cut_to_what_may_be_waited() {
    let mut simulation = Simulation::new(1, one_second);
    let flooding = asked("flood", "/page", 50 * MS);
    simulation.ask(flooding);
    simulation.drain().await;
    let queued = |simulation: &Simulation| simulation.pool.status().queue_len;
    flood(&mut simulation, flooding, 200);
    // One runs for 50 ms, and 35 more would be waited for: 1.8 s.
    assert_eq!(queued(&simulation), 36);
    for _ in 0..80 {
        simulation.step().await;
        flood(&mut simulation, flooding, 200);
    }
    assert!(simulation.pool.status().is_standing);
    // Now 0.9 s may be waited.
    assert_eq!(queued(&simulation), 18);
    let dropped = simulation.refused.iter();
    let dropped = dropped.filter(|(_, rejected)| rejected.reason == Reason::Late);
    assert_eq!(dropped.count(), 0, "who was let in is served");
}

#[tokio::test(start_paused = true)]
async fn who_leaves_uses_nothing_and_holds_no_place() {
    let mut simulation = Simulation::new(1, |builder| builder.queue_max(100));
    let leaving = asked("leaving", "/page", 50 * MS);
    let staying = asked("staying", "/page", 50 * MS);
    simulation.ask(staying);
    simulation.drain().await;
    simulation.ask(staying);
    for _ in 0..20 {
        (0..50).for_each(|_| simulation.ask(leaving));
        assert_eq!(simulation.pool.status().queue_len, 50);
        simulation.leave(leaving.client);
        assert_eq!(simulation.pool.status().queue_len, 0);
    }
    assert!(simulation.refused.is_empty());
    simulation.ask(staying);
    assert_eq!(simulation.pool.status().backlog_micros, 50_000);
    simulation.drain().await;
    assert_eq!(simulation.begun.len(), 3);
    let shares = simulation.pool.status().shares;
    assert!(shares.iter().all(|share| share.client != leaving.client));
}

#[tokio::test(start_paused = true)]
async fn who_leaves_with_a_run_in_hand_is_charged_nothing_for_it() {
    let pool = with_workers(0..1, |builder| builder);
    let client = Client::named("leaving");
    let route = Route::default();
    assert_eq!(send(&pool), Some(0));
    respond(&pool, 0, 5_000 * MS);
    for _ in 0..3 {
        let Admission::Run(run) = pool.acquire(Origin { route, client }) else {
            panic!("the worker is idle")
        };
        assert_eq!(run.charge().expected, 5_000 * MS);
        drop(run);
    }
    let shares = pool.status().shares;
    let share = shares.iter().find(|share| share.client == client);
    assert_eq!(share.map(|share| share.used_micros), Some(0));
    assert_eq!(pool.status().predicted_wait_micros, 0);
}

#[tokio::test(start_paused = true)]
async fn one_flow_leaves_places_for_others() {
    let mut simulation = Simulation::new(1, |builder| builder.queue_max(8));
    let flooding = asked("flood", "/page", 50 * MS);
    (0..20).for_each(|_| simulation.ask(flooding));
    assert_eq!(simulation.pool.status().queue_len, 4);
    assert_eq!(simulation.pool.status().sheds.queue_full, 15);
    for name in ["one", "two", "three"] {
        simulation.ask(asked(name, "/page", 50 * MS));
        assert!(!simulation.is_refused(Client::named(name)));
    }
    simulation.drain().await;
    assert_eq!(simulation.begun.len(), 8);
}

#[tokio::test(start_paused = true)]
async fn short_requests_do_not_keep_workers_from_who_needs_one_alone() {
    let mut simulation = Simulation::new(1, |builder| builder);
    let short = asked("short", "/short", SHORT);
    for _ in 0..64 {
        simulation.ask(short);
        simulation.drain().await;
    }
    (0..10).for_each(|_| simulation.ask(short));
    let sent_ahead = simulation.begun.len();
    simulation.ask(asked("long", "/long", 50 * MS));
    // Its turn is first, so no more are sent ahead until the worker is idle.
    (0..10).for_each(|_| simulation.ask(short));
    assert_eq!(simulation.begun.len(), sent_ahead);
    for _ in 0..10 {
        simulation.step().await;
    }
    assert_eq!(simulation.begun[sent_ahead].path, "/long");
    assert_eq!(simulation.begun.len(), sent_ahead + 1);
    simulation.drain().await;
    assert_eq!(simulation.begun.len(), sent_ahead + 11);
}

#[tokio::test(start_paused = true)]
async fn who_has_used_less_passes_whoever_waits_for_a_worker_alone() {
    let mut simulation = Simulation::new(1, |builder| builder);
    let short = asked("polite", "/short", SHORT);
    for _ in 0..64 {
        simulation.ask(short);
        simulation.drain().await;
    }
    let greedy = asked("greedy", "/long", 50 * MS);
    simulation.ask(greedy);
    simulation.drain().await;
    simulation.ask(short);
    simulation.ask(greedy);
    assert_eq!(simulation.count_waiting(greedy.client), 1);
    let begun = simulation.begun.len();
    simulation.ask(short);
    assert_eq!(simulation.begun.len(), begun + 1);
    simulation.drain().await;
}

#[tokio::test(start_paused = true)]
async fn the_status_tells_who_uses_the_workers_and_who_is_refused() {
    let mut simulation = Simulation::new(1, one_second);
    let flooding = asked("flood", "/page", 50 * MS);
    let polite = asked("polite", "/page", 50 * MS);
    simulation.ask(polite);
    simulation.drain().await;
    for _ in 0..50 {
        flood(&mut simulation, flooding, 200);
        simulation.step().await;
    }
    simulation.ask(polite);
    simulation.step().await;
    let shares = simulation.pool.status().shares;
    let first = &shares[0];
    assert_eq!(first.client, flooding.client);
    assert!(first.rejected > 0 && first.queue_len > 0 && first.used_micros > 1_000_000);
    let polite = shares.iter().find(|share| share.client == polite.client);
    assert_eq!(polite.map(|share| share.rejected), Some(0));
}
