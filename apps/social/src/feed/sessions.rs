//! The open connections by user, so that they end with their session or key.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use greenroom::actor::web::{Frame, Outbox};
use greenroom::bus::{self, Bus, SinkSubscription};
use jiff::Timestamp;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::runtime::Handle;
use tokio::time::sleep;

use crate::model::Id;
use crate::store::{self, Store};

/// The topic that carries [`Ended`] to all replicas.
const TOPIC: &str = "/sessions/ended";
/// "Unauthorized" (the registry of close codes of RFC 6455).
pub(super) const UNAUTHORIZED: u16 = 3000;
/// The reason in the close frame.
pub(super) const REASON: &str = "the session or key has ended";

/// The user who opens a connection.
#[derive(Clone, Debug)]
pub struct Watcher {
    /// The user, who alone may watch their own bell.
    pub user: Id,
    /// The credential, with which the connection ends.
    pub credential: Credential,
    /// The expiry of the session; `None` for a key, which has none.
    pub expires_at: Option<Timestamp>,
}

/// The credential that a connection was opened with.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Credential {
    /// The key that a program signs with.
    Key(Id),
    /// The hash of a session's token.
    Session(String),
}

/// The connections of a user that end together.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// Those of one session or key.
    Credential(Credential),
    /// Those of all sessions; keys stay.
    Sessions,
    /// All, with the user.
    All,
}

impl Scope {
    fn has(&self, credential: &Credential) -> bool {
        match self {
            Self::Credential(ended) => ended == credential,
            Self::Sessions => matches!(credential, Credential::Session(_)),
            Self::All => true,
        }
    }
}

/// The end of connections of a user.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Ended {
    pub(super) user: Id,
    pub(super) scope: Scope,
}

/// The connections of users to this replica, by user.
#[derive(Debug, Default)]
pub(super) struct Connections(Mutex<HashMap<Id, Vec<Arc<Connection>>>>);

#[derive(Debug)]
struct Connection {
    credential: Credential,
    outbox: Outbox<Frame>,
}

/// A guard that lists a connection for as long as it lasts.
#[derive(Debug)]
pub(super) struct ConnectionGuard {
    pub(super) watcher: Watcher,
    connection: Arc<Connection>,
    connections: Arc<Connections>,
}

impl Connections {
    pub(super) fn enter(
        self: &Arc<Self>,
        watcher: Watcher,
        outbox: Outbox<Frame>,
    ) -> ConnectionGuard {
        let connection = Arc::new(Connection {
            credential: watcher.credential.clone(),
            outbox,
        });
        let mut all = self.0.lock();
        let of_user = all.entry(watcher.user).or_default();
        of_user.push(Arc::clone(&connection));
        drop(all);
        ConnectionGuard {
            watcher,
            connection,
            connections: Arc::clone(self),
        }
    }

    /// Closes the connections that have ended.
    pub(super) fn end(&self, ended: &Ended) {
        let is_of = |connection: &&Arc<Connection>| ended.scope.has(&connection.credential);
        let all = self.0.lock();
        let of_user = all.get(&ended.user).map_or(&[][..], Vec::as_slice);
        let to_close = of_user.iter().filter(is_of);
        let to_close: Vec<_> = to_close.map(Arc::clone).collect();
        drop(all);
        for connection in to_close {
            if let Err(error) = connection.outbox.close(UNAUTHORIZED, REASON) {
                tracing::error!(%error, "a connection could not be closed");
            }
        }
    }

    /// Returns the credentials of all connections.
    fn credentials(&self) -> Vec<(Id, Credential)> {
        let all = self.0.lock();
        let credentials = all.iter().flat_map(|(user, connections)| {
            let credentials = connections.iter().map(|it| it.credential.clone());
            credentials.map(|credential| (*user, credential))
        });
        credentials.collect()
    }
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        let mut all = self.connections.0.lock();
        let Some(of_user) = all.get_mut(&self.watcher.user) else {
            return;
        };
        of_user.retain(|it| !Arc::ptr_eq(it, &self.connection));
        if of_user.is_empty() {
            all.remove(&self.watcher.user);
        }
    }
}

/// Listens for sessions that end on other replicas, on the calling runtime.
///
/// Messages missed while the bus was down are made up for by asking the storage for all credentials
/// that are connected here.
///
/// # Errors
/// Fails if the bus takes no more subscriptions.
pub(super) fn hear(
    bus: &Bus,
    store: &Arc<dyn Store>,
    connections: &Arc<Connections>,
) -> anyhow::Result<Arc<SinkSubscription>> {
    let runtime = Handle::current();
    let (theirs, ours) = (Arc::clone(store), Arc::clone(connections));
    let hear = move |event| {
        match event {
            bus::Event::Message(message) => match message.json::<Ended>() {
                Ok(ended) => ours.end(&ended),
                Err(error) => tracing::warn!(%error, "the end of a session is not understood"),
            },
            bus::Event::Gap { .. } => {
                let look = look_at_all(Arc::clone(&theirs), Arc::clone(&ours));
                runtime.spawn(look);
            }
        }
        Ok(())
    };
    let subscription = Arc::new(bus.subscribe_sink(TOPIC, hear)?);
    if subscription.established().now_or_never().is_none() {
        let established = Arc::clone(&subscription);
        let (store, connections) = (Arc::clone(store), Arc::clone(connections));
        tokio::spawn(async move {
            if established.established().await.is_ok() {
                look_at_all(store, connections).await;
            }
        });
    }
    Ok(subscription)
}

/// Looks up all credentials that are connected here at intervals of `every`, on the calling
/// runtime, until the connections or the storage are dropped: a message is lost too if the process
/// that was to send it dies, or if the storage was away when it would have been made up for.
pub(super) fn look_regularly(
    every: Duration,
    store: &Arc<dyn Store>,
    connections: &Arc<Connections>,
) {
    let (store, connections) = (Arc::downgrade(store), Arc::downgrade(connections));
    tokio::spawn(async move {
        loop {
            sleep(every).await;
            let (Some(store), Some(connections)) = (store.upgrade(), connections.upgrade()) else {
                return;
            };
            look_at_all(store, connections).await;
        }
    });
}

/// Closes the connections here at once, and those to other replicas soon.
pub(super) fn publish(bus: &Bus, connections: &Connections, ended: &Ended) {
    connections.end(ended);
    let published = serde_json::to_vec(ended).map(|json| bus.try_publish(TOPIC, json));
    if let Ok(Err(error)) = published {
        tracing::warn!(%error, "the end of a session was not published");
    }
}

async fn look_at_all(store: Arc<dyn Store>, connections: Arc<Connections>) {
    for (user, credential) in connections.credentials() {
        match is_live(&*store, &credential).await {
            Ok(true) => {}
            Ok(false) => connections.end(&Ended {
                user,
                scope: Scope::Credential(credential),
            }),
            Err(error) => tracing::warn!(%error, "it is not known whether a session has ended"),
        }
    }
}

/// Returns `true` if the session is still live, or the key still there.
pub(super) async fn is_live(store: &dyn Store, credential: &Credential) -> store::Result<bool> {
    match credential {
        Credential::Key(key) => Ok(store.key(*key).await?.is_some()),
        Credential::Session(token_hash) => {
            let found = store.live_session(token_hash, Timestamp::now()).await?;
            Ok(found.is_some())
        }
    }
}
