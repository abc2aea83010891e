use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use tokio::sync::watch;

use super::Line;
use crate::drain::Phase;

thread_local! {
    static CURRENT: RefCell<Option<Current>> = const { RefCell::new(None) };
}

/// The request whose handler is polled on this thread.
struct Current {
    tell: Rc<watch::Sender<Phase>>,
    line: Option<Arc<Line>>,
    takes_informational: bool,
}

/// Calls `poll`, which must not unwind, as the handler of a request. The connection lends its line
/// meanwhile, and has one afterwards if the handler asked for it.
pub(crate) fn during<T>(
    tell: &Rc<watch::Sender<Phase>>,
    line: &mut Option<Arc<Line>>,
    takes_informational: bool,
    poll: impl FnOnce() -> T,
) -> T {
    let outer = CURRENT.replace(Some(Current {
        tell: Rc::clone(tell),
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
        let (tell, takes_informational) = (&current.tell, current.takes_informational);
        let make = || Line::new(tell.subscribe(), takes_informational);
        Some(Arc::clone(current.line.get_or_insert_with(make)))
    })
}
