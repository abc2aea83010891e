const ROWS: usize = 4;
const COLUMNS: usize = 1_024;
/// Bits of a key that choose a column.
const COLUMN_BITS: usize = COLUMNS.trailing_zeros() as usize;

/// A count-min sketch of time used: 32 KiB, for any number of keys. Keys must be hashes of a
/// function whose collisions no client can choose.
#[derive(Clone, Debug)]
pub(super) struct Sketch(Box<[f64]>);

impl Sketch {
    pub(super) fn new() -> Self {
        Self(vec![0.0; ROWS * COLUMNS].into_boxed_slice())
    }

    /// Returns at least the sum added for this key; more only if it meets other keys in every row.
    pub(super) fn estimate(&self, key: u64) -> f64 {
        let counters = places(key).map(|place| self.0[place]);
        counters.into_iter().fold(f64::INFINITY, f64::min)
    }

    /// Adds to this key; a sum below zero becomes zero.
    pub(super) fn add(&mut self, key: u64, used: f64) {
        for place in places(key) {
            self.0[place] = (self.0[place] + used).max(0.0);
        }
    }

    pub(super) fn scale(&mut self, factor: f64) {
        for used in &mut self.0 {
            *used *= factor;
        }
    }
}

/// Returns the index of the key's counter in each row.
fn places(key: u64) -> [usize; ROWS] {
    // Each row takes bits of its own, so keys that meet in one row hardly meet in the others.
    std::array::from_fn(|row| {
        let bits = (key >> (row * COLUMN_BITS)) & (COLUMNS as u64 - 1);
        row * COLUMNS + usize::try_from(bits).expect("a column fits")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_meet_in_one_row_are_told_apart_by_the_others() {
        let mut sketch = Sketch::new();
        let (flooder, polite) = (0x0123_4567_89ab, 0x0fed_cba9_89ab);
        assert_eq!(places(flooder)[0], places(polite)[0]);
        sketch.add(flooder, 10.0);
        sketch.add(polite, 1.0);
        assert!(sketch.estimate(polite) < 1.5);
        assert!(sketch.estimate(flooder) >= 10.0);
        sketch.scale(0.5);
        assert!(sketch.estimate(flooder) < 6.0);
    }
}
