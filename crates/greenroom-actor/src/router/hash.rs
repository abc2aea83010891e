//! Rendezvous hashing: a key belongs to the routee that scores highest for it. When a routee goes,
//! only its own keys move; when one comes, only the keys that move to it.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hash};

/// Hashes a key. The same key gives the same number in every process.
pub(super) fn of_key(key: impl Hash) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(key)
}

/// Returns the score of the routee at this place for this key.
pub(super) fn score(key: u64, place: u64) -> u64 {
    mix(key ^ mix(place))
}

/// Mixes the bits, by the finalizer of `SplitMix64`: every bit of the input changes about half of
/// the output's.
fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(key: u64, routees: &[u64]) -> u64 {
        let owner = routees
            .iter()
            .max_by_key(|routee| score(of_key(key), **routee));
        *owner.expect("there are routees")
    }

    #[test]
    fn a_new_routee_takes_its_share_and_nothing_else_moves() {
        let (before, after): (Vec<_>, Vec<_>) = ((1..=4).collect(), (1..=5).collect());
        let moved: Vec<_> = (0..10_000)
            .filter(|key| owner(*key, &before) != owner(*key, &after))
            .collect();
        assert!(moved.iter().all(|key| owner(*key, &after) == 5));
        // A fifth of the keys, give or take what chance does.
        assert!((1_800..2_200).contains(&moved.len()), "{}", moved.len());
    }

    #[test]
    fn keys_are_spread_evenly() {
        let routees: Vec<_> = (1..=8).collect();
        let mut counts = [0; 9];
        for key in 0..8_000_u64 {
            counts[usize::try_from(owner(key, &routees)).expect("it is up to 8")] += 1;
        }
        assert!(
            counts[1..].iter().all(|count| (900..1_100).contains(count)),
            "{counts:?}"
        );
    }
}
