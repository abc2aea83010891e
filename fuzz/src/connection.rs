use greenroom_http::Limits;

use crate::driver::assert_same_in_pieces;

const NARROW: Limits = Limits {
    head_bytes_max: 160,
    fields_max: 4,
    target_bytes_max: 16,
    chunk_line_bytes_max: 12,
    chunk_extension_bytes_max: 20,
};

/// A connection responds the same however its input is split. The data begins with a byte that
/// chooses the limits and three lengths that the pieces take in turn.
///
/// That it never consumes more than it was offered, makes progress, and reads nothing after a
/// rejection is asserted at each step by the driver.
///
/// # Panics
///
/// On a finding.
pub fn check(data: &[u8]) {
    let Some((&[choice, lengths @ ..], whole)) = data.split_first_chunk::<4>() else {
        return;
    };
    let limits = if choice % 4 == 0 {
        NARROW
    } else {
        Limits::default()
    };
    let mut pieces = Vec::new();
    let mut rest = whole;
    for length in lengths.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (piece, after) = rest.split_at(rest.len().min(usize::from(*length) + 1));
        pieces.push(piece);
        rest = after;
    }
    assert_same_in_pieces(whole, &pieces, limits);
}
