//! The search for a number that keeps a server computing for a given time.

use bench_kit::process::Server;
use serde::Serialize;

use super::Context;

/// The largest number that every server accepts.
const N_MAX: f64 = 100_000.0;
const N_MIN: f64 = 10.0;
const FIRST_N: f64 = 10_000.0;
const REQUESTS: u64 = 15;
/// Each begins with the number that the one before found.
const STEPS: usize = 3;

/// A computation of a certain length.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Heavy {
    n: f64,
    /// The shortest time of the last step's requests, one after the other: other programs do not
    /// shorten it.
    pub(super) alone_ms: f64,
}

impl Heavy {
    /// The `/fib/{n}` that takes this server about so long while it is idle; the longest there is,
    /// if none does.
    pub(super) fn of(context: &Context, server: &Server, millis: f64) -> anyhow::Result<Self> {
        let mut heavy = Self::of_n(context, server, FIRST_N)?;
        for _ in 0..STEPS {
            heavy = Self::of_n(context, server, heavy.n_for(millis))?;
        }
        Ok(heavy)
    }

    fn of_n(context: &Context, server: &Server, n: f64) -> anyhow::Result<Self> {
        let bench = context.bench()?.flags(["-k"]).connections(REQUESTS, 1);
        let report = bench.run_well(&server.url(&path("fib", n)))?;
        Ok(Self {
            n,
            alone_ms: report.latency().min_ms,
        })
    }

    pub(super) fn fib(self) -> String {
        path("fib", self.n)
    }

    /// The same on the route of pages, of so many milliseconds.
    pub(super) fn page(self, millis: f64) -> String {
        path("page", self.n_for(millis))
    }

    /// As many additions of numbers with as many digits: the time grows with the square.
    fn n_for(self, millis: f64) -> f64 {
        let n = self.n * (millis / self.alone_ms).sqrt();
        n.clamp(N_MIN, N_MAX).round()
    }
}

fn path(route: &str, n: f64) -> String {
    format!("/{route}/{n:.0}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_times_as_long_is_twice_the_number() {
        let heavy = Heavy {
            n: 10_000.0,
            alone_ms: 1.0,
        };
        assert_eq!(heavy.fib(), "/fib/10000");
        assert_eq!(heavy.page(4.0), "/page/20000");
        assert_eq!(heavy.page(1_000.0), "/page/100000");
    }
}
