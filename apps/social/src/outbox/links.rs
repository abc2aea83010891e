//! Addresses of the pages that mails and notifications link to.

use url::Url;

use crate::model::Id;

/// Returns the address of a picture's page.
pub(super) fn picture(base: &Url, picture: Id) -> Url {
    page(base, &["pictures", &picture.to_string()])
}

/// Returns the address of the page of mail settings.
pub(super) fn settings(base: &Url) -> Url {
    page(base, &["settings"])
}

/// Returns the address of the page that sets another password with a token.
pub(super) fn reset_password(base: &Url, token: &str) -> Url {
    with_token(page(base, &["reset-password"]), token)
}

/// Returns the address of the page that confirms an email address with a token.
pub(super) fn confirm_email(base: &Url, token: &str) -> Url {
    with_token(page(base, &["confirm-email"]), token)
}

fn with_token(mut page: Url, token: &str) -> Url {
    page.query_pairs_mut().append_pair("token", token);
    page
}

fn page(base: &Url, path: &[&str]) -> Url {
    let mut page = base.clone();
    if let Ok(mut segments) = page.path_segments_mut() {
        segments.pop_if_empty().extend(path);
    }
    page
}
