use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use bytes::Bytes;
use greenroom_actor::Receive;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Remote, RemoteActor, RemoteError, RemoteMessage};
use crate::codec;
use crate::deliver::Delivery;
use crate::names::check_message_id;
use crate::wire::Request;

/// The default deadline of an ask, also of one that another program sends without saying any.
pub(crate) const TIMEOUT_DEFAULT: Duration = Duration::from_secs(5);
/// The longest deadline.
pub(crate) const TIMEOUT_MAX: Duration = Duration::from_hours(1);

/// A message with its receiver, as the methods that `#[messages(remote = "…")]` generates return
/// it: to be sent by `ask`, `tell` or `deliver`.
#[must_use = "nothing is sent before `ask`, `tell` or `deliver`"]
pub struct RemoteCall<'a, A, M, K> {
    remote: &'a Remote<A>,
    message: M,
    timeout: Duration,
    id: Option<Box<str>>,
    kind: PhantomData<fn(K)>,
}

impl<'a, A, M, K> RemoteCall<'a, A, M, K>
where
    A: Receive<M, K> + RemoteMessage<M>,
    A::Reply: DeserializeOwned,
    M: Serialize,
{
    /// Creates a call of this receiver with this message.
    pub fn new(remote: &'a Remote<A>, message: M) -> Self {
        Self {
            remote,
            message,
            timeout: TIMEOUT_DEFAULT,
            id: None,
            kind: PhantomData,
        }
    }

    /// Waits for a reply, or for the acknowledgement of a durable message, at most this long.
    /// Default 5 s, at most 1 h.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout.min(TIMEOUT_MAX);
        self
    }

    /// Sets the identity of a durable message among those of its receiver and name, so that the
    /// same one sent again within two minutes is not taken again: for instance the number of the
    /// row that it stems from. Default: a new one. Any text of 1 to
    /// [`MESSAGE_ID_BYTES_MAX`](crate::MESSAGE_ID_BYTES_MAX) bytes. Without effect on `ask` and
    /// `tell`.
    pub fn id(mut self, id: impl Into<Box<str>>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Sends the message, and waits for the reply. It is handled at most once.
    ///
    /// # Errors
    ///
    /// See [`RemoteError`].
    pub async fn ask(self) -> Result<A::Reply, RemoteError> {
        let (remote, timeout) = (self.remote, self.timeout);
        let mut request = self.request(Some(timeout))?;
        let reply = remote.cluster.core().ask(&mut request).await?;
        codec::decode(&reply).map_err(|error| RemoteError::Codec {
            message: <A as RemoteMessage<M>>::NAME.to_owned(),
            reason: format!("the reply cannot be read: {error}"),
        })
    }

    /// Sends the message, and waits for nothing but room in the connection. It is handled at most
    /// once; what becomes of it is not heard. A node that rejects it counts a dead letter.
    ///
    /// # Errors
    ///
    /// That no node is known which has such an actor, or that the message was not sent.
    pub async fn tell(self) -> Result<(), RemoteError> {
        let remote = self.remote;
        let request = self.request(None)?;
        remote.cluster.core().tell(request).await
    }

    /// Hands the message over to the cluster, which keeps it until it was handled: at least once,
    /// also if the receiver, its node or this one ends. It is returned when the servers have it
    /// safe; the handling comes later, and a receiver need not be there yet.
    ///
    /// Within two minutes the same [`id`](Self::id) is taken once. An entity that keeps its state
    /// by a [`Stored`](crate::Stored) is changed by it once; any other handler must bear a
    /// repetition.
    ///
    /// # Errors
    ///
    /// That the id cannot be used ([`RemoteError::Name`]); that the message was not taken; or that
    /// this is not known ([`RemoteError::Late`]): send it again with the same id.
    pub async fn deliver(mut self) -> Result<Delivery, RemoteError> {
        let (remote, timeout) = (self.remote, self.timeout);
        let id = self.id.take();
        id.as_deref().map_or(Ok(()), check_message_id)?;
        let mut request = self.request(None)?;
        request.id = Some(id.unwrap_or_else(|| nuid::next().as_str().into()));
        remote.cluster.core().deliver(request, timeout).await
    }

    fn request(self, timeout: Option<Duration>) -> Result<Request, RemoteError> {
        let message = <A as RemoteMessage<M>>::NAME;
        let payload: Bytes = codec::encode(&self.message).map_err(|error| RemoteError::Codec {
            message: message.to_owned(),
            reason: format!("it cannot be encoded: {error}"),
        })?;
        self.remote
            .cluster
            .core()
            .check_size(message, payload.len())?;
        Ok(Request {
            target: self.remote.target.clone(),
            actor: <A as RemoteActor>::NAME.into(),
            message: message.into(),
            timeout,
            id: None,
            payload,
        })
    }
}

impl<A: RemoteActor, M, K> fmt::Debug for RemoteCall<'_, A, M, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteCall")
            .field("remote", self.remote)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}
