//! `/fib/{n}`: pure computation, from microseconds to tens of milliseconds by the choice of `n`.
//!
//! It computes inside the async handler on purpose, as beginners do. That would hold up every other
//! request on the same loop, if the server had not placed the route elsewhere.

use std::mem;

use axum::extract::Path;
use num_bigint::BigUint;

use super::number::{self, Rejection};

pub(super) const N_MAX: u64 = 100_000;

pub(super) async fn respond(Path(n): Path<String>) -> Result<String, Rejection> {
    let n = number::parse(&n, N_MAX)?;
    let mut text = decimal(n);
    text.push('\n');
    Ok(text)
}

/// Returns the n-th Fibonacci number in decimal digits.
pub(super) fn decimal(n: u64) -> String {
    fibonacci(n).to_string()
}

fn fibonacci(n: u64) -> BigUint {
    let mut current = BigUint::from(0_u8);
    let mut next = BigUint::from(1_u8);
    for _ in 0..n {
        current += &next;
        mem::swap(&mut current, &mut next);
    }
    current
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequence_starts_with_0_and_1() {
        let first: Vec<String> = (0..10).map(|n| fibonacci(n).to_string()).collect();
        assert_eq!(first.join(" "), "0 1 1 2 3 5 8 13 21 34");
    }

    #[test]
    fn hundredth_number_is_beyond_64_bits() {
        assert_eq!(fibonacci(100).to_string(), "354224848179261915075");
    }
}
