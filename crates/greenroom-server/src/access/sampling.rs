use std::cell::Cell;

use super::Telling;
use super::line::Wanted;

/// The requests that an access log keeps of those that neither fail nor are slow. A loop draws for
/// each: a count would take always the same one of requests that come in a fixed order.
#[derive(Debug, Default)]
pub(super) struct Sampling(Cell<u64>);

impl Sampling {
    pub(super) fn next(&self, telling: &Telling) -> Wanted {
        if !telling.access_log {
            return Wanted::No;
        }
        let sample = telling.access_log_sample;
        if self.is_drawn(sample) {
            Wanted::Yes(sample)
        } else {
            Wanted::IfTelling
        }
    }

    /// Draws one of so many.
    pub(super) fn is_drawn(&self, one_of: u32) -> bool {
        one_of <= 1 || self.draw().is_multiple_of(u64::from(one_of))
    }

    /// Draws a number by splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number
    /// generators, OOPSLA 2014), from a count.
    fn draw(&self) -> u64 {
        let state = self.0.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.0.set(state);
        mixed(state)
    }
}

/// Returns a number that does not show its order.
pub(super) fn mixed(state: u64) -> u64 {
    let state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    state ^ (state >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_so_many_is_kept() {
        let sampling = Sampling::default();
        let telling = Telling {
            access_log: true,
            access_log_sample: 100,
            ..Telling::default()
        };
        let lines = (0..100_000).filter(|_| sampling.next(&telling) == Wanted::Yes(100));
        let count = lines.count();
        assert!((900..1_100).contains(&count), "{count}");
    }
}
