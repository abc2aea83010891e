use bytesize::ByteSize;
use http::header::CONTENT_TYPE;
use http::{Method, StatusCode};
use serde_json::{Value, json};
use social::config::StoreSettings;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::signed::{Sent, Signer};
use crate::kit::app::{TestApp, TestResponse, form, png, send};

async fn signer(store: StoreSettings) -> (TestApp, Signer) {
    let server = TestApp::on(store).await;
    let ada = server.user("ada").await;
    let signer = Signer::of(&ada).await;
    (server, signer)
}

fn refused(response: &TestResponse) -> String {
    response.problem(StatusCode::UNAUTHORIZED)
}

pub(crate) async fn a_signed_request_is_its_keys_user(store: StoreSettings) {
    let (server, ada) = signer(store).await;
    let me: Value = ada.get("/api/me").await.json(StatusCode::OK);
    assert_eq!(me["name"], "ada");
    let body = json!({"title": "by a program"}).to_string();
    let made = ada.send(Method::POST, "/api/albums", &body).await;
    let made: Value = made.json(StatusCode::CREATED);
    assert_eq!(made["owner"]["name"], "ada");
    let page = ada
        .get("/api/timeline?limit=2&before=0198c0ffee007abc8def0123456789ab")
        .await;
    page.expect(StatusCode::OK);
    // What it covers may stand in any order.
    let turned = Signer {
        covered: r#"("content-digest" "@query" "@method" "@path")"#.to_owned(),
        ..ada
    };
    turned.get("/api/me").await.expect(StatusCode::OK);
    drop(server);
}

pub(crate) async fn a_request_that_was_tampered_with_is_refused(store: StoreSettings) {
    let (_server, ada) = signer(store).await;
    let body = json!({"title": "mine"}).to_string();
    let signed = Sent {
        method: Method::POST,
        path: "/api/albums?a=1".to_owned(),
        body: body.clone(),
    };
    for tampered in [
        Sent {
            method: Method::PUT,
            ..signed.clone()
        },
        Sent {
            path: "/api/me/keys?a=1".to_owned(),
            ..signed.clone()
        },
        Sent {
            path: "/api/albums?a=2".to_owned(),
            ..signed.clone()
        },
        Sent {
            path: "/api/albums".to_owned(),
            ..signed.clone()
        },
        Sent {
            body: body.replace("mine", "evil"),
            ..signed.clone()
        },
        Sent {
            body: String::new(),
            ..signed.clone()
        },
    ] {
        let attack = Signer {
            sent: Some(tampered.clone()),
            ..ada.clone()
        };
        let response = attack.send(Method::POST, &signed.path, &body).await;
        // A method that the address does not have is rejected for that, or for the signature;
        // either way nothing is done.
        assert!(
            [401, 405].contains(&response.status.as_u16()),
            "{tampered:?}: {response:?}"
        );
    }
    let albums: Value = ada.get("/api/users/ada/albums").await.json(StatusCode::OK);
    assert_eq!(albums, json!([]));
}

pub(crate) async fn a_signature_is_good_for_half_a_minute(store: StoreSettings) {
    let (_server, ada) = signer(store).await;
    for late in [31, 3_600, -33, -3_600] {
        let other = Signer {
            late,
            ..ada.clone()
        };
        let detail = refused(&other.get("/api/me").await);
        assert!(
            detail.contains("30 s") && detail.contains("GET /time"),
            "{late}: {detail}"
        );
    }
    for late in [25, -29] {
        let other = Signer {
            late,
            ..ada.clone()
        };
        other.get("/api/me").await.expect(StatusCode::OK);
    }
}

pub(crate) async fn a_signature_is_good_once(store: StoreSettings) {
    let (_server, ada) = signer(store).await;
    let once = Signer {
        nonce: Some("only once".to_owned()),
        ..ada.clone()
    };
    once.get("/api/me").await.expect(StatusCode::OK);
    let detail = refused(&once.get("/api/me").await);
    assert!(detail.contains("nonce"), "{detail}");
    ada.get("/api/me").await.expect(StatusCode::OK);
}

pub(crate) async fn an_unknown_or_deleted_key_signs_nothing(store: StoreSettings) {
    let (server, ada) = signer(store).await;
    let grace = Signer::of(&server.user("grace").await).await;
    let unknown = |key: &str| Signer {
        key: key.to_owned(),
        ..ada.clone()
    };
    for key in ["0198c0ffee007abc8def0123456789ab", "ada", &grace.key] {
        refused(&unknown(key).get("/api/me").await);
    }
    ada.get("/api/me").await.expect(StatusCode::OK);
    let path = format!("/api/me/keys/{}", ada.key);
    ada.send(Method::DELETE, &path, "")
        .await
        .expect(StatusCode::NO_CONTENT);
    refused(&ada.get("/api/me").await);
}

pub(crate) async fn every_component_and_parameter_is_needed(store: StoreSettings) {
    let (_server, ada) = signer(store).await;
    for covered in [
        r#"("@method" "@path" "@query")"#,
        r#"("@path" "@query" "content-digest")"#,
        r#"("@method" "@path" "@query" "content-digest" "content-digest")"#,
    ] {
        let other = Signer {
            covered: covered.to_owned(),
            ..ada.clone()
        };
        let detail = refused(&other.get("/api/me").await);
        assert!(detail.contains("must cover"), "{detail}");
    }
    let expires = Signer {
        more: ";expires=1".to_owned(),
        ..ada.clone()
    };
    assert!(refused(&expires.get("/api/me").await).contains("parameters"));
    for nonce in ["1234567", &"1".repeat(65)] {
        let other = Signer {
            nonce: Some(nonce.to_owned()),
            ..ada.clone()
        };
        assert!(refused(&other.get("/api/me").await).contains("8 to 64"));
    }
}

