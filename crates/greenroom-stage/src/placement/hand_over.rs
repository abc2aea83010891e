use std::sync::OnceLock;

use http::Extensions;

static BEFORE: OnceLock<fn(&mut Extensions)> = OnceLock::new();

/// Registers `prepare`, to be called with the extensions of each request that a placement is about
/// to send to a stage, on the thread that sends it. For servers whose handlers find state by the
/// thread that they run on: it travels in the extensions. Once for the process; the first
/// registration stays.
pub fn before_stages(prepare: fn(&mut Extensions)) {
    BEFORE.get_or_init(|| prepare);
}

pub(super) fn prepare(extensions: &mut Extensions) {
    if let Some(prepare) = BEFORE.get() {
        prepare(extensions);
    }
}
