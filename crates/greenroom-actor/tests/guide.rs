//! The examples of the guide (docs/actors.md) do what it says of them. Their tests are their own.
#![allow(dead_code, reason = "an example has a `main`, which is not run here")]

#[path = "../examples/image_dispatcher.rs"]
mod image_dispatcher;
#[path = "../examples/mailer.rs"]
mod mailer;
#[path = "../examples/nested_futures.rs"]
mod nested_futures;
#[path = "../examples/parallel_uploads.rs"]
mod parallel_uploads;
