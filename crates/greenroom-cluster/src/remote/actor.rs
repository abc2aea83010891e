use greenroom_actor::Actor;

use super::Handlers;

/// An actor whose messages other processes may send.
///
/// [`#[messages(remote = "counter.v1")]`](greenroom_actor::messages) implements it, and
/// [`RemoteMessage`] for each message:
///
/// ```
/// use greenroom_actor::{Actor, messages};
/// use greenroom_cluster::Remote;
///
/// struct Counter(u64);
/// impl Actor for Counter {}
///
/// #[messages(remote = "counter.v1")]
/// impl Counter {
///     #[message]
///     fn add(&mut self, amount: u64) -> u64 {
///         self.0 += amount;
///         self.0
///     }
/// }
///
/// async fn add_three(counter: &Remote<Counter>) -> Result<u64, Box<dyn std::error::Error>> {
///     Ok(counter.add(3).ask().await?)
/// }
/// ```
///
/// The same written out, without the methods of [`Remote`](crate::Remote):
///
/// ```
/// # mod user {
/// use greenroom_cluster::{Handlers, RemoteActor, RemoteMessage};
/// use greenroom_cluster::serde::{Deserialize, Serialize};
/// use greenroom_actor::{Actor, Context, Handler, marker};
///
/// struct Counter(u64);
/// impl Actor for Counter {}
///
/// #[derive(Serialize, Deserialize)]
/// # #[serde(crate = "greenroom_cluster::serde")]
/// struct Add {
///     amount: u64,
/// }
/// impl Handler<Add> for Counter {
///     type Reply = u64;
///     fn handle(&mut self, add: Add, _: &mut Context<Self>) -> u64 {
///         self.0 += add.amount;
///         self.0
///     }
/// }
///
/// impl RemoteMessage<Add> for Counter {
///     const NAME: &'static str = "add";
/// }
/// impl RemoteActor for Counter {
///     const NAME: &'static str = "counter.v1";
///     fn register(handlers: &mut Handlers<Self>) {
///         handlers.add::<Add, marker::Sync>();
///     }
/// }
/// # }
/// ```
pub trait RemoteActor: Actor {
    /// The name of this kind of actor and the version of its messages, such as `mailer.v1`: 1 to 64
    /// bytes of `a-z`, `A-Z`, `0-9`, `-`, `_`, and `.` between them. All nodes write it alike.
    ///
    /// A field may be added to a message within a version, if it has a default
    /// (`#[serde(default)]`); anything else takes a new version.
    const NAME: &'static str;

    /// Registers the messages that other processes may send. What is not registered is rejected.
    fn register(handlers: &mut Handlers<Self>);
}

/// An actor that takes the message `M` from other processes.
pub trait RemoteMessage<M>: RemoteActor {
    /// The name of the message: 1 to 64 bytes of `a-z`, `A-Z`, `0-9`, `-` and `_`.
    const NAME: &'static str;
}
