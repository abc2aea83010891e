//! Third parties of the tests: real HTTP servers on free ports, which can be made to misbehave.

pub(crate) mod push_service;
pub(crate) mod third_party;
pub(crate) mod webhook;

use std::net::SocketAddr;
use std::num::NonZero;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use greenroom::{Address, Placement, Server};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use url::Url;

/// Longest wait for something that should happen.
const PATIENCE: Duration = Duration::from_mins(3);

/// The behaviour of a fake.
#[derive(Clone, Debug, Default)]
pub(crate) enum Behaviour {
    /// It responds as it should.
    #[default]
    Responds,
    /// It never responds.
    Hangs,
    /// It fails with this status, this header `Retry-After`, and no body.
    Fails(StatusCode, Option<u32>),
    /// It responds with 200 and this body, as JSON.
    RespondsWith(String),
}

impl Behaviour {
    /// Returns the response of a misbehaving fake; `None` if it behaves.
    pub(crate) async fn misbehave(&self) -> Option<Response> {
        match self {
            Self::Responds => None,
            Self::Hangs => std::future::pending().await,
            Self::Fails(status, None) => Some(status.into_response()),
            Self::Fails(status, Some(seconds)) => {
                Some((*status, [("retry-after", seconds.to_string())]).into_response())
            }
            Self::RespondsWith(body) => {
                Some(([("content-type", "application/json")], body.clone()).into_response())
            }
        }
    }
}

/// A value that a server shares with its test.
#[derive(Debug, Default)]
pub(crate) struct Cell<T>(Mutex<T>);

impl<T> Cell<T> {
    pub(crate) fn set(&self, value: T) {
        self.with(|held| *held = value);
    }

    pub(crate) fn with<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl<T: Clone> Cell<T> {
    pub(crate) fn get(&self) -> T {
        self.with(|held| held.clone())
    }
}

/// A list that a test can wait for.
#[derive(Debug)]
pub(crate) struct Log<T>(watch::Sender<Vec<T>>);

impl<T> Default for Log<T> {
    fn default() -> Self {
        Self(watch::Sender::new(Vec::new()))
    }
}

impl<T: Clone> Log<T> {
    pub(crate) fn push(&self, entry: T) {
        self.0.send_modify(|entries| entries.push(entry));
    }

    pub(crate) fn all(&self) -> Vec<T> {
        self.0.borrow().clone()
    }

    pub(crate) fn count(&self) -> usize {
        self.0.borrow().len()
    }

    /// Returns the entries, as soon as there are so many.
    ///
    /// # Panics
    /// If there are not after a minute.
    pub(crate) async fn at_least(&self, count: usize) -> Vec<T> {
        let mut receiver = self.0.subscribe();
        let enough = receiver.wait_for(|entries| entries.len() >= count);
        let entries = tokio::time::timeout(PATIENCE, enough).await;
        let entries = entries.unwrap_or_else(|_| panic!("there are {} of {count}", self.count()));
        entries.expect("the sender is here").clone()
    }
}

/// A server at a free port of this machine, until it is dropped.
#[derive(Debug)]
pub(crate) struct Local {
    address: Address,
    server: JoinHandle<()>,
}

impl Local {
    pub(crate) fn serve(router: Router) -> Self {
        let any_port = SocketAddr::from(([127, 0, 0, 1], 0));
        let server = Server::builder()
            .listen(any_port)
            .loops(NonZero::<usize>::MIN)
            .access_log(false);
        let server = server.bind().expect("there is a free port");
        let address = server.local_addresses()[0].clone();
        let inline = router.layer(Placement::inline());
        let server = tokio::spawn(async move {
            server
                .serve(inline)
                .await
                .expect("it serves until it is dropped");
        });
        Self { address, server }
    }

    pub(crate) fn url(&self, path: &str) -> Url {
        let url = format!("http://{}{path}", self.address);
        url.parse().expect("an address and a path make a URL")
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        self.server.abort();
    }
}
