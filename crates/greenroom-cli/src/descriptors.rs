//! The process' limit on open descriptors.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the soft limit to the hard one, as Go programs do.
///
/// The soft limit is low only for programs that use `select`, which cannot count beyond 1,024;
/// this one does not, and each connection takes a descriptor.
pub(crate) fn raise_limit() {
    let before = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: before.maximum,
        maximum: before.maximum,
    };
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) => tracing::debug!(
            from = before.current,
            to = before.maximum,
            "raised the limit on open descriptors"
        ),
        Err(error) => tracing::warn!(
            limit = before.current,
            %error,
            "the limit on open descriptors could not be raised"
        ),
    }
}
