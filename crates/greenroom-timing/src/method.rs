/// The methods that are told apart.
const METHODS: [&str; 9] = [
    "CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE",
];

/// Returns a method that names and attributes of spans have as it is: those of RFC 9110, and PATCH
/// (RFC 5789). `None` for all others, of which a client could make up any number; OpenTelemetry's
/// semantic conventions for HTTP have `_OTHER` as attribute for them, and `HTTP` in names.
#[must_use]
pub fn known_method(method: &str) -> Option<&'static str> {
    METHODS.into_iter().find(|known| *known == method)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_are_told_apart_by_case() {
        assert_eq!(known_method("PATCH"), Some("PATCH"));
        assert_eq!(known_method("get"), None);
        assert_eq!(known_method("PROPFIND"), None);
    }
}
