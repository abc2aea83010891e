//! Mails, notifications and removals, as their recipients see them.

#[expect(dead_code, reason = "each test uses some of the fakes")]
#[path = "fakes/mod.rs"]
mod fakes;
#[path = "kit/smtp.rs"]
mod smtp;
#[path = "kit/wait.rs"]
mod wait;

#[path = "delivery/fixture.rs"]
mod fixture;
#[path = "delivery/janitor.rs"]
mod janitor;
#[path = "delivery/mails.rs"]
mod mails;
#[path = "delivery/notifications.rs"]
mod notifications;
