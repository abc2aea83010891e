//! The process' limit on open descriptors.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the process' soft limit on open descriptors to the hard one; a failure is logged.
///
/// A server does so when it [binds](crate::ServerBuilder::bind); a program that opens many
/// connections itself may have done so before.
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
