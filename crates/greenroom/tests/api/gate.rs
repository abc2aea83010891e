use std::sync::{Arc, Barrier};

use futures_util::future::join_all;
use http::StatusCode;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use crate::rig::get as fetch;

/// More than there are loops.
const BLOCKED: u32 = 3;

/// A gate in which handlers block until a test opens it.
#[derive(Clone)]
pub(crate) struct Gate {
    /// A permit for each handler that has come, and was not counted yet.
    came: Arc<Semaphore>,
    open: Arc<Barrier>,
}

impl Default for Gate {
    fn default() -> Self {
        Self {
            came: Arc::new(Semaphore::new(0)),
            open: Arc::new(Barrier::new(BLOCKED as usize + 1)),
        }
    }
}

impl Gate {
    /// Keeps the calling thread.
    pub(crate) fn block(&self) -> &'static str {
        self.came.add_permits(1);
        self.open.wait();
        "blocked"
    }

    /// Requests this until more handlers block at once than there are loops to block.
    pub(crate) async fn fill(&self, url: &str) -> Blocked {
        let requests = (0..BLOCKED).map(|_| tokio::spawn(fetch(url.to_owned())));
        let blocked = Blocked(requests.collect());
        self.came.acquire_many(BLOCKED).await.unwrap().forget();
        blocked
    }

    pub(crate) async fn open(&self) {
        let open = Arc::clone(&self.open);
        tokio::task::spawn_blocking(move || open.wait())
            .await
            .unwrap();
    }
}

/// Requests whose handlers block.
pub(crate) struct Blocked(Vec<JoinHandle<(StatusCode, String)>>);

impl Blocked {
    pub(crate) async fn all_served(self) {
        for response in join_all(self.0).await {
            assert_eq!(response.unwrap(), (StatusCode::OK, "blocked".into()));
        }
    }
}
