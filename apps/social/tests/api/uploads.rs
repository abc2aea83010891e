use bytesize::ByteSize;
use futures_util::stream;
use http::header::{CONTENT_TYPE, IF_NONE_MATCH};
use http::{Method, StatusCode};
use serde_json::{Value, json};
use social::config::StoreSettings;

use crate::kit::app::{Client, TestApp, TestResponse, form, png, send};

async fn small(store: StoreSettings) -> TestApp {
    let server = TestApp::with(|settings| {
        settings.store = store;
        settings.pictures.bytes_max = ByteSize::kib(100);
        settings.pictures.pixels_max = 1_000_000;
    });
    server.await
}

async fn count(client: &Client, album: &str) -> usize {
    let page = client.get(&format!("/api/albums/{album}/pictures")).await;
    let page: Value = page.json(StatusCode::OK);
    page["pictures"].as_array().expect("a list").len()
}

pub(crate) async fn one_picture_comes_in_three_sizes_and_as_it_was(store: StoreSettings) {
    let server = small(store).await;
    let (ada, grace) = (server.user("ada").await, server.user("grace").await);
    let album = ada.album("mine").await;
    let original = png(900, 300);
    let parts: [(&str, &[u8]); 3] = [
        ("picture", &original),
        ("caption", "äh\r\noh".as_bytes()),
        ("alt", b"A black square."),
    ];
    let views: Value = ada.upload(&album, &parts).await.json(StatusCode::CREATED);
    let view = &views[0];
    let expected = json!({
        "id": view["id"], "album": album, "owner": view["owner"], "caption": "äh\noh",
        "alt": "A black square.", "media": "png", "width": 900, "height": 300,
        "bytes": original.len(), "created_at": view["created_at"], "likes": 0, "likes_seq": 0,
        "comments": 0, "comments_seq": 0, "liked": false,
    });
    assert_eq!(view, &expected);
    let id = view["id"].as_str().expect("a text");
    let shown: Value = grace
        .get(&format!("/api/pictures/{id}"))
        .await
        .json(StatusCode::OK);
    assert_eq!(shown, expected);

    for (size, width) in [("small", 200), ("medium", 800), ("large", 900)] {
        let file = server.client().get(&format!("/files/{id}/{size}")).await;
        file.expect(StatusCode::OK);
        let picture = image::load_from_memory(&file.body).expect("it is a picture");
        assert_eq!(picture.width(), width, "{size}");
        assert_eq!(file.header("content-type"), "image/jpeg");
        assert_eq!(file.header("content-length"), file.body.len().to_string());
        assert_eq!(
            file.header("cache-control"),
            "public, max-age=31536000, s-maxage=300, immutable"
        );
        assert_eq!(file.header("x-content-type-options"), "nosniff");
    }
    let path = format!("/files/{id}/original");
    server
        .client()
        .get(&path)
        .await
        .problem(StatusCode::UNAUTHORIZED);
    grace.get(&path).await.problem(StatusCode::FORBIDDEN);
    let file = ada.get(&path).await;
    assert_eq!(
        (file.status, &file.body[..]),
        (StatusCode::OK, &original[..])
    );
    assert_eq!(file.header("content-type"), "image/png");
    assert_eq!(file.header("cache-control"), "no-store");
    let again = ada
        .request(Method::GET, &path)
        .header(IF_NONE_MATCH, file.header("etag"));
    assert_eq!(send(again).await.status, StatusCode::NOT_MODIFIED);
    ada.get(&format!("/files/{id}/huge"))
        .await
        .problem(StatusCode::NOT_FOUND);
}

pub(crate) async fn two_pictures_get_one_response(store: StoreSettings) {
    let server = small(store).await;
    let ada = server.user("ada").await;
    let album = ada.album("mine").await;
    let (one, two) = (png(400, 300), png(30, 40));
    let parts: [(&str, &[u8]); 3] = [("picture", &one), ("picture", &two), ("caption", b"second")];
    let views: Value = ada.upload(&album, &parts).await.json(StatusCode::CREATED);
    let seen = |at: usize| (views[at]["width"].clone(), views[at]["caption"].clone());
    assert_eq!(
        (seen(0), seen(1)),
        ((json!(400), json!("")), (json!(30), json!("second")))
    );
    assert_eq!(count(&ada, &album).await, 2);
}

