//! `/pixel.gif` and `/pixel/*`: the transparent picture that an ad blocker shows where its name
//! server has turned an advertiser's address into this server's.

use axum::http::HeaderName;
use axum::http::header::{ACCESS_CONTROL_ALLOW_ORIGIN, CACHE_CONTROL, CONTENT_TYPE};

/// One transparent pixel, in the format `GIF89a`.
static PIXEL: [u8; 43] = [
    b'G', b'I', b'F', b'8', b'9', b'a', 1, 0, 1, 0, 0x80, 0, 0, // 1 by 1, two colours
    0, 0, 0, 255, 255, 255, // black and white
    0x21, 0xf9, 4, 1, 0, 0, 0, 0, // colour 0 is transparent
    0x2c, 0, 0, 0, 0, 1, 0, 1, 0, 0, // one picture at the origin
    2, 2, 0x44, 1, 0, // its only pixel has colour 0
    0x3b,
];

const HEADERS: [(HeaderName, &str); 5] = [
    (CONTENT_TYPE, "image/gif"),
    // A page asks for dozens of these: after the first, the browser need not ask again for a year.
    (CACHE_CONTROL, "public, max-age=31536000"),
    // An <img crossorigin> or a fetch() of the blocked address must not fail in the console and
    // set off the page's "blocker found" branch. There is no secret here, so any origin may read.
    (ACCESS_CONTROL_ALLOW_ORIGIN, "*"),
    // A page isolated by Cross-Origin-Embedder-Policy loads only pictures that say this.
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        "cross-origin",
    ),
    // Scripts that time their resources read zeros without it, and take zeros for a blocker.
    (HeaderName::from_static("timing-allow-origin"), "*"),
];

pub(super) async fn respond() -> ([(HeaderName, &'static str); 5], &'static [u8]) {
    (HEADERS, &PIXEL)
}
