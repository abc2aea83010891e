//! The limit on the threads of one client: however many block, others find some.

use rustc_hash::FxHashMap;

use super::scheduler::Bounds;

/// The part of the threads that others leave which a client leaves, too: an eighth.
const LEFT_DIVISOR: usize = 8;

/// Returns the clients that are given no more threads for now, of those that hold these `working`
/// threads, computing or blocked.
///
/// A client is given one more while it holds fewer than seven times as many as are free. So by
/// itself it has seven eighths of all; the next one that is as greedy has seven eighths of the
/// rest, and so on: a dynamic threshold, by which switches share their buffers (Choudhury, Hahne
/// 1998). Nothing has to be known of who else may come. As many as may compute are given to
/// anybody, or processors would be idle.
///
/// # Worked numbers
///
/// Of 576 threads one client by itself has 504; after it the next has 63, and the third 8. Of 20
/// threads one has 18; of fewer than 8 it has all.
pub(crate) fn clients_at_limit(
    clients: impl Iterator<Item = u64>,
    working: usize,
    bounds: Bounds,
) -> Vec<u64> {
    let free = bounds.threads_max.saturating_sub(working).max(1);
    let most = (free * (LEFT_DIVISOR - 1)).max(bounds.compute_max);
    // So a stage that has threads enough pays for no more than this.
    if working < most || bounds.threads_max == bounds.compute_max {
        return Vec::new();
    }
    let mut held = FxHashMap::<u64, usize>::default();
    for client in clients {
        *held.entry(client).or_default() += 1;
    }
    held.retain(|_, threads| *threads >= most);
    held.into_keys().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bounds(compute_max: usize, threads_max: usize) -> Bounds {
        Bounds {
            base: 1,
            compute_max,
            threads_max,
        }
    }

    /// Returns how many threads each client has if all are as greedy, one after the other.
    fn given<const N: usize>(bounds: Bounds) -> [usize; N] {
        let mut held = Vec::new();
        std::array::from_fn(|client| {
            let client = client as u64;
            let before = held.len();
            while held.len() < bounds.threads_max
                && !clients_at_limit(held.iter().copied(), held.len(), bounds).contains(&client)
            {
                held.push(client);
            }
            held.len() - before
        })
    }

    #[test]
    fn each_leaves_an_eighth_of_what_others_leave() {
        assert_eq!(given(bounds(2, 576)), [504, 63, 8, 1, 0]);
        assert_eq!(given(bounds(1, 20)), [18, 2, 0]);
        assert_eq!(given(bounds(1, 7)), [7, 0]);
        assert_eq!(given(bounds(1, 1)), [1, 0]);
    }

    #[test]
    fn as_many_as_may_compute_are_for_anybody() {
        assert_eq!(given(bounds(16, 16)), [16, 0]);
        assert_eq!(given(bounds(16, 17)), [16, 1]);
        assert_eq!(given(bounds(64, 66)), [64, 2]);
    }

    proptest! {
        #[test]
        fn who_has_fewer_is_given_one_sooner(
            compute_max in 1..8_usize,
            blocking in 0..64_usize,
            clients in prop::collection::vec(0..4_u64, 0..72),
        ) {
            let bounds = bounds(compute_max, compute_max + blocking);
            let working = clients.len().min(bounds.threads_max);
            let clients = &clients[..working];
            let at_limit = clients_at_limit(clients.iter().copied(), working, bounds);
            let held = |client| clients.iter().filter(|other| **other == client).count();
            for client in 0..4 {
                let is_at_limit = at_limit.contains(&client);
                prop_assert!(!is_at_limit || held(client) >= compute_max);
                for other in 0..4 {
                    let has_fewer = held(client) <= held(other);
                    prop_assert!(!(has_fewer && is_at_limit) || at_limit.contains(&other));
                }
            }
        }
    }
}
