use crate::Limits;

/// The length of an incomplete section of fields that was already searched for its end.
///
/// Parsing starts from the beginning each time, so a section that dribbles in is parsed again only
/// when its end may have come, when it doubled, or when it reached the limit. One that is malformed
/// and incomplete may therefore be refused some bytes late, but always for the same reason.
#[derive(Debug, Default)]
pub(crate) struct Searched {
    bytes: usize,
}

impl Searched {
    pub(crate) fn note(&mut self, input: &[u8]) {
        self.bytes = input.len();
    }

    pub(crate) fn is_worth_parsing(&self, input: &[u8], limits: &Limits) -> bool {
        if input.is_empty() {
            return false;
        }
        let next = self.bytes.saturating_mul(2).min(limits.head_bytes_max);
        if self.bytes == 0 || input.len() >= next {
            return true;
        }
        let news = input.get(self.bytes.saturating_sub(3)..).unwrap_or(input);
        memchr::memchr_iter(b'\n', news).any(|at| {
            let after = &news[at + 1..];
            after.starts_with(b"\n") || after.starts_with(b"\r\n")
        })
    }
}