/// Returns a picture that does not compress: its file is as long as its pixels, 3 MB.
fn long_picture() -> Vec<u8> {
    let mut state = 1_u32;
    let mut noise = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    };
    let pixels =
        image::RgbImage::from_fn(1_000, 1_000, |_, _| image::Rgb([noise(), noise(), noise()]));
    let mut content = std::io::Cursor::new(Vec::new());
    pixels
        .write_to(&mut content, image::ImageFormat::Png)
        .expect("the picture is encoded");
    content.into_inner()
}

async fn upload_path(ada: &Signer) -> String {
    let body = json!({"title": "by a program"}).to_string();
    let album: Value = ada
        .send(Method::POST, "/api/albums", &body)
        .await
        .json(StatusCode::CREATED);
    let id = album["id"].as_str().expect("a text");
    format!("/api/albums/{id}/pictures")
}

pub(crate) async fn a_signed_upload_is_taken_whole(store: StoreSettings) {
    let (server, ada) = signer(store).await;
    let path = upload_path(&ada).await;
    let (long, small) = (long_picture(), png(60, 40));
    assert!(long.len() > 2_500_000, "{}", long.len());
    let (media_type, body) = form(&[("picture", &long), ("picture", &small)]);
    let upload = |signed: &[u8], sent: &[u8]| {
        let mut request = server.client().request(Method::POST, &path);
        for (name, value) in ada.headers(&Method::POST, &path, signed) {
            request = request.header(name, value);
        }
        send(
            request
                .header(CONTENT_TYPE, &media_type)
                .body(sent.to_vec()),
        )
    };
    let mut tampered = body.clone();
    tampered[200] ^= 1;
    refused(&upload(&body, &tampered).await);
    let views: Value = upload(&body, &body).await.json(StatusCode::CREATED);
    assert_eq!(views.as_array().map(Vec::len), Some(2));
}

pub(crate) async fn a_signed_upload_is_of_one_picture(store: StoreSettings) {
    let server = TestApp::with(|settings| {
        settings.store = store;
        settings.pictures.bytes_max = ByteSize::kib(100);
    })
    .await;
    let ada = Signer::of(&server.user("ada").await).await;
    let path = upload_path(&ada).await;
    // A picture and what may be around it, and a byte.
    let body = vec![0; (100 + 256) * 1024 + 1];
    let mut request = server.client().request(Method::POST, &path);
    for (name, value) in ada.headers(&Method::POST, &path, &body) {
        request = request.header(name, value);
    }
    let detail = send(request.body(body))
        .await
        .problem(StatusCode::PAYLOAD_TOO_LARGE);
    assert!(
        detail.contains("356.0 KiB") && detail.contains("session"),
        "{detail}"
    );
}

/// Users who each send a part of their upload and no more; eight of them hold all permits.
pub(crate) async fn signed_uploads_have_few_places(store: StoreSettings) {
    let (server, ada) = signer(store).await;
    let path = upload_path(&ada).await;
    let (media_type, body) = form(&[("picture", &png(8, 8))]);
    let begin = async |signer: &Signer| {
        let mut head = vec![format!("POST {path} HTTP/1.1\r\nhost: {}", server.address)];
        for (name, value) in signer.headers(&Method::POST, &path, &body) {
            head.push(format!("{name}: {value}"));
        }
        let length = body.len();
        head.push(format!(
            "content-type: {media_type}\r\ncontent-length: {length}\r\n\r\n"
        ));
        let mut sent = head.join("\r\n").into_bytes();
        sent.extend_from_slice(&body[..10]);
        let mut stream = TcpStream::connect(server.address)
            .await
            .expect("it listens");
        stream.write_all(&sent).await.expect("it is read");
        stream
    };
    // The second of the two is rejected: ada has a permit already.
    let (mut first, mut second) = (begin(&ada).await, begin(&ada).await);
    let (is_first, refused) = tokio::select! {
        response = read(&mut first) => (true, response),
        response = read(&mut second) => (false, response),
    };
    assert!(
        refused.starts_with("HTTP/1.1 429") && refused.contains("retry-after: 2"),
        "{refused}"
    );
    let mut kept = if is_first { second } else { first };

    let mut slow = Vec::new();
    let mut refused = None;
    // A connection with a permit is silent; the first without gets a response.
    while refused.is_none() {
        let user = server.user(&format!("user{}", slow.len())).await;
        slow.push(begin(&Signer::of(&user).await).await);
        server.client().get("/health").await.expect(StatusCode::OK);
        refused = response_of_any(&slow);
        assert!(slow.len() <= 20, "there are at most eight places");
    }
    let response = refused.expect("the loop ended with it");
    assert!(
        response.starts_with("HTTP/1.1 503") && response.contains("retry-after: 2"),
        "{response}"
    );
    assert!(slow.len() >= 8, "{} have a place", slow.len());

    // Ada sends the rest, on the connection that was not rejected.
    kept.write_all(&body[10..]).await.expect("it is read");
    let response = read(&mut kept).await;
    assert!(response.starts_with("HTTP/1.1 201"), "{response}");
}

fn response_of_any(streams: &[TcpStream]) -> Option<String> {
    let mut buffer = [0; 4_096];
    let mut lengths = streams.iter().map(|stream| stream.try_read(&mut buffer));
    let length = lengths.find_map(Result::ok)?;
    Some(String::from_utf8_lossy(&buffer[..length]).into_owned())
}

async fn read(stream: &mut TcpStream) -> String {
    let mut buffer = [0; 4_096];
    let length = stream.read(&mut buffer).await.expect("it gets a response");
    String::from_utf8_lossy(&buffer[..length]).into_owned()
}
