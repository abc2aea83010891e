//! Connections by TLS, and the ways to log in.

use std::fs;
use std::path::PathBuf;

use greenroom_cluster::{Cluster, ClusterSettings, ConnectError};
use greenroom_test_servers::{Certificates, NatsServer};

use tempfile::TempDir;

use crate::counter::LONG;

async fn connect(settings: ClusterSettings) -> Result<Cluster, ConnectError> {
    Cluster::connect(settings.connect_timeout(LONG)).await
}

fn settings(server: &NatsServer) -> ClusterSettings {
    ClusterSettings::new(&server.url()).expect("an address")
}

/// Writes a text to a file of its own, and returns its path.
fn file(directory: &TempDir, name: &str, text: &str) -> PathBuf {
    let path = directory.path().join(name);
    fs::write(&path, text).expect("the directory is ours");
    path
}

#[tokio::test]
async fn servers_and_nodes_know_each_other_by_certificates() {
    let (ours, theirs) = (Certificates::new(), Certificates::new());
    let directory = TempDir::new().expect("a directory");
    let authority = file(&directory, "ca.pem", &ours.authority);
    let other = file(&directory, "other.pem", &theirs.authority);
    let client = file(&directory, "client.pem", &ours.client);
    let key = file(&directory, "client.key", &ours.client_key);
    let server = NatsServer::settings();
    let server = server.jet_stream().tls(&ours, true).start();
    let roots = settings(&server).tls_roots(&authority);
    let known = roots.clone().tls_identity(&client, &key);
    let cluster = connect(known).await.expect("both know each other");
    assert!(cluster.status().is_connected);
    connect(roots)
        .await
        .expect_err("the node shows no certificate");
    let wrong = settings(&server).tls_roots(&other);
    let wrong = wrong.tls_identity(&client, &key);
    let error = connect(wrong)
        .await
        .expect_err("it is of another authority");
    let text = error.to_string();
    assert!(text.starts_with("NATS cannot be reached: "), "{text}");
    assert!(text.contains("certificate"), "{text}");
}

#[tokio::test]
async fn a_node_logs_in_by_a_token() {
    let token = "authorization { token: secret }";
    let server = NatsServer::settings().jet_stream().lines(token).start();
    connect(settings(&server).token("secret"))
        .await
        .expect("it is right");
    let error = connect(settings(&server).token("wrong"))
        .await
        .expect_err("it is not");
    assert!(!error.to_string().contains("wrong"), "{error}");
    assert!(!format!("{:?}", settings(&server).token("wrong")).contains("wrong"));
}

#[tokio::test]
async fn a_node_logs_in_by_an_nkey() {
    let keys = nkeys::KeyPair::new_user();
    let users = format!(
        "authorization {{ users: [ {{ nkey: {} }} ] }}",
        keys.public_key()
    );
    let server = NatsServer::settings().jet_stream().lines(&users).start();
    let seed = keys.seed().expect("it has one");
    connect(settings(&server).nkey(seed))
        .await
        .expect("it is right");
    let other = nkeys::KeyPair::new_user().seed().expect("it has one");
    connect(settings(&server).nkey(other))
        .await
        .expect_err("it is not");
}

#[tokio::test]
async fn credentials_that_are_not_there_are_named() {
    let server = NatsServer::settings().jet_stream().start();
    let error = connect(settings(&server).credentials_file("/nowhere.creds")).await;
    let error = error.expect_err("there is no such file");
    assert!(matches!(error, ConnectError::Credentials(_)), "{error}");
}
