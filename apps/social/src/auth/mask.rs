//! Masked CSRF tokens, for pages: no two are the same.
//!
//! A page is compressed, and holds both the token and texts of others. Without a mask its length
//! would tell, guess by guess, if a text contains a piece of the token (the BREACH attack).

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use subtle::ConstantTimeEq;

/// Returns the token for one page: a random mask followed by the token under the mask, in
/// base64url.
#[must_use]
pub fn mask_csrf(token: &str) -> String {
    let mask: Vec<u8> = token.bytes().map(|_| rand::random()).collect();
    let masked = token.bytes().zip(&mask).map(|(byte, mask)| byte ^ mask);
    let both: Vec<u8> = mask.iter().copied().chain(masked).collect();
    URL_SAFE_NO_PAD.encode(both)
}

/// Returns `true` if `sent` is the token, either as it is (programs get it from the API) or under a
/// mask.
pub(super) fn is_token(sent: &str, token: &str) -> bool {
    // Compared in constant time: the time must not tell how much of a guess is right.
    if sent.len() == token.len() {
        return sent.as_bytes().ct_eq(token.as_bytes()).into();
    }
    let Ok(both) = URL_SAFE_NO_PAD.decode(sent) else {
        return false;
    };
    let (mask, masked) = both.split_at(both.len() / 2);
    let unmasked: Vec<u8> = masked
        .iter()
        .zip(mask)
        .map(|(one, two)| one ^ two)
        .collect();
    both.len() == 2 * token.len() && unmasked.as_slice().ct_eq(token.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "Zm9yIGEgc2Vzc2lvbiwgYW5kIG5vIG90aGVyIG9uZSE";

    #[test]
    fn a_token_is_known_with_and_without_a_mask() {
        let (one, two) = (mask_csrf(TOKEN), mask_csrf(TOKEN));
        assert_ne!(one, two);
        assert!(!one.contains(&TOKEN[..8]), "{one}");
        for sent in [TOKEN, &one, &two] {
            assert!(is_token(sent, TOKEN), "{sent}");
        }
    }

    #[test]
    fn nothing_else_is() {
        let other = TOKEN.replace('Z', "Y");
        let masked = mask_csrf(&other);
        let empty = "";
        let short = &mask_csrf(TOKEN)[..20];
        for sent in [empty, "?", short, &other, &masked, &"A".repeat(115)] {
            assert!(!is_token(sent, TOKEN), "{sent}");
        }
    }
}
