use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};

use http::{Method, StatusCode};
use jiff::Timestamp;
use serde_json::{Value, json};
use social::config::StoreSettings;

use super::signed::Signer;
use crate::kit::app::{TestApp, send};

/// Returns method and path of all operations.
fn operations(description: &Value) -> Vec<(String, String, &Value)> {
    let paths = description["paths"].as_object().expect("it has paths");
    let of_path = |(path, item): (&String, &Value)| {
        let item: Vec<_> = item
            .as_object()
            .expect("it has operations")
            .keys()
            .cloned()
            .collect();
        let path = path.clone();
        item.into_iter()
            .map(move |method| (method.to_uppercase(), path.clone()))
    };
    let names = paths.iter().flat_map(of_path);
    let with_operation = |(method, path): (String, String)| {
        let operation = &description["paths"][&path][method.to_lowercase()];
        (method, path, operation)
    };
    names.map(with_operation).collect()
}

/// Requests each operation: the router has all of them, and, as it says itself in the end, no
/// others.
pub(crate) async fn the_description_names_every_route(store: StoreSettings) {
    let server = TestApp::on(store).await;
    let client = server.client();
    let description: Value = client.get("/api/openapi.json").await.json(StatusCode::OK);
    let operations = operations(&description);
    assert!(operations.len() >= 33, "{} operations", operations.len());
    for (method, path, _) in &operations {
        let asked = path.replace("{id}", "0198c0ffee007abc8def0123456789ab");
        let asked = asked.replace("{name}", "nobody").replace("{size}", "small");
        let method: Method = method.parse().expect("a method");
        let response = send(client.request(method.clone(), &asked)).await;
        assert_ne!(
            response.status,
            StatusCode::METHOD_NOT_ALLOWED,
            "{method} {path}"
        );
        let body = String::from_utf8_lossy(&response.body);
        assert!(!body.contains("address in this API"), "{method} {path}");
    }
    let described: BTreeSet<&str> = operations
        .iter()
        .map(|(_, path, _)| path.as_str())
        .collect();
    let beside = ["/api", "/api/openapi.json", "/api/{*rest}"];
    for route in server.status().routes {
        let is_ours = ["/api", "/files", "/time", "/feed"]
            .iter()
            .any(|start| route.path.starts_with(start));
        let is_known =
            described.contains(route.path.as_str()) || beside.contains(&route.path.as_str());
        assert!(!is_ours || is_known, "{} is not described", route.path);
    }
    let page = client.get("/api").await;
    let page = String::from_utf8_lossy(&page.body).into_owned();
    for (method, path, _) in &operations {
        assert!(
            page.contains(&format!("{method} {path}")),
            "{method} {path}"
        );
    }
}

/// References resolve, names are unique, parameters of paths are described, every operation lists
/// its responses.
pub(crate) async fn the_description_is_complete(store: StoreSettings) {
    let server = TestApp::on(store).await;
    let response = server.client().get("/api/openapi.json").await;
    let description: Value = response.json(StatusCode::OK);
    assert!(
        description["openapi"]
            .as_str()
            .is_some_and(|version| version.starts_with("3."))
    );
    let mut references = Vec::new();
    collect_references(&description, &mut references);
    assert!(references.len() > 50, "{}", references.len());
    for reference in references {
        let pointer = reference
            .strip_prefix('#')
            .expect("it is within the document");
        assert!(
            description.pointer(pointer).is_some(),
            "{reference} leads nowhere"
        );
    }
    let mut names = BTreeSet::new();
    for (method, path, operation) in operations(&description) {
        let name = operation["operationId"].as_str().unwrap_or_default();
        assert!(
            names.insert(name) && !name.is_empty(),
            "{method} {path}: `{name}`"
        );
        assert!(
            operation["summary"].is_string(),
            "{method} {path} has no summary"
        );
        assert!(
            operation["responses"]
                .as_object()
                .is_some_and(|all| !all.is_empty())
        );
        let parameters = operation["parameters"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        for parameter in ["id", "name", "size"] {
            let is_described = parameters
                .iter()
                .any(|described| described["in"] == "path" && described["name"] == parameter);
            assert_eq!(
                path.contains(&format!("{{{parameter}}}")),
                is_described,
                "{method} {path}"
            );
        }
        let schemes = operation["security"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        for scheme in schemes
            .iter()
            .filter_map(Value::as_object)
            .flat_map(|scheme| scheme.keys())
        {
            let known = &description["components"]["securitySchemes"][scheme];
            assert!(known.is_object(), "{method} {path}: {scheme}");
        }
    }
}

fn collect_references(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            if let Some(Value::String(reference)) = members.get("$ref") {
                found.push(reference.clone());
            }
            members
                .values()
                .for_each(|member| collect_references(member, found));
        }
        Value::Array(items) => items
            .iter()
            .for_each(|item| collect_references(item, found)),
        _ => {}
    }
}

pub(crate) async fn programs_learn_the_time(store: StoreSettings) {
    let server = TestApp::on(store).await;
    let before = Timestamp::now().as_millisecond();
    let time: Value = server.client().get("/time").await.json(StatusCode::OK);
    let reported = time["unix_millis"].as_i64().expect("a number");
    assert!(
        (before..=Timestamp::now().as_millisecond()).contains(&reported),
        "{reported}"
    );
}

/// Runs the script of `docs/api.md` as it stands there.
pub(crate) async fn the_example_of_the_documentation_works(store: StoreSettings) {
    let server = TestApp::on(store).await;
    let ada = server.user("ada").await;
    let signer = Signer::of(&ada).await;
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/api.md");
    let text = std::fs::read_to_string(path).expect("the documentation is there");
    let script = text
        .split("```sh\n#!/bin/sh\n")
        .nth(1)
        .expect("it has a script");
    let script = script
        .split("```")
        .next()
        .expect("it has an end")
        .to_owned();
    let mut command = Command::new("sh");
    command
        .args(["-c", &script])
        .env("SERVER", format!("http://{}", server.address))
        .env("KEY_ID", &signer.key)
        .env("KEY_SECRET", hex::encode(&signer.secret))
        .stdin(Stdio::null());
    let output = tokio::task::spawn_blocking(move || command.output()).await;
    let output = output
        .expect("it does not panic")
        .expect("there is a shell");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let made: Value = serde_json::from_slice(&output.stdout).expect("it shows the response");
    assert_eq!(made["title"], "From a script", "{made}");
    let albums: Value = ada.get("/api/users/ada/albums").await.json(StatusCode::OK);
    assert_eq!(albums, json!([made]));
}
