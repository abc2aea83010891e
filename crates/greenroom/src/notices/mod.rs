//! Notices between a handler and its connection, ahead of its response.

mod draining;
mod informational;

pub use draining::Draining;
pub use informational::Informational;

use greenroom_server::RequestHandle;
use http::Extensions;

/// Has handlers on a stage find the handle of their request, which is on its loop's thread
/// otherwise.
pub(crate) fn carry_to_stages() {
    greenroom_stage::before_stages(insert_handle);
}

fn insert_handle(extensions: &mut Extensions) {
    if extensions.get::<RequestHandle>().is_none()
        && let Some(handle) = RequestHandle::current()
    {
        extensions.insert(handle);
    }
}
