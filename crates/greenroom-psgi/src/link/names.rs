use std::cell::RefCell;

use greenroom_server::FieldNames;

/// The number of spellings of heads that each link keeps.
const SPELLINGS_MAX: usize = 8;

/// The longest spelling that is kept, in bytes.
const SPELLING_BYTES_MAX: usize = 2_048;

/// The field names of a worker's latest responses, in the application's spelling. Most responses of
/// an application have the same names, which are shared then, and not allocated for each.
#[derive(Debug, Default)]
pub(super) struct Spellings(RefCell<Kept>);

#[derive(Debug, Default)]
struct Kept {
    spellings: Vec<FieldNames>,
    /// The index of the next to be replaced.
    next: usize,
}

impl Spellings {
    pub(super) fn of<'a>(&self, names: impl Iterator<Item = &'a [u8]> + Clone) -> FieldNames {
        let Kept { spellings, next } = &mut *self.0.borrow_mut();
        let known = spellings.iter().find(|known| known.are(names.clone()));
        if let Some(known) = known {
            return known.clone();
        }
        let new = FieldNames::new(names);
        if new.bytes() > SPELLING_BYTES_MAX {
            return new;
        }
        if spellings.len() < SPELLINGS_MAX {
            spellings.push(new.clone());
        } else {
            spellings[*next] = new.clone();
            *next = (*next + 1) % SPELLINGS_MAX;
        }
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_that_were_asked_for_whatever_is_remembered() {
        let spellings = Spellings::default();
        for round in 0..3 {
            for number in 0..SPELLINGS_MAX + 3 {
                let names = [format!("X-{number}"), "ETag".to_owned()];
                let found = spellings.of(names.iter().map(String::as_bytes));
                assert_eq!(found, FieldNames::new(&names), "{round}");
            }
        }
        let long = ["x".repeat(SPELLING_BYTES_MAX)];
        spellings.of(long.iter().map(String::as_bytes));
        let kept = spellings.0.borrow();
        assert_eq!(kept.spellings.len(), SPELLINGS_MAX);
        let is_short = |names: &FieldNames| names.bytes() <= SPELLING_BYTES_MAX;
        assert!(kept.spellings.iter().all(is_short));
    }
}
