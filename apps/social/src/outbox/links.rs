//! Pages that mails and notifications lead to.

use url::Url;

use crate::model::Id;

/// A picture's page.
pub(super) fn picture(base: &Url, picture: Id) -> Url {
    page(base, &["pictures", &picture.to_string()])
}

/// Where a user chooses what mails they get.
pub(super) fn settings(base: &Url) -> Url {
    page(base, &["settings"])
}

fn page(base: &Url, path: &[&str]) -> Url {
    let mut page = base.clone();
    if let Ok(mut segments) = page.path_segments_mut() {
        segments.pop_if_empty().extend(path);
    }
    page
}
