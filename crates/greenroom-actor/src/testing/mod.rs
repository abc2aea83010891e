//! The test kit: actors on a clock that tests move, in an order that a seed decides.
//!
//! [`run`] gives a test a [`TestSystem`]: an actor system whose actors all run on the thread of the
//! test, one message at a time, on a paused clock. Time stands still while anything can run, and
//! jumps to the next timer when nothing can, so a test of an hour takes a millisecond.
//!
//! ```
//! use std::time::Duration;
//!
//! use greenroom_actor::testing;
//! use greenroom_actor::{Actor, Context, Handler, Recipient};
//!
//! struct Reminder(Recipient<&'static str>);
//! impl Actor for Reminder {}
//!
//! #[derive(Clone)]
//! struct Remind;
//! impl Handler<Remind> for Reminder {
//!     type Reply = ();
//!     fn handle(&mut self, _: Remind, context: &mut Context<Self>) {
//!         context.once(Duration::from_secs(3600), Due);
//!     }
//! }
//!
//! struct Due;
//! impl Handler<Due> for Reminder {
//!     type Reply = ();
//!     fn handle(&mut self, _: Due, _: &mut Context<Self>) {
//!         let _ = self.0.tell("the hour is over");
//!     }
//! }
//!
//! testing::run(|system| async move {
//!     let mut probe = system.probe::<&'static str>();
//!     let recipient = probe.recipient();
//!     let reminder = system.spawn(move || Reminder(recipient.clone()));
//!
//!     reminder.tell(Remind).expect("the mailbox has room");
//!     system.advance(Duration::from_secs(3599)).await;
//!     probe.expect_no_message(Duration::ZERO).await;
//!     system.advance(Duration::from_secs(1)).await;
//!     assert_eq!(probe.expect_message().await, "the hour is over");
//! });
//! ```
//!
//! # Orders and seeds
//!
//! The actor that runs next is picked at random by a seed, and so is the moment at which the actors
//! let other tasks run. [`run_seeded`] tries a scenario with many seeds. When one fails, its panic
//! names the seed; with `GREENROOM_SEED=17` in the environment only that one is run, and takes the
//! same course.
//!
//! That holds as long as nothing else is random: no threads of its own (so no other dispatchers),
//! no clock but `tokio`'s, no iteration over a `HashMap`, no `tokio::select!` without `biased`. The
//! generator of the crate `fastrand` is seeded as well. Numbers of actors differ from run to run.
//!
//! # Faults
//!
//! [`Faults`] make actors panic, or kill them, at a message that the test chooses or by chance:
//!
//! ```
//! use greenroom_actor::testing::{Faults, TestKit};
//! use greenroom_actor::{Actor, Context, Handler};
//!
//! struct Counter(u64);
//! impl Actor for Counter {}
//!
//! struct Add;
//! impl Handler<Add> for Counter {
//!     type Reply = u64;
//!     fn handle(&mut self, _: Add, _: &mut Context<Self>) -> u64 {
//!         self.0 += 1;
//!         self.0
//!     }
//! }
//!
//! let faults = Faults::new().panic_at::<Counter, Add>(2);
//! TestKit::new().faults(faults).run(|system| async move {
//!     let counter = system.spawn(|| Counter(0));
//!     assert_eq!(counter.ask(Add).await.expect("it is handled"), 1);
//!     assert!(counter.ask(Add).await.is_err());
//!     // Restarted, it begins anew.
//!     assert_eq!(counter.ask(Add).await.expect("it is handled"), 1);
//! });
//! ```

mod faults;
mod idle;
mod kit;
mod probe;
mod system;

pub(crate) use faults::inject_fault;
pub use faults::{Fault, Faults};
pub use kit::{SEED_VARIABLE, TestKit, run, run_seeded};
pub use probe::{PROBE_MAX, Probe, ProbeActor, TIMEOUT_DEFAULT};
pub use system::TestSystem;
