const ROWS: usize = 4;
const COLUMNS: usize = 1_024;
/// Bits of a key that choose a column.
const COLUMN_BITS: usize = COLUMNS.trailing_zeros() as usize;

/// A count-min sketch of time used: 32 KiB, whatever the number of keys. Keys must be hashes, of a
/// hash function whose collisions nobody can choose.
#[derive(Clone, Debug)]
pub(super) struct Sketch(Box<[[f64; COLUMNS]]>);

impl Sketch {
    pub(super) fn new() -> Self {
        Self(vec![[0.0; COLUMNS]; ROWS].into_boxed_slice())
    }

    /// At least what was added for this key; more only if it meets others in every row.
    pub(super) fn estimate(&self, key: u64) -> f64 {
        let columns = self.0.iter().zip(columns(key));
        columns.fold(f64::INFINITY, |least, (row, column)| least.min(row[column]))
    }

    /// Adds to this key; what falls below zero is zero.
    pub(super) fn add(&mut self, key: u64, used: f64) {
        for (row, column) in self.0.iter_mut().zip(columns(key)) {
            row[column] = (row[column] + used).max(0.0);
        }
    }

    pub(super) fn scale(&mut self, factor: f64) {
        for used in self.0.as_flattened_mut() {
            *used *= factor;
        }
    }
}

fn columns(key: u64) -> [usize; ROWS] {
    std::array::from_fn(|row| {
        let bits = key >> (row * COLUMN_BITS);
        usize::try_from(bits & (COLUMNS as u64 - 1)).expect("a column fits")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_meet_in_one_row_are_told_apart_by_the_others() {
        let mut sketch = Sketch::new();
        let (flooder, polite) = (0x0123_4567_89ab, 0x0fed_cba9_89ab);
        assert_eq!(columns(flooder)[0], columns(polite)[0]);
        sketch.add(flooder, 10.0);
        sketch.add(polite, 1.0);
        assert!(sketch.estimate(polite) < 1.5);
        assert!(sketch.estimate(flooder) >= 10.0);
        sketch.scale(0.5);
        assert!(sketch.estimate(flooder) < 6.0);
    }
}
