//! Changes of credentials, and deletion of accounts.

use std::time::Duration;

use futures_util::{SinkExt, StreamExt, poll};
use http::header::{CACHE_CONTROL, COOKIE};
use http::{Method, StatusCode};
use jiff::Timestamp;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use social::config::StoreSettings;
use social::model::{Id, PushSubscription, TaskKind, Ticket, TicketPurpose};
use social::service;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::{WebSocketStream, client_async};

use super::signed::Signer;
use crate::kit::app::{Client, PASSWORD, TestApp, TestResponse, send};
use crate::kit::smtp::{Mail, SmtpSink};
use crate::kit::wait::{found, until};

/// A time longer than anything here takes.
const PATIENCE: Duration = Duration::from_mins(1);
const NEW: &str = "another password of some length";

async fn with_mails(store: StoreSettings, sink: &SmtpSink) -> TestApp {
    let url = sink.url();
    TestApp::with(|settings| {
        settings.store = store;
        settings.smtp = Some(url);
    })
    .await
}

async fn put(client: &Client, path: &str, body: &Value) -> TestResponse {
    send(client.request(Method::PUT, path).json(body)).await
}

/// Returns the mails of this subject, as soon as there are so many.
async fn mails(sink: &SmtpSink, subject: &str, count: usize) -> Vec<Mail> {
    found(async || {
        let mails = sink.mails().into_iter();
        let found: Vec<_> = mails
            .filter(|mail| mail.headers["subject"] == subject)
            .collect();
        (found.len() >= count).then_some(found)
    })
    .await
}

/// Returns the token of the link in a mail.
fn token(mail: &Mail) -> String {
    let text = mail.text.split("token=").nth(1).expect("it has a link");
    text.split_whitespace().next().expect("a token").to_owned()
}

fn id(client: &Client) -> Id {
    let user = &client.session.as_ref().expect("they are logged in").user;
    user["id"]
        .as_str()
        .expect("it has one")
        .parse()
        .expect("an identifier")
}

async fn log_in(server: &TestApp, name: &str, password: &str) -> StatusCode {
    let who = json!({"name": name, "password": password});
    server.client().post("/api/sessions", &who).await.status
}

pub(crate) async fn another_password_ends_all_other_sessions(store: StoreSettings) {
    let server = TestApp::on(store).await;
    let ada = server.user("ada").await;
    let elsewhere = server.client().logged_in("ada", PASSWORD).await;
    let wrong = json!({"old": "not her password", "new": NEW});
    let refused = put(&ada, "/api/me/password", &wrong).await;
    assert_eq!(refused.field(), "old");
    let short = json!({"old": PASSWORD, "new": "short"});
    let refused = put(&ada, "/api/me/password", &short).await;
    assert_eq!(refused.field(), "new");
    elsewhere.get("/api/me").await.expect(StatusCode::OK);

    let right = json!({"old": PASSWORD, "new": NEW});
    let changed = put(&ada, "/api/me/password", &right).await;
    let begun: Value = changed.json(StatusCode::OK);
    assert_eq!(begun["user"]["name"], "ada");
    for over in [&ada, &elsewhere] {
        over.get("/api/me").await.problem(StatusCode::UNAUTHORIZED);
    }
    let cookie = changed.header("set-cookie").split(';').next();
    let request = server.client().request(Method::GET, "/api/me");
    send(request.header(COOKIE, cookie.unwrap_or_default()))
        .await
        .expect(StatusCode::OK);
    assert_eq!(
        log_in(&server, "ada", PASSWORD).await,
        StatusCode::UNAUTHORIZED
    );
    assert_eq!(log_in(&server, "ada", NEW).await, StatusCode::CREATED);
}

