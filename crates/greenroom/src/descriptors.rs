//! The process' limit on open descriptors.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the process' soft limit on open descriptors to the hard one, as Go programs do; what fails is told to the log.
/// Call it before a [`Server`](crate::Server) is bound: the default limit on connections is a part of it.
///
/// The soft limit is low only for programs that use `select`, which cannot count beyond 1,024;
/// this one does not, and each connection takes a descriptor.
pub fn raise_descriptor_limit() {
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
