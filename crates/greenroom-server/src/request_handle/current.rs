use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use scoped_tls::scoped_thread_local;

use super::{Lent, Line};

// The request whose handler is polled on this thread.
scoped_thread_local!(static CURRENT: Current);

struct Current {
    lent: Rc<Lent>,
    line: RefCell<Option<Arc<Line>>>,
    takes_informational: bool,
}

/// Calls `poll`, which must not unwind, as the handler of a request. The connection lends its line
/// meanwhile, and has one afterwards if the handler asked for it.
pub(crate) fn during<T>(
    lent: &Rc<Lent>,
    line: &mut Option<Arc<Line>>,
    takes_informational: bool,
    poll: impl FnOnce() -> T,
) -> T {
    let current = Current {
        lent: Rc::clone(lent),
        line: RefCell::new(line.take()),
        takes_informational,
    };
    let polled = CURRENT.set(&current, poll);
    *line = current.line.into_inner();
    polled
}

/// The line of the connection whose handler is polled on this thread.
pub(super) fn line() -> Option<Arc<Line>> {
    CURRENT.is_set().then(|| {
        CURRENT.with(|current| {
            let make = || Line::new(&current.lent, current.takes_informational);
            Arc::clone(current.line.borrow_mut().get_or_insert_with(make))
        })
    })
}
