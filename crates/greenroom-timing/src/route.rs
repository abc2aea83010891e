use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

thread_local! {
    static TOLD: Cell<Option<&'static str>> = const { Cell::new(None) };
}

/// Tells the server whose request is handled on this thread which route it has, such as
/// `/users/{id}`. Of several, the last one counts: the innermost. Does nothing if nobody asks; one
/// store for each request.
pub fn tell_route(route: &'static str) {
    TOLD.set(Some(route));
}

/// Runs a step of a handler, and returns the route that was told meanwhile.
pub fn during<T>(step: impl FnOnce() -> T) -> (T, Option<&'static str>) {
    TOLD.set(None);
    let result = step();
    (result, TOLD.take())
}

/// Returns the one copy of a route's path that the process keeps. It is kept for good, as counts
/// outlive routes: the application names its routes, so there are few.
#[must_use]
pub fn interned(path: &str) -> &'static str {
    static PATHS: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    // Nothing in between can panic and leave it half done.
    let mut paths = PATHS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = paths.get(path) {
        return known;
    }
    let path = Box::leak(path.into());
    paths.insert(path);
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_route_that_was_told_meanwhile_counts() {
        tell_route("/before");
        assert_eq!(during(|| 1), (1, None));
        let nested = || {
            tell_route("/outer/{*rest}");
            tell_route("/outer/{id}");
        };
        assert_eq!(during(nested).1, Some("/outer/{id}"));
        assert_eq!(during(|| ()).1, None);
    }

    #[test]
    fn a_path_is_kept_once() {
        let [first, second] = [0, 1].map(|_| interned(&String::from("/users/{id}")));
        assert_eq!(first, "/users/{id}");
        assert_eq!(first.as_ptr(), second.as_ptr());
    }
}