pub(crate) async fn another_address_is_confirmed_by_a_mail_to_it(store: StoreSettings) {
    let sink = SmtpSink::start();
    let server = with_mails(store, &sink).await;
    let ada = server.user("ada").await;
    let email = async || {
        let me: Value = ada.get("/api/me").await.json(StatusCode::OK);
        me["email"].clone()
    };
    for (body, field) in [
        (
            json!({"email": "new@example.org", "password": "wrong, wrong"}),
            "password",
        ),
        (json!({"email": "new", "password": PASSWORD}), "email"),
        (
            json!({"email": "Somebody@example.org", "password": PASSWORD}),
            "email",
        ),
    ] {
        let refused = put(&ada, "/api/me/email", &body).await;
        assert_eq!(refused.field(), field);
    }
    let body = json!({"email": "new@example.org", "password": PASSWORD});
    let asked = put(&ada, "/api/me/email", &body).await;
    asked.expect(StatusCode::ACCEPTED);
    let mail = mails(&sink, "Is this your new address?", 1).await.remove(0);
    assert_eq!(mail.to, ["new@example.org"]);
    assert_eq!(
        email().await,
        "somebody@example.org",
        "nothing has changed yet"
    );
    let page = format!("/confirm-email?token={}", token(&mail));
    let looked = server.client().get(&page).await;
    looked.expect(StatusCode::OK);
    assert_eq!(looked.header("cache-control"), "no-store");
    assert_eq!(
        email().await,
        "somebody@example.org",
        "who looks changes nothing"
    );

    let confirm = json!({"token": token(&mail)});
    let confirmed = server.client().post("/api/email/confirm", &confirm).await;
    confirmed.expect(StatusCode::NO_CONTENT);
    assert_eq!(email().await, "new@example.org");
    let again = server.client().post("/api/email/confirm", &confirm).await;
    assert_eq!(again.field(), "token");
    let subject = "Your mails go to another address now";
    let notice = mails(&sink, subject, 1).await.remove(0);
    assert_eq!(notice.to, ["somebody@example.org"]);
    assert!(notice.text.contains("new@example.org"), "{}", notice.text);
}

/// The first one was mistyped: it is somebody else's.
pub(crate) async fn a_link_is_good_while_its_address_is_the_last_one_asked_for(
    store: StoreSettings,
) {
    const ADDRESSES: [&str; 2] = ["typo@example.org", "new@example.org"];
    let sink = SmtpSink::start();
    let server = with_mails(store, &sink).await;
    let ada = server.user("ada").await;
    let ask = async |email: &str| {
        let body = json!({"email": email, "password": PASSWORD});
        let asked = put(&ada, "/api/me/email", &body).await;
        asked.expect(StatusCode::ACCEPTED);
    };
    let confirm = async |token: &str| {
        let body = json!({"token": token});
        server.client().post("/api/email/confirm", &body).await
    };
    for email in ADDRESSES {
        ask(email).await;
    }
    let mails = mails(&sink, "Is this your new address?", ADDRESSES.len()).await;
    let [typo, new] = ADDRESSES.map(|email| {
        let mail = mails.iter().find(|mail| mail.to == [email]);
        token(mail.expect("sent"))
    });
    assert_eq!(confirm(&typo).await.field(), "token");
    // No second mail follows so soon, so it is the first one's link that has to be good.
    ask(ADDRESSES[0]).await;
    assert_eq!(confirm(&new).await.field(), "token");
    ask(ADDRESSES[1]).await;
    let confirmed = confirm(&new).await;
    confirmed.expect(StatusCode::NO_CONTENT);
    for used in [&typo, &new] {
        assert_eq!(confirm(used).await.field(), "token");
    }
    let me: Value = ada.get("/api/me").await.json(StatusCode::OK);
    assert_eq!(me["email"], "new@example.org");
}

