//! Fair queueing by route and client: the flow that has used least goes next.
//!
//! A *flow* is the work of one client on one route. Each unit of time that its work uses is charged
//! to its route and to its client, and fades by half each [`HALF_LIFE`]. The flow whose route and
//! client have used least, both together, goes next; within a flow, first in, first out. So a flood
//! of one client delays that client, a flood on one route that route, and a crowd of clients on one
//! route (log-ins from everywhere) not the routes beside it. Nothing is charged by the number of
//! requests: one that uses a second weighs as much as a thousand that use a millisecond.
//!
//! Known algorithms, and why none of them alone:
//!
//! - Start-time fair queueing (Goyal, Vin, Cheng 1996) and deficit round-robin are fair between
//!   flows of one kind. Flat flows of route x client give a route with 200 clients 200 shares;
//!   routes first and clients below give a crawler of 100 routes 100 shares. The sum of two usages
//!   has neither fault: between any two contenders it ends when both have used the same.
//! - SFQ and FQ-CoDel hash flows into buckets, and Kubernetes' API Priority and Fairness deals each
//!   flow several queues, so that one that floods shares few of them with any other. Here clients
//!   are counted in a count-min sketch (Cormode, Muthukrishnan 2005): four rows of 1,024 counters,
//!   the smallest of which is a client's. Memory stays the same however many clients come, and a
//!   client is taken for a flooder only if it meets one in all four rows.
//!
//! Nothing here knows a lock or a thread, and the caller passes the time.

mod queue;
mod shares;
mod sketch;
mod usage;

pub use queue::{FairQueue, Turn};
pub(crate) use queue::{LOOKED_AT_MAX, SetAside, of_all};
pub use shares::{SHARES_MAX, SHARES_SHOWN_MAX, SHOWN_HALF_LIFE, ShareRow, ShareShown, Shares};
pub use usage::{EXPECTED_OF_NEW, Flow, HALF_LIFE, ROUTES_MAX, STATED_MAX, Usage};
