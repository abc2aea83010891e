use axum::response::{IntoResponse, Redirect, Response};
use http::StatusCode;
use serde::Deserialize;

use crate::Failure;
use crate::auth::{Viewer, check_csrf};
use crate::model::Id;

/// The errors of a form, shown beside its fields together with the values entered.
#[derive(Debug, Default)]
pub(super) struct Trouble {
    status: StatusCode,
    field: Option<&'static str>,
    message: String,
}

impl Trouble {
    /// Takes a failure that the sender of the form can correct; returns any other.
    pub(super) fn of(failure: Failure) -> Result<Self, Failure> {
        let (field, message) = match &failure {
            Failure::Invalid(error) => (Some(error.field), sentence(&error.rule)),
            Failure::Conflict(_)
            | Failure::TooLarge(_)
            | Failure::Unauthenticated(_)
            | Failure::Unsupported(_) => (None, sentence(&failure.to_string())),
            _ => return Err(failure),
        };
        let status = failure.status();
        Ok(Self {
            status,
            field,
            message,
        })
    }

    /// Assigns a failure that names no field to this one.
    pub(super) fn about(self, field: &'static str) -> Self {
        Self {
            field: self.field.or(Some(field)),
            ..self
        }
    }

    pub(super) fn status(&self) -> StatusCode {
        self.status
    }

    pub(super) fn at(&self, field: &str) -> Option<&str> {
        (self.field == Some(field)).then_some(self.message.as_str())
    }

    pub(super) fn general(&self) -> Option<&str> {
        let is_general = self.field.is_none() && !self.message.is_empty();
        is_general.then_some(self.message.as_str())
    }
}

pub(super) fn sentence(text: &str) -> String {
    let mut characters = text.chars();
    let first = characters.next().map(char::to_uppercase);
    let rest = characters.as_str();
    let end = if text.ends_with(['.', '!', '?']) {
        ""
    } else {
        "."
    };
    first
        .map(|first| format!("{first}{rest}{end}"))
        .unwrap_or_default()
}

/// A form that is a button.
#[derive(Deserialize)]
pub(super) struct Press {
    csrf: String,
    #[serde(default)]
    next: String,
}

impl Press {
    /// Checks the CSRF token.
    ///
    /// # Errors
    /// [`Failure::Forbidden`].
    pub(super) fn check(&self, viewer: &Viewer) -> Result<(), Failure> {
        check_csrf(viewer, &self.csrf)
    }

    pub(super) fn next(&self) -> &str {
        &self.next
    }
}

/// Parses an identifier of a path; an invalid one is not found.
pub(super) fn id(text: &str, what: &'static str) -> Result<Id, Failure> {
    text.parse().map_err(|_| Failure::NotFound(what))
}

/// The position at which a list goes on; an invalid one is the beginning.
#[derive(Deserialize)]
pub(super) struct Position {
    before: Option<String>,
    after: Option<String>,
    /// The first one on the page.
    comment: Option<String>,
}

impl Position {
    pub(super) fn before(&self) -> Option<Id> {
        self.before.as_deref()?.parse().ok()
    }

    pub(super) fn after(&self) -> Option<Id> {
        if let Some(first) = &self.comment {
            return first.parse::<Id>().ok()?.before();
        }
        self.after.as_deref()?.parse().ok()
    }
}

/// Redirects to a page of this site, after a form was accepted.
pub(super) fn see(path: &str) -> Response {
    Redirect::to(local(path)).into_response()
}

/// Returns a path of this site, never an address that the link to the form smuggled in.
pub(super) fn local(path: &str) -> &str {
    let is_odd = |character: char| character == '\\' || !character.is_ascii_graphic();
    let is_local = path.starts_with('/') && !path.starts_with("//") && !path.contains(is_odd);
    if is_local { path } else { "/" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::TextError;

    #[test]
    fn only_paths_of_ours_are_gone_to() {
        for path in ["/", "/pictures/1?after=2#comments"] {
            assert_eq!(local(path), path);
        }
        for path in [
            "",
            "//evil.example",
            "/\\evil.example",
            "https://evil.example",
            "/a\r\nb",
            "/\t/evil.example",
        ] {
            assert_eq!(local(path), "/", "{path}");
        }
    }

    #[test]
    fn trouble_stands_beside_its_field() {
        let error = TextError {
            field: "name",
            rule: "a name has letters".to_owned(),
        };
        let trouble = Trouble::of(error.into()).expect("it can be mended");
        assert_eq!(trouble.at("name"), Some("A name has letters."));
        assert_eq!((trouble.at("email"), trouble.general()), (None, None));
        assert_eq!(trouble.status(), StatusCode::UNPROCESSABLE_ENTITY);
    }

    #[test]
    fn what_the_sender_cannot_mend_is_no_trouble_of_the_form() {
        assert!(Trouble::of(Failure::NotFound("album")).is_err());
    }
}
