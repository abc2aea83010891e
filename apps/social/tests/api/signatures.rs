use http::header::CONTENT_TYPE;
use http::{Method, StatusCode};
use serde_json::{Value, json};
use social::config::StoreSettings;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::signed::{Sent, Signer};
use crate::kit::app::{Answer, TestApp, form, png, send};

async fn signer(store: StoreSettings) -> (TestApp, Signer) {
    let server = TestApp::on(store).await;
    let ada = server.user("ada").await;
    let signer = Signer::of(&ada).await;
    (server, signer)
}

fn refused(answer: &Answer) -> String {
    answer.problem(StatusCode::UNAUTHORIZED)
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
        let answer = attack.send(Method::POST, &signed.path, &body).await;
        // A method that the address does not have is refused for that, or for the signature; either way nothing is done.
        assert!(
            [401, 405].contains(&answer.status.as_u16()),
            "{tampered:?}: {answer:?}"
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

pub(crate) async fn a_signed_upload_is_taken_whole(store: StoreSettings) {
    let (server, ada) = signer(store).await;
    let body = json!({"title": "by a program"}).to_string();
    let album: Value = ada
        .send(Method::POST, "/api/albums", &body)
        .await
        .json(StatusCode::CREATED);
    let path = format!(
        "/api/albums/{}/pictures",
        album["id"].as_str().expect("a text")
    );
    let picture = png(600, 400);
    let (media_type, body) = form(&[("picture", &picture), ("picture", &picture)]);
    let upload = |sent: &[u8]| {
        let mut request = server.client().request(Method::POST, &path);
        for (name, value) in ada.headers(&Method::POST, &path, &body) {
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
    refused(&upload(&tampered).await);
    let views: Value = upload(&body).await.json(StatusCode::CREATED);
    assert_eq!(views.as_array().map(Vec::len), Some(2));
}

/// Eight clients that send a part of their upload and no more; they hold all places.
pub(crate) async fn signed_uploads_have_few_places(store: StoreSettings) {
    let (server, ada) = signer(store).await;
    let body = json!({"title": "by a program"}).to_string();
    let album: Value = ada
        .send(Method::POST, "/api/albums", &body)
        .await
        .json(StatusCode::CREATED);
    let path = format!(
        "/api/albums/{}/pictures",
        album["id"].as_str().expect("a text")
    );
    let (media_type, body) = form(&[("picture", &png(8, 8))]);
    let head = || {
        let mut head = vec![format!("POST {path} HTTP/1.1\r\nhost: {}", server.address)];
        for (name, value) in ada.headers(&Method::POST, &path, &body) {
            head.push(format!("{name}: {value}"));
        }
        let length = body.len();
        head.push(format!(
            "content-type: {media_type}\r\ncontent-length: {length}\r\n\r\n"
        ));
        head.join("\r\n")
    };
    let mut slow = Vec::new();
    let mut refused = None;
    // Each that gets a place is silent; the first that gets none is answered.
    while refused.is_none() {
        let mut stream = TcpStream::connect(server.address)
            .await
            .expect("it listens");
        stream
            .write_all(head().as_bytes())
            .await
            .expect("it is read");
        stream.write_all(&body[..10]).await.expect("it is read");
        server.client().get("/health").await.expect(StatusCode::OK);
        slow.push(stream);
        refused = answer_of_any(&slow);
        assert!(slow.len() <= 20, "there are at most eight places");
    }
    let answer = refused.expect("the loop ended with it");
    assert!(
        answer.starts_with("HTTP/1.1 503") && answer.contains("retry-after: 2"),
        "{answer}"
    );
    assert!(slow.len() > 8, "{} have a place", slow.len());

    // One sends the rest, and its place is free.
    slow[0].write_all(&body[10..]).await.expect("it is read");
    let answer = read(&mut slow[0]).await;
    assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
}

fn answer_of_any(streams: &[TcpStream]) -> Option<String> {
    let mut buffer = [0; 4_096];
    let mut lengths = streams.iter().map(|stream| stream.try_read(&mut buffer));
    let length = lengths.find_map(Result::ok)?;
    Some(String::from_utf8_lossy(&buffer[..length]).into_owned())
}

async fn read(stream: &mut TcpStream) -> String {
    let mut buffer = [0; 4_096];
    let length = stream.read(&mut buffer).await.expect("it is answered");
    String::from_utf8_lossy(&buffer[..length]).into_owned()
}
