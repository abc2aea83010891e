use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;

/// The number of segments that are told apart. Twice as many as an application mostly has, because
/// a client can make them up.
const SEGMENTS_MAX: usize = 128;
/// The number of slots that are probed for one.
const PROBES_MAX: usize = 8;
/// The longest segment that is kept.
const SEGMENT_BYTES_MAX: usize = 64;

/// The first segments of the paths that came: the last resort where nothing is known of a service.
/// They are found without a lock; a segment that finds no slot shares the empty name.
#[derive(Debug)]
pub(super) struct Segments {
    slots: Box<[OnceLock<Box<str>>]>,
    /// Keyed, or a client could choose segments that take each other's slots.
    hashes: RandomState,
}

impl Default for Segments {
    fn default() -> Self {
        Self {
            slots: (0..SEGMENTS_MAX).map(|_| OnceLock::new()).collect(),
            hashes: RandomState::new(),
        }
    }
}

impl Segments {
    pub(super) fn name(&self, path: &str) -> &str {
        let first = first_segment(path);
        if first.len() > SEGMENT_BYTES_MAX {
            return "";
        }
        let hash = self.hashes.hash_one(first);
        let start = usize::try_from(hash % SEGMENTS_MAX as u64).unwrap_or_default();
        for probe in 0..PROBES_MAX {
            let slot = &self.slots[(start + probe) % SEGMENTS_MAX];
            // Taken for good by the first segment that comes, so it needs no lock.
            let kept = slot.get_or_init(|| first.into());
            if **kept == *first {
                return kept;
            }
        }
        ""
    }
}

/// Returns the path up to the second slash.
fn first_segment(path: &str) -> &str {
    let name = path.strip_prefix('/').unwrap_or(path);
    let slash = path.len() - name.len();
    let end = name.find('/').unwrap_or(name.len());
    &path[..slash + end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_the_path_up_to_its_second_slash() {
        let segments = Segments::default();
        let named = [
            ("/", "/"),
            ("/hello", "/hello"),
            ("/hello/", "/hello"),
            ("/hello/a/b", "/hello"),
            ("*", "*"),
        ];
        for (path, name) in named {
            assert_eq!(segments.name(path), name, "{path}");
        }
    }

    #[test]
    fn made_up_names_have_a_limit() {
        let segments = Segments::default();
        let mut names = std::collections::HashSet::new();
        for number in 0..10_000 {
            names.insert(segments.name(&format!("/{number}")));
        }
        assert!(names.len() <= SEGMENTS_MAX + 1, "{}", names.len());
        assert!(names.contains(""));
        assert_eq!(segments.name(&format!("/{}", "x".repeat(64))), "");
    }
}
