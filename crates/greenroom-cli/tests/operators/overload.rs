//! The page is served while everything else is overloaded, and says who is refused.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::outside::http;
use crate::outside::wait;
use crate::{Operated, PATIENCE};

/// Some milliseconds of computing, on a stage.
const LONG: &str = "/fib/30000";

/// Clients that ask without a pause: ten for each of the stage's two threads.
const CLIENTS: usize = 20;

/// Pages that are asked for meanwhile.
const PAGES: usize = 20;

/// A flood of requests, until it is dropped.
pub(crate) struct Flood {
    is_over: Arc<AtomicBool>,
    clients: Vec<thread::JoinHandle<()>>,
}

impl Flood {
    pub(crate) fn begin(operated: &Operated) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let address = operated.server.address();
        let clients = (0..CLIENTS).map(|_| {
            let is_over = Arc::clone(&is_over);
            thread::spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    // Most are refused, which is what the page has to say.
                    let _response = http::get(address, LONG, PATIENCE);
                }
            })
        });
        Self {
            clients: clients.collect(),
            is_over,
        }
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        for client in self.clients.drain(..) {
            let _ended = client.join();
        }
    }
}

#[test]
fn the_page_is_served_under_overload_and_says_who_is_refused() {
    let operated = Operated::start(&["--stage-threads", "2", "--queue-wait-max", "20ms"]);
    let flood = Flood::begin(&operated);
    let page = || operated.ask("/").body;
    wait::until("a refusal", PATIENCE, page, |page| {
        page.contains("requests were refused in the last minute")
    });
    for _ in 0..PAGES {
        let page = operated.ask("/");
        assert_eq!(page.status, 200);
        let (_, admission) = page.body.split_once("id=\"admission\"").unwrap();
        let (admission, _) = admission.split_once("</section>").unwrap();
        assert!(
            admission.contains("GET /fib/{n} by 127.0.0.1"),
            "{admission}"
        );
        assert!(admission.contains("it is refused first"), "{admission}");
        for path in [
            "/greenroom/status",
            "/greenroom/status.txt",
            "/greenroom/metrics",
            "/ready",
        ] {
            assert_eq!(operated.ask(path).status, 200, "{path}");
        }
    }
    drop(flood);
}