/// Somebody with many users floods nobody.
pub(crate) async fn an_address_gets_few_mails_to_confirm_it(store: StoreSettings) {
    const USERS: usize = 6;
    const MAILS_MAX: usize = 4;
    let sink = SmtpSink::start();
    let server = with_mails(store, &sink).await;
    let mut users = Vec::new();
    for number in 0..USERS {
        users.push(server.user(&format!("user{number}")).await);
    }
    let interval = || Timestamp::now().as_second() / 300;
    let mut attempts = 0..;
    // Again, if another interval has begun meanwhile.
    let victim = found(async || {
        let (begun, email) = (interval(), format!("v{}@example.org", attempts.next()?));
        for user in &users {
            let body = json!({"email": email, "password": PASSWORD});
            let asked = put(user, "/api/me/email", &body).await;
            asked.expect(StatusCode::ACCEPTED);
        }
        (interval() == begun).then_some(email)
    })
    .await;
    until(async || {
        let next = server.app.store.next_task(TaskKind::Mail).await;
        next.expect("the storage is there").is_none()
    })
    .await;
    let mails = sink.mails().into_iter();
    let sent = mails.filter(|mail| mail.to == [victim.as_str()]).count();
    assert!((1..=MAILS_MAX).contains(&sent), "{sent} mails");
}

/// Two users have signed up with one address, of whom one has confirmed that it is theirs.
pub(crate) async fn an_address_gets_other_mails_once_it_is_confirmed(store: StoreSettings) {
    const EMAIL: &str = "somebody@example.org";
    let sink = SmtpSink::start();
    let server = with_mails(store, &sink).await;
    let ada = server.client().signed_up("ada").await;
    server.client().signed_up("eve").await;
    let addresses = async || {
        let me: Value = ada.get("/api/me").await.json(StatusCode::OK);
        json!([me["email"], me["unconfirmed_email"]])
    };
    assert_eq!(addresses().await, json!(["", EMAIL]));
    let page = ada.get("/settings/account").await;
    let text = String::from_utf8_lossy(&page.body);
    assert!(text.contains("No mails go to you yet."), "{text}");
    let welcomes = mails(&sink, "Welcome to Greenroom social", 2).await;
    let hers = welcomes
        .iter()
        .find(|mail| mail.text.starts_with("Hello ada,"));
    let confirm = json!({"token": token(hers.expect("she is welcomed"))});
    let confirmed = server.client().post("/api/email/confirm", &confirm).await;
    confirmed.expect(StatusCode::NO_CONTENT);
    assert_eq!(addresses().await, json!([EMAIL, null]));

    let body = json!({"email": EMAIL});
    let asked = server.client().post("/api/password/forgotten", &body).await;
    asked.expect(StatusCode::ACCEPTED);
    let subject = "A new password for Greenroom social";
    let first = mails(&sink, subject, 1).await.remove(0);
    assert!(first.text.starts_with("Hello ada,"), "{}", first.text);
    until(async || {
        let next = server.app.store.next_task(TaskKind::Mail).await;
        next.expect("the storage is there").is_none()
    })
    .await;
    assert_eq!(sink.mails().len(), 3, "the other one got none");
}

pub(crate) async fn a_forgotten_password_is_reset_by_mail(store: StoreSettings) {
    let sink = SmtpSink::start();
    let server = with_mails(store, &sink).await;
    let ada = server.user("ada").await;
    let mut responses = Vec::new();
    for email in ["nobody@example.org", "Somebody@Example.org"] {
        let body = json!({"email": email});
        let response = server.client().post("/api/password/forgotten", &body).await;
        responses.push((response.status, response.body.clone()));
    }
    assert_eq!(responses[0], responses[1], "they tell who has signed up");
    assert_eq!(responses[0].0, StatusCode::ACCEPTED);
    let subject = "A new password for Greenroom social";
    let mail = mails(&sink, subject, 1).await.remove(0);
    assert_eq!(mail.to, ["somebody@example.org"]);
    let page = format!("/reset-password?token={}", token(&mail));
    let page = server.client().get(&page).await;
    let text = String::from_utf8_lossy(&page.body);
    assert!(text.contains("<strong>ada</strong>"), "{text}");
    assert_eq!(page.header("cache-control"), "no-store");

    let reset = async |password: &str| {
        let body = json!({"token": token(&mail), "password": password});
        server.client().post("/api/password/reset", &body).await
    };
    assert_eq!(reset("short").await.field(), "password");
    reset(NEW).await.expect(StatusCode::NO_CONTENT);
    assert_eq!(reset(NEW).await.field(), "token");
    ada.get("/api/me").await.problem(StatusCode::UNAUTHORIZED);
    assert_eq!(
        log_in(&server, "ada", PASSWORD).await,
        StatusCode::UNAUTHORIZED
    );
    assert_eq!(log_in(&server, "ada", NEW).await, StatusCode::CREATED);
    // A reader of the storage cannot use what is there.
    let hash = hex::encode(Sha256::digest(token(&mail)));
    let ticket = server.app.store.ticket(&hash, Timestamp::now()).await;
    assert_eq!(ticket.expect("asked"), None);
    assert!(
        sink.mails()
            .iter()
            .all(|mail| mail.to != ["nobody@example.org"])
    );
}

