//! TLS.

use greenroom_test_servers::Certificates;

use crate::kit::{failure, gap, publish, publish_at_last, subscribe, text, within};
use crate::server::{Clients, Server, impatient};

#[tokio::test]
async fn a_server_with_tls_is_spoken_to_also_after_it_was_killed() {
    let certificates = Certificates::new();
    let mut server = Server::start_tls(&certificates, Clients::Anybody);
    let bus = || {
        let settings = server
            .tls_settings("localhost")
            .tls_roots(&*certificates.authority);
        impatient(settings.expect("PEM"))
    };
    let (here, there) = (bus(), bus());
    let mut subscription = subscribe(&there, "/a").await;
    within(here.connected()).await;
    publish(&here, "/a", "before").await;
    assert_eq!(text(&mut subscription).await, "before");
    server.kill();
    server.run();
    gap(&mut subscription).await;
    publish_at_last(&here, "/a", "after").await;
    assert_eq!(text(&mut subscription).await, "after");
}

#[tokio::test]
async fn a_server_that_asks_for_a_certificate_gets_it_or_says_no() {
    let certificates = Certificates::new();
    let server = Server::start_tls(&certificates, Clients::Signed);
    let nobody = server
        .tls_settings("localhost")
        .tls_roots(&*certificates.authority);
    let nobody = nobody.expect("PEM");
    let client = nobody.clone();
    let client = client.tls_identity(&*certificates.client, &*certificates.client_key);
    let client = impatient(client.expect("PEM"));
    let mut subscription = subscribe(&client, "/a").await;
    publish(&client, "/a", "in").await;
    assert_eq!(text(&mut subscription).await, "in");
    let error = failure(&impatient(nobody)).await;
    assert!(!error.is_empty());
}

#[tokio::test]
async fn a_server_that_nobody_vouches_for_is_not_spoken_to() {
    let server = Server::start_tls(&Certificates::new(), Clients::Anybody);
    let others = server
        .tls_settings("localhost")
        .tls_roots(Certificates::new().authority);
    let error = failure(&impatient(others.expect("PEM"))).await;
    assert!(error.contains("certificate"), "{error}");
}

#[tokio::test]
async fn a_certificate_for_another_host_is_not_accepted() {
    let certificates = Certificates::new();
    let server = Server::start_tls(&certificates, Clients::Anybody);
    let settings = server.tls_settings("127.0.0.1");
    let settings = settings.tls_roots(certificates.authority).expect("PEM");
    let error = failure(&impatient(settings)).await;
    assert!(error.contains("certificate"), "{error}");
}
