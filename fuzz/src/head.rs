use greenroom_http::{Connection, Context, Event};
use http::HeaderMap;

/// An accepted head must be what a reader with no knowledge of HTTP but CR LF, spaces and the
/// first colon makes of it.
///
/// # Panics
///
/// On a finding.
pub fn check(data: &[u8]) {
    let mut context = Context::default();
    let Ok(received) = Connection::new().receive(data, &mut context) else {
        return;
    };
    assert!(received.consumed <= data.len());
    let Event::Head(head) = received.event else {
        assert_eq!(received.consumed, 0);
        return;
    };
    let mut lines = lines_of(&data[..received.consumed]);
    let line = lines.find(|line| !line.is_empty()).expect("a request line");
    let words: Vec<&[u8]> = line.split(|&byte| byte == b' ').collect();
    let [method, target, version] = words[..] else {
        panic!("a request line of {} words", words.len());
    };
    assert_eq!(head.request.method().as_str().as_bytes(), method);
    assert!(matches!(
        version,
        [b'H', b'T', b'T', b'P', b'/', b'1', b'.', b'0'..=b'9']
    ));
    if target.starts_with(b"/") {
        assert_eq!(head.request.uri().to_string().as_bytes(), target);
    }
    assert_eq!(head.request.headers(), &fields_of(lines));
}

/// The lines before the empty one that ends the head.
fn lines_of(head: &[u8]) -> impl Iterator<Item = &[u8]> {
    let text = head
        .strip_suffix(b"\r\n\r\n")
        .expect("an empty line at the end");
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let end = text.windows(2).position(|pair| pair == b"\r\n");
        rest = end.map(|end| &text[end + 2..]);
        Some(&text[..end.unwrap_or(text.len())])
    })
    .inspect(|line| {
        let control = line
            .iter()
            .any(|byte| matches!(byte, b'\r' | b'\n' | b'\0'));
        assert!(!control, "a control byte in a line");
    })
}

fn fields_of<'a>(lines: impl Iterator<Item = &'a [u8]>) -> HeaderMap {
    let mut map = HeaderMap::new();
    for line in lines {
        let colon = line.iter().position(|&byte| byte == b':').expect("a colon");
        let value = line[colon + 1..].trim_ascii();
        let name = http::HeaderName::from_bytes(&line[..colon]).expect("a field name");
        map.append(name, value.try_into().expect("a field value"));
    }
    map
}
