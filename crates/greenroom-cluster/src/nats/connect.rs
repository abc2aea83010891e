use std::fmt::Display;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::context;
use thiserror::Error;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, timeout_at};

use super::{INBOUND_MAX, Nats, Stores, Subjects};
use crate::settings::{ClusterSettings, SettingsError};

/// Commands that wait for the connection; senders wait beyond them.
const COMMANDS_MAX: usize = 2_048;
/// Messages of one subscription that wait for this node. What comes beyond them is lost, and its
/// asker's deadline passes.
const SUBSCRIPTION_MAX: usize = 16_384;
/// A connection is tried this many times within the lease, so that a node which loses its server
/// has another one at about the time when it loses its entities.
const PINGS_IN_LEASE: u32 = 3;
/// The pause before a step of joining is taken once more.
const AGAIN_AFTER: Duration = Duration::from_millis(100);

/// The reason for which a node did not join a cluster.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The settings cannot work.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// A file of the settings cannot be read.
    #[error("the credentials cannot be read: {0}")]
    Credentials(io::Error),
    /// No server took the connection.
    #[error("NATS cannot be reached: {0}")]
    Nats(#[from] async_nats::ConnectError),
    /// The server has no `JetStream`, which holds the nodes, leases, states and durable messages.
    #[error("the server at {server} has no JetStream: start it with `-js`")]
    NoJetStream {
        /// Its address.
        server: String,
    },
    /// A stream could not be opened or made.
    #[error("a stream of the cluster cannot be made: {0}")]
    Stream(#[from] context::CreateStreamError),
    /// A bucket could not be opened.
    #[error("the bucket `{bucket}` cannot be opened: {error}")]
    Bucket {
        /// Its name.
        bucket: String,
        /// The reason.
        error: context::KeyValueError,
    },
    /// This node's record could not be written.
    #[error("this node cannot say that it is there: {0}")]
    Join(String),
    /// Nodes with another lease are there.
    #[error(
        "the lease is {}, but that of the nodes which are there is {}: use theirs, or end them \
         first",
        humantime::format_duration(*lease),
        humantime::format_duration(*theirs)
    )]
    Lease {
        /// That of this node ([`ClusterSettings::lease`]).
        lease: Duration,
        /// That of the others.
        theirs: Duration,
    },
    /// It took longer than it may.
    #[error("the cluster did not respond within {}", humantime::format_duration(*after))]
    Late {
        /// The time-out ([`ClusterSettings::connect_timeout`]).
        after: Duration,
    },
    /// A subscription was not made.
    #[error("this node cannot subscribe: {0}")]
    Subscribe(#[from] async_nats::SubscribeError),
}

impl ConnectError {
    pub(crate) fn join(error: impl Display) -> Self {
        Self::Join(error.to_string())
    }
}

impl Nats {
    pub(crate) async fn connect(settings: &ClusterSettings) -> Result<Self, ConnectError> {
        settings.check()?;
        if settings.uses_tls() {
            // Only who comes first decides; whoever did is as good.
            let _ = rustls::crypto::ring::default_provider().install_default();
        }
        let limits = &settings.limits;
        let options = settings
            .options()
            .await
            .map_err(ConnectError::Credentials)?;
        let client = options
            .client_capacity(COMMANDS_MAX)
            .subscription_capacity(SUBSCRIPTION_MAX)
            // The client gives a server up when the third ping in a row has no response: of one
            // that is cut off without a word nothing else is heard.
            .ping_interval(limits.lease / PINGS_IN_LEASE)
            .custom_inbox_prefix(format!("_INBOX.{}", limits.prefix))
            .event_callback(|event| async move {
                tracing::info!(target: "greenroom::cluster", %event, "NATS");
            })
            .connect(&settings.servers)
            .await?;
        let info = client.server_info();
        if !info.jetstream {
            let server = format!("{}:{}", info.host, info.port);
            return Err(ConnectError::NoJetStream { server });
        }
        let subjects = Subjects::new(&limits.prefix);
        let open = || Box::pin(Stores::open(&client, &subjects, limits));
        let stores = retry(limits.connect_timeout, open).await?;
        Ok(Self {
            client,
            subjects,
            stores,
            inbound: Arc::new(Semaphore::new(INBOUND_MAX)),
        })
    }
}

/// Takes a step of joining again and again until it succeeds or the time is over: servers that have
/// just started have no leader yet, neither of the cluster nor of a stream.
///
/// # Errors
///
/// The last error of the step, or [`ConnectError::Late`] if it had none.
pub(crate) async fn retry<T, F>(
    after: Duration,
    mut step: impl FnMut() -> F,
) -> Result<T, ConnectError>
where
    F: Future<Output = Result<T, ConnectError>>,
{
    let deadline = Instant::now() + after;
    let mut last = ConnectError::Late { after };
    loop {
        match timeout_at(deadline, step()).await {
            Ok(Ok(done)) => return Ok(done),
            Ok(Err(error)) => last = error,
            Err(_) => return Err(last),
        }
        if Instant::now() + AGAIN_AFTER >= deadline {
            return Err(last);
        }
        sleep(AGAIN_AFTER).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AFTER: Duration = Duration::from_secs(5);

    #[tokio::test(start_paused = true)]
    async fn a_step_that_fails_at_first_is_taken_again() {
        let mut tries = 0;
        let joined = retry(AFTER, || {
            tries += 1;
            let outcome = if tries < 4 {
                Err(ConnectError::Join("no stream found".to_owned()))
            } else {
                Ok(tries)
            };
            async move { outcome }
        });
        assert_eq!(joined.await.expect("the fourth try succeeds"), 4);
    }

    #[tokio::test(start_paused = true)]
    async fn a_step_that_never_succeeds_ends_with_its_own_error_in_time() {
        let begin = Instant::now();
        let step = || async { Err::<(), _>(ConnectError::Join("no leader".to_owned())) };
        let error = retry(AFTER, step).await.expect_err("it fails each time");
        assert!(matches!(&error, ConnectError::Join(reason) if reason == "no leader"));
        assert!(begin.elapsed() <= AFTER, "{:?}", begin.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn a_step_without_an_end_is_late() {
        let error = retry(AFTER, std::future::pending::<Result<(), _>>).await;
        assert!(matches!(error, Err(ConnectError::Late { after }) if after == AFTER));
    }
}
