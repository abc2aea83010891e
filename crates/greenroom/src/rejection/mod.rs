//! Rejections as a server with [`rejection_body`](crate::ServerBuilder::rejection_body) finds them.

mod texts;

pub use texts::{TextRejections, WithTextRejections};

use std::borrow::Cow;

use greenroom_server::RejectionDetail;
use greenroom_stage::StageRejection;
use http::Extensions;

/// Returns the detail of a response that a stage made, or a library that says so.
pub(crate) fn detail(extensions: &Extensions) -> Option<Cow<'static, str>> {
    if let Some(rejection) = extensions.get::<StageRejection>() {
        return Some(rejection.detail.into());
    }
    let detail = extensions.get::<RejectionDetail>();
    detail.map(|detail| detail.0.clone())
}
