use std::fmt;

use greenroom_stage::placement::PlacedPath;
use rustc_hash::FxHashMap;

/// The tail that axum appends to the path of a nested service.
const NESTED_TAIL: &str = "/{*__private__axum_nest_tail_param}";

/// The path patterns of a `Router`. axum has no list of them, and keeps the router of a
/// make-service to itself, but its `Debug` shows the paths. They are matched by axum's own matcher,
/// so that a request's route is known before the router is called.
pub(super) struct Patterns {
    /// Those without a parameter, which the matcher prefers to all others: to look for them here
    /// takes a third of its time. The application has chosen them, so a client cannot make them
    /// share a place.
    fixed: FxHashMap<String, PlacedPath>,
    others: matchit::Router<PlacedPath>,
    is_empty: bool,
    /// That of a path which matches no pattern.
    none: PlacedPath,
}

impl Patterns {
    /// Returns the patterns of a router, or of a type that has a router inside and shows it.
    pub(super) fn of_router_in(shown: &impl fmt::Debug) -> Self {
        let (mut fixed, mut others) = (FxHashMap::default(), matchit::Router::new());
        let mut is_empty = true;
        for pattern in paths_in(&format!("{shown:?}")) {
            is_empty = false;
            if !pattern.contains(['{', '}']) {
                let path = PlacedPath::new(&pattern);
                fixed.insert(pattern, path);
                continue;
            }
            let name = pattern.strip_suffix(NESTED_TAIL).unwrap_or(&pattern);
            // Patterns that axum has taken are valid here as well; else the route shares the name
            // of all others.
            let _ = others.insert(pattern.as_str(), PlacedPath::new(name));
        }
        Self {
            fixed,
            others,
            is_empty,
            none: PlacedPath::new(""),
        }
    }

    /// Returns `true` if there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.is_empty
    }

    /// Returns the pattern that a path matches, or else an empty one.
    pub(super) fn route(&self, path: &str) -> &PlacedPath {
        if let Some(fixed) = self.fixed.get(path) {
            return fixed;
        }
        let matched = self.others.at(path);
        matched.map_or(&self.none, |matched| matched.value)
    }
}

impl fmt::Debug for Patterns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Patterns").finish_non_exhaustive()
    }
}

/// Returns the paths in `paths: {RouteId(1): "/hello", RouteId(2): "/user/{id}"}`. The first such
/// list is that of the routes; others are of fallbacks, which have no matched path.
fn paths_in(shown: &str) -> Vec<String> {
    let Some((_, mut rest)) = shown.split_once("paths: {") else {
        return Vec::new();
    };
    let mut paths = Vec::new();
    while let Some(entry) = rest.strip_prefix("RouteId(") {
        let Some((path, after)) = entry.split_once(": \"").and_then(|(_, text)| quoted(text))
        else {
            break;
        };
        paths.push(path);
        rest = after.strip_prefix(", ").unwrap_or(after);
    }
    paths
}

/// Returns the text up to the closing quote, and the rest after it. Of escapes, `\"` and `\\` are
/// undone; others stand for characters that are not in a path.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut path = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((path, &text[at + 1..])),
            '\\' => path.push(characters.next()?.1),
            _ => path.push(character),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use axum::Router;
    use axum::routing::{any, get, post};

    use super::*;

    fn router() -> Router {
        let ok = || async { "ok" };
        Router::new()
            .route("/hello", get(ok))
            .route("/user/{id}", get(ok).post(ok))
            .route("/user/me", get(ok))
            .route("/{first}/fixed", get(ok))
            .route("/files/{*path}", get(ok))
            .route("/a\"b\\c", get(ok))
            .route("/service", axum::routing::any_service(any(ok)))
            .nest("/nested", Router::new().route("/{name}", post(ok)))
            .nest_service("/opaque", Router::new().route("/inside", get(ok)))
            .fallback(ok)
    }

    /// Fails if axum shows its routes in another way.
    #[test]
    fn paths_match_as_they_do_in_the_router() {
        let make = router().into_make_service_with_connect_info::<SocketAddr>();
        for patterns in [
            Patterns::of_router_in(&router()),
            Patterns::of_router_in(&make),
        ] {
            let named = [
                ("/hello", "/hello"),
                ("/user/42", "/user/{id}"),
                ("/user/me", "/user/me"),
                ("/user/fixed", "/user/{id}"),
                ("/other/fixed", "/{first}/fixed"),
                ("/files/a/b.txt", "/files/{*path}"),
                ("/a\"b\\c", "/a\"b\\c"),
                ("/service", "/service"),
                ("/nested/x", "/nested/{name}"),
                ("/opaque/inside", "/opaque"),
                ("/opaque", "/opaque"),
                ("/nowhere", ""),
                ("/hello/", ""),
            ];
            for (path, name) in named {
                assert_eq!(patterns.route(path).as_str(), name, "{path}");
            }
        }
    }

    #[test]
    fn a_router_without_routes_has_none() {
        let none = Patterns::of_router_in(&Router::<()>::new());
        assert_eq!((none.route("/").as_str(), none.is_empty()), ("", true));
    }

    #[test]
    fn what_shows_nothing_or_half_of_it_is_no_fault() {
        for shown in [
            "",
            "paths: {",
            "paths: {RouteId(1)",
            "paths: {RouteId(1): \"/x",
        ] {
            assert!(paths_in(shown).is_empty(), "{shown}");
        }
        assert_eq!(paths_in("paths: {RouteId(1): \"/x\", Other"), ["/x"]);
    }
}