pub(crate) async fn eleven_pictures_are_too_many(store: StoreSettings) {
    let server = small(store).await;
    let ada = server.user("ada").await;
    let album = ada.album("mine").await;
    let picture = png(2, 2);
    let eleven = [("picture", &picture[..]); 11];
    let response = ada.upload(&album, &eleven).await;
    let detail = response.problem(StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(detail, "a request has at most 10 pictures");
    assert_eq!(count(&ada, &album).await, 0);
    ada.upload(&album, &eleven[..10])
        .await
        .expect(StatusCode::CREATED);
    assert_eq!(count(&ada, &album).await, 10);
}

pub(crate) async fn all_of_them_or_none(store: StoreSettings) {
    let server = small(store).await;
    let ada = server.user("ada").await;
    let album = ada.album("mine").await;
    let picture = png(2, 2);
    for (wrong, status) in [
        ("picture", StatusCode::UNSUPPORTED_MEDIA_TYPE),
        ("caption", StatusCode::UNPROCESSABLE_ENTITY),
    ] {
        let text = "<svg xmlns='http://www.w3.org/2000/svg'/>".repeat(13);
        let parts = [("picture", &picture[..]), (wrong, text.as_bytes())];
        ada.upload(&album, &parts).await.problem(status);
        assert_eq!(count(&ada, &album).await, 0, "{wrong}");
    }
}

pub(crate) async fn a_picture_that_is_too_long_is_refused_by_its_length(store: StoreSettings) {
    let server = small(store).await;
    let ada = server.user("ada").await;
    let album = ada.album("mine").await;
    let long = vec![0; 100 * 1024 + 1];
    let response = ada.upload(&album, &[("picture", &long)]).await;
    let detail = response.problem(StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(detail, "a picture has at most 100.0 KiB");
}

pub(crate) async fn a_body_that_is_too_long_is_refused_before_it_is_read(store: StoreSettings) {
    let server = small(store).await;
    let ada = server.user("ada").await;
    let album = ada.album("mine").await;
    let long = vec![0; 2 * 1024 * 1024];
    let response = ada.upload(&album, &[("picture", &long)]).await;
    let detail = response.problem(StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(detail, "a body has at most 1.2 MiB here");
    let title = "x".repeat(70_000);
    let response = ada.post("/api/albums", &json!({"title": title})).await;
    let detail = response.problem(StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(detail, "a body has at most 64.0 KiB here");
}

/// A PNG of a few kilobytes, of which a decoder makes more pixels than are allowed.
pub(crate) async fn a_bomb_is_refused_by_its_head(store: StoreSettings) {
    let server = small(store).await;
    let ada = server.user("ada").await;
    let album = ada.album("mine").await;
    let bomb = png(1_001, 1_000);
    assert!(bomb.len() < 30_000, "it packs well: {}", bomb.len());
    let response = ada.upload(&album, &[("picture", &bomb)]).await;
    let detail = response.problem(StatusCode::PAYLOAD_TOO_LARGE);
    assert!(detail.contains("1001 x 1000 pixels; 1000000"), "{detail}");
}

/// A decoder would silently fill the rest with grey.
pub(crate) async fn a_jpeg_that_is_truncated_is_refused(store: StoreSettings) {
    let server = small(store).await;
    let ada = server.user("ada").await;
    let album = ada.album("mine").await;
    let mut whole = std::io::Cursor::new(Vec::new());
    image::DynamicImage::new_rgb8(300, 300)
        .write_to(&mut whole, image::ImageFormat::Jpeg)
        .expect("the picture is encoded");
    let whole = whole.into_inner();
    let half = &whole[..whole.len() / 2];
    let response = ada.upload(&album, &[("picture", half)]).await;
    let detail = response.problem(StatusCode::UNSUPPORTED_MEDIA_TYPE);
    assert!(detail.contains("the file is truncated"), "{detail}");
    ada.upload(&album, &[("picture", &whole)])
        .await
        .expect(StatusCode::CREATED);
}

pub(crate) async fn a_user_has_so_much_room(store: StoreSettings) {
    let picture = png(300, 200);
    let bytes = picture.len() as u64;
    let server = TestApp::with(|settings| {
        settings.store = store;
        settings.pictures.per_user_max = 4;
        settings.pictures.bytes_per_user_max = ByteSize(2 * bytes + bytes / 2);
    });
    let server = server.await;
    let ada = server.user("ada").await;
    let album = ada.album("mine").await;
    let one = [("picture", &picture[..])];
    let first: Value = ada.upload(&album, &one).await.json(StatusCode::CREATED);
    let storage: Value = ada.get("/api/me/storage").await.json(StatusCode::OK);
    let expected = json!({
        "pictures": 1, "pictures_max": 4, "bytes": bytes, "bytes_max": 2 * bytes + bytes / 2,
    });
    assert_eq!(storage, expected);
    let two = ada.upload(&album, &[one[0], one[0]]).await;
    let detail = two.problem(StatusCode::PAYLOAD_TOO_LARGE);
    assert!(detail.contains("there is no room for"), "{detail}");
    // The quota has room for one of them, either one.
    let (here, there) = tokio::join!(ada.upload(&album, &one), ada.upload(&album, &one));
    let mut statuses = [here.status, there.status];
    statuses.sort();
    assert_eq!(
        statuses,
        [StatusCode::CREATED, StatusCode::PAYLOAD_TOO_LARGE]
    );
    let page = ada.get(&format!("/albums/{album}")).await;
    let page = String::from_utf8_lossy(&page.body).into_owned();
    assert!(page.contains("2 of 4 pictures"), "{page}");

    let path = format!("/api/pictures/{}", first[0]["id"].as_str().expect("a text"));
    ada.delete(&path).await.expect(StatusCode::NO_CONTENT);
    let tiny = png(2, 2);
    for _ in 0..3 {
        let response = ada.upload(&album, &[("picture", &tiny)]).await;
        response.expect(StatusCode::CREATED);
    }
    let response = ada.upload(&album, &[("picture", &tiny)]).await;
    let detail = response.problem(StatusCode::PAYLOAD_TOO_LARGE);
    let expected = "you have 4 pictures, and may have 4: delete some first";
    assert_eq!(detail, expected);
    let grace = server.user("grace").await;
    let album = grace.album("another").await;
    grace.upload(&album, &one).await.expect(StatusCode::CREATED);
}

pub(crate) async fn what_a_picture_shows_is_said_by_its_owner(store: StoreSettings) {
    let server = small(store).await;
    let (ada, grace) = (server.user("ada").await, server.user("grace").await);
    let picture = ada.picture(&ada.album("mine").await).await;
    let path = format!("/api/pictures/{picture}");
    let describe = async |client: &Client, alt: &str| {
        let request = client.request(Method::PATCH, &path);
        send(request.json(&json!({ "alt": alt }))).await
    };
    let described = describe(&ada, " A black square. ").await;
    let described: Value = described.json(StatusCode::OK);
    assert_eq!(described["alt"], "A black square.");
    describe(&grace, "Mine!")
        .await
        .problem(StatusCode::FORBIDDEN);
    assert_eq!(describe(&ada, &"x".repeat(501)).await.field(), "alt");
    let shown: Value = grace.get(&path).await.json(StatusCode::OK);
    assert_eq!(shown["alt"], "A black square.");
    let page = grace.get(&format!("/pictures/{picture}")).await;
    let page = String::from_utf8_lossy(&page.body).into_owned();
    assert!(page.contains("alt=\"A black square.\""), "{page}");
}

pub(crate) async fn only_its_owner_fills_an_album(store: StoreSettings) {
    let server = small(store).await;
    let (ada, grace) = (server.user("ada").await, server.user("grace").await);
    let album = ada.album("mine").await;
    let picture = png(2, 2);
    let parts = [("picture", &picture[..])];
    server
        .client()
        .upload(&album, &parts)
        .await
        .problem(StatusCode::UNAUTHORIZED);
    grace
        .upload(&album, &parts)
        .await
        .problem(StatusCode::FORBIDDEN);
    let nothing = "0198c0ffee007abc8def0123456789ab";
    ada.upload(nothing, &parts)
        .await
        .problem(StatusCode::NOT_FOUND);
    assert_eq!(count(&ada, &album).await, 0);
}

pub(crate) async fn other_parts_and_other_bodies_are_refused(store: StoreSettings) {
    let server = small(store).await;
    let ada = server.user("ada").await;
    let album = ada.album("mine").await;
    let picture = png(2, 2);
    let whole: (&str, &[u8]) = ("picture", &picture);
    for parts in [
        &[][..],
        &[("caption", &b"of nothing"[..])],
        &[whole, ("caption", b"one"), ("caption", b"two")],
        &[whole, ("alt", b"one"), ("caption", b""), ("alt", b"two")],
        &[whole, ("title", b"?")],
    ] {
        let response = ada.upload(&album, parts).await;
        assert_eq!(response.field(), "picture", "{parts:?}");
    }
    let response = ada.upload(&album, &[whole, ("caption", b"\xff")]).await;
    assert_eq!(response.field(), "caption");

    let path = format!("/api/albums/{album}/pictures");
    let other = ada.post(&path, &json!({})).await;
    other.problem(StatusCode::UNSUPPORTED_MEDIA_TYPE);
    let (media_type, mut body) = form(&[whole]);
    body.truncate(body.len() - 20);
    let cut = ada
        .request(Method::POST, &path)
        .header(CONTENT_TYPE, media_type);
    send(cut.body(body)).await.problem(StatusCode::BAD_REQUEST);
    assert_eq!(count(&ada, &album).await, 0);
}

/// A form whose first field has a head without an end.
pub(crate) async fn the_head_of_a_part_has_an_end(store: StoreSettings) {
    let server = small(store).await;
    let ada = server.user("ada").await;
    let album = ada.album("mine").await;
    let mut body = b"--b\r\n".to_vec();
    body.resize(600 * 1024, b'x');
    let pieces: Vec<Result<Vec<u8>, std::io::Error>> = body
        .chunks(10_000)
        .map(|piece| Ok(piece.to_vec()))
        .collect();
    let request = ada
        .request(Method::POST, &format!("/api/albums/{album}/pictures"))
        .header(CONTENT_TYPE, "multipart/form-data; boundary=b")
        .body(reqwest::Body::wrap_stream(stream::iter(pieces)));
    let detail = send(request).await.problem(StatusCode::BAD_REQUEST);
    assert!(
        detail.contains("the head of a part is too long"),
        "{detail}"
    );
}

pub(crate) async fn a_deleted_picture_is_gone(store: StoreSettings) {
    let server = small(store).await;
    let (ada, grace) = (server.user("ada").await, server.user("grace").await);
    let picture = ada.picture(&ada.album("mine").await).await;
    let path = format!("/api/pictures/{picture}");
    grace.delete(&path).await.problem(StatusCode::FORBIDDEN);
    ada.get(&path).await.expect(StatusCode::OK);
    ada.delete(&path).await.expect(StatusCode::NO_CONTENT);
    let gone = |response: TestResponse| response.problem(StatusCode::NOT_FOUND);
    gone(ada.get(&path).await);
    gone(ada.delete(&path).await);
    gone(ada.get(&format!("/files/{picture}/small")).await);
    gone(ada.put(&format!("{path}/like")).await);
}