/// Else what their sessions have open would stay open.
pub(crate) async fn a_password_is_reset_though_the_client_leaves(store: StoreSettings) {
    let server = TestApp::on(store).await;
    let ada = server.user("ada").await;
    let token = "a".repeat(43);
    let ticket = Ticket {
        token_hash: hex::encode(Sha256::digest(&token)),
        user: id(&ada),
        purpose: TicketPurpose::ResetPassword,
        email: "somebody@example.org".to_owned(),
        generation: 0,
        expires_at: Timestamp::now() + Duration::from_mins(10),
    };
    let store = &server.app.store;
    store.insert_ticket(&ticket).await.expect("kept");
    let mut resetting = Box::pin(service::reset_password(&server.app, &token, NEW));
    // As a handler, which is dropped with its client: here once the link is used up.
    until(async || {
        let _ = poll!(&mut resetting);
        // Behind what the poll has begun to write (SQLite has one writer).
        store.delete_session("none").await.expect("asked");
        let left = store.ticket(&ticket.token_hash, Timestamp::now()).await;
        left.expect("asked").is_none()
    })
    .await;
    drop(resetting);
    until(async || log_in(&server, "ada", NEW).await == StatusCode::CREATED).await;
    ada.get("/api/me").await.problem(StatusCode::UNAUTHORIZED);
}

pub(crate) async fn a_token_is_good_for_one_thing_and_not_for_ever(store: StoreSettings) {
    let server = TestApp::on(store).await;
    let ada = server.user("ada").await;
    let ticket = async |letter: &str, purpose, email: &str, seconds: u64| {
        let token = letter.repeat(43);
        let ticket = Ticket {
            token_hash: hex::encode(Sha256::digest(&token)),
            user: id(&ada),
            purpose,
            email: email.to_owned(),
            generation: 0,
            expires_at: Timestamp::now() + Duration::from_secs(seconds),
        };
        let inserted = server.app.store.insert_ticket(&ticket).await;
        inserted.expect("kept");
        token
    };
    let reset = async |token: &str| {
        let body = json!({"token": token, "password": NEW});
        server.client().post("/api/password/reset", &body).await
    };
    let (theirs, purpose) = ("somebody@example.org", TicketPurpose::ResetPassword);
    let too_old = ticket("a", purpose, theirs, 0).await;
    let other = ticket("b", TicketPurpose::ConfirmEmail, theirs, 600).await;
    let moved = ticket("c", purpose, "before@example.org", 600).await;
    for token in [too_old.as_str(), &other, &moved, "", "x", &"d".repeat(43)] {
        assert_eq!(reset(token).await.field(), "token", "{token}");
    }
    // A new password invalidates every token that was there.
    let good = ticket("e", purpose, theirs, 600).await;
    let body = json!({"old": PASSWORD, "new": NEW});
    put(&ada, "/api/me/password", &body)
        .await
        .expect(StatusCode::OK);
    assert_eq!(reset(&good).await.field(), "token");
}

