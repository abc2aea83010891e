//! The end of an attempt that brought no certificate.

use std::fmt::{self, Display, Formatter, Write};
use std::time::Duration;

use instant_acme::{Error, Problem};

use crate::certificate::CertificateError;
use crate::challenges::ChallengeKind;
use crate::client::{CaError, describe};
use crate::store::StoreError;

/// The longest text about a failure, in characters. Much of it is the authority's.
const TEXT_CHARS_MAX: usize = 2000;

/// A failed attempt: for whom and why, and what can be done.
#[derive(Debug)]
pub(crate) struct Failure {
    cause: Cause,
    text: String,
    /// The name of the problem's type (RFC 8555, 6.7), without its namespace.
    problem: Option<String>,
    pub(crate) retry_after: Option<Duration>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    /// The authority could not validate a name.
    Authorization,
    /// The authority was not reached, or too slow.
    Connection,
    /// The authority said no to a request.
    Refused,
    /// The authority's directory has no such resource.
    Unsupported,
    /// Something here, or a response that makes no sense.
    Other,
}

impl Failure {
    pub(crate) fn other(text: impl Into<String>) -> Self {
        Self::new(Cause::Other, text.into())
    }

    pub(crate) fn order_timeout(limit: Duration) -> Self {
        let text = format!("the authority was not done within {limit:?}");
        Self::new(Cause::Connection, text)
    }

    /// The authority could not validate the name by this challenge.
    pub(crate) fn authorization(
        name: &str,
        kind: Option<ChallengeKind>,
        problem: Option<Problem>,
    ) -> Self {
        let kind = kind.map_or_else(String::new, |kind| format!(" by {}", kind.name()));
        let text = format!("the authority could not validate {name}{kind}");
        Self::new(Cause::Authorization, text).with(problem.map(Box::new))
    }

    fn new(cause: Cause, text: String) -> Self {
        Self {
            cause,
            text,
            problem: None,
            retry_after: None,
        }
    }

    fn with(mut self, problem: Option<Box<Problem>>) -> Self {
        if let Some(problem) = problem {
            self.text.push_str(&describe(&problem));
            let kind = problem.r#type.as_deref();
            self.problem = kind.and_then(|kind| Some(kind.rsplit(':').next()?.to_owned()));
        }
        self
    }

    /// Joins two failures of one attempt, which tried two ways.
    pub(crate) fn and(mut self, second: &Self) -> Self {
        self.text = format!("{}; {}", self.text, second.text);
        self.retry_after = self.retry_after.max(second.retry_after);
        self
    }

    /// True if another kind of challenge may do better.
    pub(crate) fn is_authorization(&self) -> bool {
        self.cause == Cause::Authorization
    }

    /// True if the authority does not know the account, such as after it lost its data.
    pub(crate) fn is_account_unknown(&self) -> bool {
        self.problem.as_deref() == Some("accountDoesNotExist")
    }

    /// True if the authority's directory does not have what was to be asked for.
    pub(crate) fn is_unsupported(&self) -> bool {
        self.cause == Cause::Unsupported
    }

    /// True if an order may have failed for what it says it replaces (RFC 9773, 5). A rejection is
    /// not all: the protocol's library fails too where the authority accepts the order but does
    /// not repeat what it replaces, and where the directory knows nothing of renewals any more.
    pub(crate) fn may_be_for_replacing(&self) -> bool {
        let is_limit = self.problem.as_deref() == Some("rateLimited");
        self.cause != Cause::Connection && !is_limit && !self.is_account_unknown()
    }

    /// Returns what an operator can do, if it is known.
    pub(crate) fn advice(&self) -> Option<&'static str> {
        match self.problem.as_deref() {
            Some("connection" | "tls") => Some(
                "ports 80 and 443 of this machine must be reachable from the internet, and the \
                 A and AAAA records of the name must point to it",
            ),
            Some("dns") => Some("the name needs A or AAAA records that point to this machine"),
            Some("unauthorized" | "incorrectResponse") if self.is_authorization() => Some(
                "another server responds at that name: its A and AAAA records must point to this \
                 machine, and a proxy in front must pass the challenge on",
            ),
            Some("caa") => Some("the CAA records of the name must allow this authority"),
            Some("rateLimited") => Some(
                "a rate limit of the authority is reached; the staging directory has higher ones",
            ),
            Some("rejectedIdentifier") => Some("this authority gives no certificate for the name"),
            Some("externalAccountRequired") => {
                Some("this authority wants an external account: set its key's id and its key")
            }
            Some("invalidContact" | "unsupportedContact") => {
                Some("the authority does not accept the contact: correct or remove it")
            }
            Some("invalidProfile") => Some("the authority does not have this profile"),
            Some("userActionRequired") => Some("visit the page that the authority names"),
            _ if self.text.contains("invalid peer certificate") => Some(
                "the certificate of the authority's own server is not trusted: give the root of a \
                 private authority",
            ),
            _ if self.cause == Cause::Connection => {
                Some("this machine must reach the authority by HTTPS")
            }
            _ => None,
        }
    }
}

