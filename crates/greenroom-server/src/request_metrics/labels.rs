//! Labels by the semantic conventions of OpenTelemetry, from sets that clients cannot make larger.

use std::hash::{Hash, Hasher};

use http::{Method, Version};

/// The value of a label for all that are not told apart.
pub(super) const OTHER: &str = "_OTHER";

/// Methods that are told apart: those of RFC 9110 and PATCH (RFC 5789).
pub(super) const METHODS: [&str; 10] = [
    "CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE", OTHER,
];

const VERSIONS: [(Version, &str); 4] = [
    (Version::HTTP_10, "1.0"),
    (Version::HTTP_11, "1.1"),
    (Version::HTTP_2, "2"),
    (Version::HTTP_3, "3"),
];

/// The labels of a request. Routes are compared by their address, as each is leaked once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Labels {
    pub(crate) route: Option<&'static str>,
    /// 0 if there was no response.
    pub(crate) status: u16,
    method: u8,
    version: u8,
    is_tls: bool,
}

impl Labels {
    pub(super) fn new(method: &Method, version: Version, is_tls: bool) -> Self {
        let version = VERSIONS.iter().position(|(known, _)| *known == version);
        Self {
            route: None,
            status: 0,
            method: method_index(method),
            version: u8::try_from(version.unwrap_or(1)).unwrap_or_default(),
            is_tls,
        }
    }

    /// Keeps the status, and one value for all else.
    pub(super) fn by_status(self) -> Self {
        Self {
            route: Some(OTHER),
            method: OTHER_METHOD,
            version: 1,
            is_tls: false,
            ..self
        }
    }

    /// Returns the number of its method and scheme, which are told apart for active requests.
    pub(super) fn active_index(&self) -> usize {
        2 * usize::from(self.method) + usize::from(self.is_tls)
    }

    pub(super) fn scheme(&self) -> &'static str {
        scheme(self.is_tls)
    }

    pub(super) fn method(&self) -> &'static str {
        METHODS[usize::from(self.method)]
    }

    pub(super) fn version(&self) -> &'static str {
        VERSIONS[usize::from(self.version)].1
    }

    fn key(&self) -> (usize, u64) {
        let route = self.route.map_or(0, |route| route.as_ptr().addr());
        let rest = u64::from(self.status) << 32
            | u64::from(self.method) << 16
            | u64::from(self.version) << 8
            | u64::from(self.is_tls);
        (route, rest)
    }
}

impl PartialEq for Labels {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Labels {}

impl Hash for Labels {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.key().hash(hasher);
    }
}

/// The index of `OTHER` in `METHODS`.
const OTHER_METHOD: u8 = 9;

pub(super) fn scheme(is_tls: bool) -> &'static str {
    if is_tls { "https" } else { "http" }
}

fn method_index(method: &Method) -> u8 {
    match *method {
        Method::CONNECT => 0,
        Method::DELETE => 1,
        Method::GET => 2,
        Method::HEAD => 3,
        Method::OPTIONS => 4,
        Method::PATCH => 5,
        Method::POST => 6,
        Method::PUT => 7,
        Method::TRACE => 8,
        _ => OTHER_METHOD,
    }
}