pub(crate) async fn who_logs_out_everywhere_is_nobody_everywhere(store: StoreSettings) {
    let server = TestApp::on(store).await;
    let ada = server.user("ada").await;
    let elsewhere = server.client().logged_in("ada", PASSWORD).await;
    let grace = server.user("grace").await;
    let mut feed = Feed::connect(&server, &elsewhere).await;
    let mut program = Feed::connect_signed(&server, &Signer::of(&ada).await).await;
    let response = ada.delete("/api/sessions").await;
    response.expect(StatusCode::NO_CONTENT);
    for over in [&ada, &elsewhere] {
        over.get("/api/me").await.problem(StatusCode::UNAUTHORIZED);
    }
    assert_eq!(feed.close_code().await, 3000);
    // Programs are not logged in, so they are not logged out.
    program.watch_bell(id(&ada)).await;
    grace.get("/api/me").await.expect(StatusCode::OK);
    server.client().logged_in("ada", PASSWORD).await;
}

pub(crate) async fn a_log_out_ends_what_the_session_has_open(store: StoreSettings) {
    let server = TestApp::on(store).await;
    let ada = server.user("ada").await;
    let elsewhere = server.client().logged_in("ada", PASSWORD).await;
    let mut here = Feed::connect(&server, &ada).await;
    let mut there = Feed::connect(&server, &elsewhere).await;
    for (name, client) in [("here", &ada), ("there", &elsewhere)] {
        let cookie = &client.session.as_ref().expect("she is logged in").cookie;
        let token = cookie.split_once('=').expect("a value").1;
        let browser = PushSubscription {
            endpoint: format!("https://push.example.org/{name}")
                .parse()
                .expect("a URL"),
            user: id(&ada),
            p256dh: String::new(),
            auth: String::new(),
            session: Some(hex::encode(Sha256::digest(token))),
        };
        server.app.store.insert_push(&browser).await.expect("kept");
    }
    let response = ada.delete("/api/sessions/current").await;
    response.expect(StatusCode::NO_CONTENT);
    assert_eq!(here.close_code().await, 3000);
    let browsers: Value = elsewhere.get("/api/me/push").await.json(StatusCode::OK);
    assert_eq!(browsers, json!(["https://push.example.org/there"]));
    there.watch("/timeline").await;
    let refused = Feed::open(&server, &ada).await.watch_bell(id(&ada)).await;
    assert!(refused.contains("refused"), "{refused}");
}

pub(crate) async fn private_pages_are_kept_nowhere(store: StoreSettings) {
    let server = TestApp::on(store).await;
    let ada = server.user("ada").await;
    for path in [
        "/",
        "/settings",
        "/settings/account",
        "/bell",
        "/users/ada",
        "/nothing",
    ] {
        let response = ada.get(path).await;
        assert_eq!(
            response.headers.get(CACHE_CONTROL),
            Some(&"no-store".parse().expect("a value")),
            "{path}"
        );
    }
    let page = server.client().get("/").await;
    assert_eq!(page.header("cache-control"), "private, no-cache");
}

pub(crate) async fn a_deleted_account_leaves_nothing(store: StoreSettings) {
    let server = TestApp::on(store).await;
    let (ada, grace) = (server.user("ada").await, server.user("grace").await);
    let hers = ada.picture(&ada.album("hers").await).await;
    let picture = grace.picture(&grace.album("theirs").await).await;
    let path = format!("/api/pictures/{picture}");
    ada.put(&format!("{path}/like"))
        .await
        .expect(StatusCode::OK);
    grace
        .put(&format!("{path}/like"))
        .await
        .expect(StatusCode::OK);
    let said = ada
        .post(&format!("{path}/comments"), &json!({"text": "fine"}))
        .await;
    said.expect(StatusCode::CREATED);
    let key = ada.post("/api/me/keys", &json!({"name": "one"})).await;
    key.expect(StatusCode::CREATED);
    let mut feed = Feed::connect(&server, &ada).await;

    let delete = async |password: &str| {
        let request = ada.request(Method::DELETE, "/api/me");
        send(request.json(&json!({"password": password}))).await
    };
    assert_eq!(delete("wrong, wrong").await.field(), "password");
    ada.get("/api/me").await.expect(StatusCode::OK);
    delete(PASSWORD).await.expect(StatusCode::NO_CONTENT);
    ada.get("/api/me").await.problem(StatusCode::UNAUTHORIZED);
    assert_eq!(feed.close_code().await, 3000);
    assert_eq!(
        log_in(&server, "ada", PASSWORD).await,
        StatusCode::UNAUTHORIZED
    );
    let client = server.client();
    let user = client.get("/api/users/ada").await;
    user.problem(StatusCode::NOT_FOUND);
    let gone = client.get(&format!("/api/pictures/{hers}")).await;
    gone.problem(StatusCode::NOT_FOUND);
    assert_eq!(server.app.store.keys(id(&ada)).await.expect("asked"), []);

    let left = async || {
        let view: Value = client.get(&path).await.json(StatusCode::OK);
        let bell: Value = grace.get("/api/me/bell").await.json(StatusCode::OK);
        json!({"likes": view["likes"], "comments": view["comments"], "bell": bell["entries"]})
    };
    until(async || left().await == json!({"likes": 1, "comments": 0, "bell": []})).await;
}

