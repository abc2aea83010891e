use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;

use greenroom_stage::placement::PlacedPath;

/// The number of segments that are told apart. Twice as many as an application mostly has, because
/// a client can make them up.
const SEGMENTS_MAX: usize = 128;
/// The number of slots that are probed for one.
const PROBES_MAX: usize = 8;
/// The longest segment that is kept.
const SEGMENT_BYTES_MAX: usize = 64;
/// The number of slots that a thread remembers.
const REMEMBERED_MAX: usize = 64;

type Remembered = [Cell<u8>; REMEMBERED_MAX];

thread_local! {
    /// The slots in which this thread has last found segments, by [`remembered_at`]. Of several
    /// applications they are mixed: whether a slot has the segment is looked up there.
    static REMEMBERED: Remembered = const { [const { Cell::new(0) }; REMEMBERED_MAX] };
}

/// The first segments of the paths that came: the last resort where nothing is known of a service.
/// They are found without a lock; a segment that finds no slot shares the empty path.
#[derive(Debug)]
pub(super) struct Segments {
    slots: Box<[OnceLock<PlacedPath>]>,
    /// That of segments without a slot.
    none: PlacedPath,
    /// Keyed, or a client could choose segments that take each other's slots.
    hashes: RandomState,
}

impl Default for Segments {
    fn default() -> Self {
        Self {
            slots: (0..SEGMENTS_MAX).map(|_| OnceLock::new()).collect(),
            none: PlacedPath::new(""),
            hashes: RandomState::new(),
        }
    }
}

impl Segments {
    pub(super) fn route(&self, path: &str) -> &PlacedPath {
        let first = first_segment(path);
        if first.len() > SEGMENT_BYTES_MAX {
            return &self.none;
        }
        REMEMBERED.with(|slots| {
            let remembered = &slots[remembered_at(first)];
            let kept = self.slots[usize::from(remembered.get())].get();
            match kept.filter(|kept| kept.as_str() == first) {
                Some(kept) => kept,
                None => self.look_up(first, remembered),
            }
        })
    }

    /// Returns the path of a segment, and notes its slot.
    fn look_up(&self, first: &str, remembered: &Cell<u8>) -> &PlacedPath {
        let hash = self.hashes.hash_one(first);
        let start = usize::try_from(hash % SEGMENTS_MAX as u64).unwrap_or_default();
        for probe in 0..PROBES_MAX {
            let at = (start + probe) % SEGMENTS_MAX;
            // Taken for good by the first segment that comes, so it needs no lock.
            let kept = self.slots[at].get_or_init(|| PlacedPath::new(first));
            if kept.as_str() == first {
                remembered.set(u8::try_from(at).unwrap_or_default());
                return kept;
            }
        }
        &self.none
    }
}

/// Returns where a thread remembers the slot of a segment. A client may choose segments that share
/// the place: then the keyed hash is computed, as for a new one.
fn remembered_at(segment: &str) -> usize {
    let bytes = segment.as_bytes();
    let at = |index: usize| usize::from(bytes.get(index).copied().unwrap_or_default());
    let (middle, last) = (bytes.len() / 2, bytes.len().wrapping_sub(1));
    (bytes.len() + 3 * at(1) + 7 * at(middle) + at(last)) % REMEMBERED_MAX
}

/// Returns the path up to the second slash.
fn first_segment(path: &str) -> &str {
    let mut bytes = path.bytes().skip(1);
    let slash = bytes.position(|byte| byte == b'/');
    slash.map_or(path, |at| &path[..=at])
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
            ("//hello", "/"),
            ("/\u{e9}t\u{e9}/a", "/\u{e9}t\u{e9}"),
            ("", ""),
            ("*", "*"),
        ];
        for (path, name) in named {
            assert_eq!(segments.route(path).as_str(), name, "{path}");
        }
    }

    /// As many as there are probes, so that each has its slot.
    #[test]
    fn segments_of_two_applications_that_are_remembered_at_one_place_are_told_apart() {
        let numbered = (0..10_000).map(|number| format!("/{number}"));
        let at_one_place = numbered.filter(|path| remembered_at(path) == remembered_at("/0"));
        let paths: Vec<_> = at_one_place.take(PROBES_MAX).collect();
        assert_eq!(paths.len(), PROBES_MAX);
        let applications = [Segments::default(), Segments::default()];
        for path in paths.iter().chain(&paths).chain(paths.iter().rev()) {
            for segments in &applications {
                assert_eq!(segments.route(path).as_str(), path);
                assert_eq!(segments.route(path).as_str(), path);
            }
        }
    }

    #[test]
    fn made_up_names_have_a_limit() {
        let segments = Segments::default();
        let mut names = std::collections::HashSet::new();
        for number in 0..10_000 {
            names.insert(segments.route(&format!("/{number}")).as_str());
        }
        assert!(names.len() <= SEGMENTS_MAX + 1, "{}", names.len());
        assert!(names.contains(""));
        assert_eq!(segments.route(&format!("/{}", "x".repeat(64))).as_str(), "");
    }
}
