//! Authentication of callers, and their rate limits.
//!
//! People log in and have a session, whose token is in a cookie; programs sign each request with a
//! key. Handlers take a [`Viewer`] or a [`MaybeViewer`] (pages: a session), or a [`Caller`] or a
//! [`MaybeCaller`] (API: a session or a signature).

mod client;
mod failed_log_ins;
mod limits;
mod mask;
mod origin;
mod session;
mod signature;
mod viewer;

pub use client::Client;
pub use limits::{Limits, limit_requests};
pub use mask::mask_csrf;
pub use origin::{is_from_elsewhere, refuse_from_elsewhere};
pub use session::{
    COOKIE, LoggedIn, check_password, log_in, log_out, no_cookie, sign_up, start_session,
};
pub use signature::{SignedUploads, WINDOW_SECONDS, check_signature};
pub use viewer::{CSRF_HEADER, Caller, MaybeCaller, MaybeViewer, MaybeWatcher, Viewer, check_csrf};