pub(crate) async fn mails_that_are_asked_for_are_limited_by_client(store: StoreSettings) {
    let server = TestApp::with(|settings| {
        settings.store = store;
        settings.limits.mails = 5;
    });
    let server = server.await;
    let ask = async |email: &str| {
        let body = json!({"email": email});
        server.client().post("/api/password/forgotten", &body).await
    };
    ask("ada@example.org").await.expect(StatusCode::ACCEPTED);
    let refused = ask("grace@example.org").await;
    refused.problem(StatusCode::TOO_MANY_REQUESTS);
}

/// A browser's connection to the feed.
struct Feed(WebSocketStream<TcpStream>);

impl Feed {
    /// Connects, and watches something, so that the connection is known to be established.
    async fn connect(server: &TestApp, client: &Client) -> Self {
        let mut feed = Self::open(server, client).await;
        feed.watch("/timeline").await;
        feed
    }

    /// Connects by a key, as [`connect`](Self::connect) does by a session.
    async fn connect_signed(server: &TestApp, signer: &Signer) -> Self {
        let headers = signer.headers(&Method::GET, "/feed", b"");
        let mut feed = Self::open_with(server, headers).await;
        feed.watch("/timeline").await;
        feed
    }

    async fn open(server: &TestApp, client: &Client) -> Self {
        let session = client.session.as_ref();
        let cookie = session.map(|session| ("cookie", session.cookie.clone()));
        Self::open_with(server, cookie).await
    }

    async fn open_with(
        server: &TestApp,
        headers: impl IntoIterator<Item = (&'static str, String)>,
    ) -> Self {
        let stream = TcpStream::connect(server.address)
            .await
            .expect("it listens");
        let url = format!("ws://{}/feed", server.address);
        let mut request = url.into_client_request().expect("a request");
        for (name, value) in headers {
            let value = value.parse().expect("a header");
            request.headers_mut().insert(name, value);
        }
        let (socket, _) = client_async(request, stream).await.expect("a WebSocket");
        Self(socket)
    }

    async fn watch(&mut self, topic: &str) -> String {
        let command = json!({"watch": {topic: null}}).to_string();
        self.0.send(Message::from(command)).await.expect("it reads");
        match self.next().await {
            Message::Text(text) => text.to_string(),
            other => panic!("no text: {other:?}"),
        }
    }

    async fn watch_bell(&mut self, user: Id) -> String {
        self.watch(&format!("/user/{user}/bell")).await
    }

    /// Returns the code with which the server closes it.
    async fn close_code(&mut self) -> u16 {
        loop {
            if let Message::Close(frame) = self.next().await {
                return frame.expect("it says why").code.into();
            }
        }
    }

    async fn next(&mut self) -> Message {
        let next = timeout(PATIENCE, self.0.next()).await;
        let next = next.expect("the server says something");
        next.expect("it is whole").expect("it is understood")
    }
}
