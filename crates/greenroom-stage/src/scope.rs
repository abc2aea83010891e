//! Scopes: which things of a process belong to which of its servers.

use std::fmt;
use std::sync::{Arc, OnceLock, Weak};

use parking_lot::Mutex;

use crate::placement::outer;

/// A scope of stages and placed routes, such as a server, for programs that have several: the
/// [status](Self::status) of each shows its own. Clones are the same scope.
///
/// A route belongs to the scope in which it has its first request; a stage to every scope with a
/// route that is placed on it or submits work to it. What belongs to no scope, and the [default
/// stage](crate::Stage::global), is the process's: every scope shows it.
#[derive(Clone, Debug, Default)]
pub struct StatusScope(Arc<Identity>);

impl StatusScope {
    /// Returns the scope of the placed route, or else of the request, that the calling thread works
    /// for; `None` if it works for none, or under another server.
    #[must_use]
    pub fn current() -> Option<Self> {
        outer::scope()?.upgrade()
    }
}

/// Told from others by its address.
#[derive(Debug, Default)]
struct Identity;

/// A scope, without keeping it.
#[derive(Clone, Debug)]
pub(crate) struct WeakScope(Weak<Identity>);

static FINDER: OnceLock<fn() -> Option<StatusScope>> = OnceLock::new();

/// Registers `find`, which returns the scope of the request that the calling thread works for. It
/// is called once for each placed route, when that has its first request, on the loop. For servers
/// of which there may be several in a process. Once for the process; the first registration stays.
pub fn find_scopes_by(find: fn() -> Option<StatusScope>) {
    FINDER.get_or_init(|| find);
}

/// Returns the scope of the request that this thread works for.
pub(crate) fn current() -> Option<WeakScope> {
    let scope = FINDER.get().and_then(|find| find())?;
    Some(WeakScope(Arc::downgrade(&scope.0)))
}

impl WeakScope {
    pub(crate) fn is(&self, scope: &StatusScope) -> bool {
        self.0.as_ptr() == Arc::as_ptr(&scope.0)
    }

    pub(crate) fn upgrade(&self) -> Option<StatusScope> {
        self.0.upgrade().map(StatusScope)
    }
}

/// The things of one kind in a process, with the scopes that claim them. It keeps none of them.
pub struct Listing<T>(Mutex<Vec<Listed<T>>>);

struct Listed<T> {
    thing: Weak<T>,
    scopes: Vec<WeakScope>,
}

impl<T> Listing<T> {
    /// Creates an empty list.
    #[must_use]
    pub const fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    /// Adds a thing, which is the process's until a scope claims it.
    pub fn add(&self, thing: &Arc<T>) {
        let mut listed = self.0.lock();
        listed.retain(|listed| listed.thing.strong_count() > 0);
        listed.push(Listed {
            thing: Arc::downgrade(thing),
            scopes: Vec::new(),
        });
    }

    /// Claims a thing for a scope. Several may claim it; what all of them have dropped is the
    /// process's again.
    pub fn claim(&self, thing: &Arc<T>, scope: &StatusScope) {
        let mut listed = self.0.lock();
        let is_it = |listed: &&mut Listed<T>| listed.thing.as_ptr() == Arc::as_ptr(thing);
        let Some(listed) = listed.iter_mut().find(is_it) else {
            return;
        };
        listed.scopes.retain(|scope| scope.0.strong_count() > 0);
        if !listed.scopes.iter().any(|claiming| claiming.is(scope)) {
            listed.scopes.push(WeakScope(Arc::downgrade(&scope.0)));
        }
    }

    /// Returns the things that still exist, the oldest first.
    pub fn all(&self) -> Vec<Arc<T>> {
        self.matching(|_| true)
    }

    /// Returns those of a scope, and those of no scope.
    pub fn within(&self, scope: &StatusScope) -> Vec<Arc<T>> {
        self.matching(|listed| {
            let mut claiming = listed.scopes.iter();
            let is_claimed = claiming.any(|claiming| claiming.0.strong_count() > 0);
            !is_claimed || listed.scopes.iter().any(|claiming| claiming.is(scope))
        })
    }

    fn matching(&self, is_shown: impl Fn(&Listed<T>) -> bool) -> Vec<Arc<T>> {
        let listed = self.0.lock();
        let shown = listed.iter().filter(|listed| is_shown(listed));
        shown.filter_map(|listed| listed.thing.upgrade()).collect()
    }
}

impl<T> Default for Listing<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> fmt::Debug for Listing<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let length = self.0.lock().len();
        f.debug_struct("Listing")
            .field("length", &length)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_shows_its_own_and_what_no_scope_has() {
        let [ours, theirs] = [StatusScope::default(), StatusScope::default()];
        let [claimed, shared, free] = ["claimed", "shared", "free"].map(Arc::new);
        let listing = Listing::new();
        for thing in [&claimed, &shared, &free] {
            listing.add(thing);
        }
        listing.claim(&claimed, &theirs);
        listing.claim(&shared, &theirs);
        listing.claim(&shared, &ours);
        let shown = |scope: &StatusScope| {
            let shown = listing.within(scope).into_iter();
            shown.map(|thing| *thing).collect::<Vec<_>>()
        };
        assert_eq!(shown(&ours), ["shared", "free"]);
        assert_eq!(shown(&theirs), ["claimed", "shared", "free"]);
        drop((theirs, shared));
        assert_eq!(shown(&ours), ["claimed", "free"]);
        assert_eq!(listing.all().len(), 2);
    }
}
