use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use super::{Lent, Line};

thread_local! {
    static CURRENT: RefCell<Option<Current>> = const { RefCell::new(None) };
}

/// The request whose handler is polled on this thread.
struct Current {
    lent: Rc<Lent>,
    line: Option<Arc<Line>>,
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
    let outer = CURRENT.replace(Some(Current {
        lent: Rc::clone(lent),
        line: line.take(),
        takes_informational,
    }));
    let polled = poll();
    *line = CURRENT.replace(outer).and_then(|current| current.line);
    polled
}

/// The line of the connection whose handler is polled on this thread.
pub(super) fn line() -> Option<Arc<Line>> {
    CURRENT.with_borrow_mut(|current| {
        let current = current.as_mut()?;
        let (lent, takes_informational) = (&current.lent, current.takes_informational);
        let make = || Line::new(lent, takes_informational);
        Some(Arc::clone(current.line.get_or_insert_with(make)))
    })
}