/// On one line, since it goes to the log.
impl Display for Failure {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        for sign in self.text.chars().take(TEXT_CHARS_MAX) {
            formatter.write_char(if sign.is_control() { ' ' } else { sign })?;
        }
        Ok(())
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Api(problem) => {
                let text = "the authority refused".to_owned();
                Self::new(Cause::Refused, text).with(Some(Box::new(problem)))
            }
            Error::Timeout(_) => {
                let text = "the authority did not complete the order in time".to_owned();
                Self::new(Cause::Connection, text)
            }
            Error::Unsupported(_) => Self::new(Cause::Unsupported, error.to_string()),
            Error::Other(other) => match other.downcast::<CaError>() {
                Ok(error) => (*error).into(),
                Err(other) => Self::other(other.to_string()),
            },
            other => Self::other(other.to_string()),
        }
    }
}

impl From<CaError> for Failure {
    fn from(error: CaError) -> Self {
        let text = error.to_string();
        let CaError::Refused {
            problem,
            retry_after,
            ..
        } = error
        else {
            return Self::new(Cause::Connection, text);
        };
        let mut failure = Self::new(Cause::Refused, String::new()).with(problem);
        failure.text = text;
        failure.retry_after = retry_after;
        failure
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::other(error.to_string())
    }
}

impl From<CertificateError> for Failure {
    fn from(error: CertificateError) -> Self {
        Self::other(format!("the authority's certificate is of no use: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::StatusCode;

    fn refused(kind: &str, detail: &str, retry_after: Option<u64>) -> Failure {
        let problem = serde_json::json!({
            "type": format!("urn:ietf:params:acme:error:{kind}"),
            "detail": detail,
        });
        let problem = serde_json::from_value(problem).expect("a problem");
        let error = CaError::Refused {
            status: StatusCode::TOO_MANY_REQUESTS,
            problem: Some(Box::new(problem)),
            retry_after: retry_after.map(Duration::from_secs),
        };
        // The way that it takes through the protocol's library.
        Error::from(error).into()
    }

    #[test]
    fn a_rejection_keeps_the_detail_and_the_time_to_wait() {
        let failure = refused("rateLimited", "too many orders", Some(7200));
        assert_eq!(
            failure.to_string(),
            "the authority responded 429 Too Many Requests: too many orders (rateLimited)"
        );
        assert_eq!(failure.retry_after, Some(Duration::from_hours(2)));
        assert!(
            failure
                .advice()
                .is_some_and(|advice| advice.contains("rate limit"))
        );
        assert!(!failure.may_be_for_replacing());
    }

    #[test]
    fn of_two_failures_the_longer_wait_counts() {
        let (first, second) = (refused("caa", "a", Some(5)), refused("dns", "b", Some(9)));
        let both = first.and(&second);
        assert_eq!(both.retry_after, Some(Duration::from_secs(9)));
        assert!(both.to_string().contains("(caa); "), "{both}");
        assert!(both.advice().is_some_and(|advice| advice.contains("CAA")));
    }

    #[test]
    fn a_long_detail_of_many_lines_is_one_line_of_bounded_length() {
        let failure = refused("malformed", &"a\r\n\u{1b}[0m".repeat(1000), None);
        let text = failure.to_string();
        assert_eq!(text.chars().count(), TEXT_CHARS_MAX);
        assert!(!text.contains(char::is_control));
    }

    #[test]
    fn an_order_is_tried_without_what_it_replaces_where_that_may_help() {
        assert!(refused("alreadyReplaced", "", None).may_be_for_replacing());
        let mismatch = Error::Other("replaces field mismatch".into());
        assert!(Failure::from(mismatch).may_be_for_replacing());
        let unsupported = Failure::from(Error::Unsupported("renewal information"));
        assert!(unsupported.may_be_for_replacing() && unsupported.is_unsupported());
        let timeout = Error::from(CaError::Timeout(Duration::from_secs(30)));
        assert!(!Failure::from(timeout).may_be_for_replacing());
        assert!(!refused("accountDoesNotExist", "", None).may_be_for_replacing());
        assert!(refused("accountDoesNotExist", "", None).is_account_unknown());
    }
}
