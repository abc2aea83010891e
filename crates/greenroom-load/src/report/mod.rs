//! The reports of a run: texts, tables and files, all written from one
//! [`Measurement`](crate::run::Measurement).
//!
//! | module | output | time unit |
//! |---|---|---|
//! | [`text`] | ab's report, with further sections | ms |
//! | [`json`] | everything, as one versioned object | ns and s, in the names |
//! | [`csv`] | the time line, a row for each point and stream | ms and s, in the header |
//! | [`percentages`] | ab's `-e`: the time of each whole percentage | ms |
//! | [`gnuplot`] | ab's `-g`: each request | ms |
//! | [`hdr`] | an `HdrHistogram` log: a histogram for each point and stream | ns |
//! | [`progress`] | a line for each interval | s and ms |
//! | [`gate`] | the bounds for CI that are broken | any |
//!
//! # Meaning of the numbers
//!
//! - **Complete requests**: requests that got a response in full, with any status.
//! - **Failed requests**: requests without a response, and responses of another length than the
//!   first one's (unless lengths may vary).
//! - **Requests per second**: complete requests by the time from the run's begin until the stream's
//!   last request ended; of one that failed, until the end of sending at most.
//! - **Time per request (mean)**: in a closed loop requests in flight at once times the time of the
//!   run, by complete requests; in an open loop the mean latency.
//! - **Connect**: time to establish a connection, with TLS; 0 for a request on a connection that
//!   was there before.
//! - **Processing, service time**: from the sending of a request to the end of its response.
//! - **Waiting**: from the sending of a request to the first byte of its response.
//! - **Total, latency, percentages**: from the *intended* time to the end of the response. The
//!   intended time is the schedule's in an open loop, else the begin of connecting or sending. A
//!   request that timed out counts with the time that it had lasted, so that giving up early makes
//!   nothing look faster.
//! - **due**: open loop: requests whose time on the schedule came.
//! - **sent late**: sent more than 1 ms after the intended time: for want of a free connection (the
//!   server's doing, or the bound on connections), or because this program was late (then distrust
//!   the latencies).
//! - **own delay**: open loop: from a request's intended time, or from when a connection was free
//!   for it, until this program sent it.
//! - **never sent, missed**: due, but not sent before the schedule's end. More than 0.1 % gets a
//!   warning.
//! - **asked rate, answered rate**: requests due (closed loop: sent), and responses of any status,
//!   per second.
//! - **good, bad**: responses with a status below 400, and the others.
//! - **CPU us/request**: CPU time of all threads or processes by the requests that ended and were
//!   sent, of all streams.
//!
//! Times come from histograms that know each to 0.1 %, single points of the time line to 1 %.

pub mod csv;
pub mod gate;
pub mod gnuplot;
pub mod hdr;
pub mod json;
pub mod percentages;
pub mod progress;
mod quantity;
#[cfg(test)]
mod sample;
pub mod text;
