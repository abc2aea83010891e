use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::connection::{Link, State};
use super::driver;
use crate::pool::Run;

/// The key of a link: a pool's id and a worker's key.
type Name = (u64, u32);

thread_local! {
    /// The links of this thread's loop.
    static LINKS: RefCell<FxHashMap<Name, Rc<Link>>> = RefCell::default();
}

/// Returns this loop's link to the worker of a run, and opens it if there is none.
pub(super) fn link_to(run: &Run) -> Rc<Link> {
    let name = (run.pool().id(), run.worker().key);
    LINKS.with_borrow_mut(|links| match links.get(&name) {
        Some(link) if link.state.get() != State::Ended => Rc::clone(link),
        _ => {
            let (pool, worker) = (Arc::clone(run.pool()), Arc::clone(run.worker()));
            let link = Rc::new(Link::new(pool, worker));
            links.insert(name, Rc::clone(&link));
            tokio::task::spawn_local(keep(Rc::clone(&link)));
            link
        }
    })
}

/// Drives a link to its end.
async fn keep(link: Rc<Link>) {
    driver::drive(&link).await;
    forget(&link);
}

/// Removes a link that has ended, if no other has taken its place.
fn forget(link: &Rc<Link>) {
    let name = (link.pool.id(), link.worker.key);
    LINKS.with_borrow_mut(|links| {
        if links
            .get(&name)
            .is_some_and(|known| Rc::ptr_eq(known, link))
        {
            links.remove(&name);
        }
    });
}
