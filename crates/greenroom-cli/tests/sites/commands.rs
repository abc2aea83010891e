//! `greenroom check`, `config` and `schema`, and what the file sets of the server.

use std::fs;
use std::io::Read;

use crate::program::{Running, command, output};
use crate::site::{Directory, Response, Site, begin};
use crate::text;

const SERVED: &str = r#"
[server]
listen = ["127.0.0.1:0"]
access_log = "access.log"
loops = 2
[server.limits]
head_timeout = "5s"
[[site]]
[[site.route]]
path = "/"
respond = "fine"
"#;

#[test]
fn check_tells_all_faults_with_their_place() {
    let directory = Directory::new(SERVED);
    let checked = output(&["check", &directory.file()]);
    assert_eq!(checked.status.code(), Some(0), "{checked:?}");
    directory.write(
        "greenroom.toml",
        "[server]\nloops = 0\nlissten = \":80\"\nlog_format = \"xml\"\nno_access_log = 1\n\
         [server.limits]\nfields_max = 300\n\
         [[site]]\n[[site.route]]\npath = \"/\"\nfiles = \"nowhere\"\n",
    );
    let checked = output(&["check", &directory.file()]);
    assert_eq!(checked.status.code(), Some(2));
    let (_, said) = text(&checked);
    for expected in [
        "greenroom.toml:2:9: number would be zero for non-zero type",
        "greenroom.toml:3:1: there is no `lissten`; did you mean `listen`?",
        "greenroom.toml:4:14: `xml` is not allowed; allowed: human, json",
        "greenroom.toml:5:17: expected true or false",
        "greenroom.toml:7:14: 300 is not allowed; allowed: 1 to 256",
        "greenroom.toml:11:9: ",
    ] {
        assert!(said.contains(expected), "{expected}\n{said}");
    }
    let served = output(&["serve", &directory.file()]);
    assert_eq!(served.status.code(), Some(2));
    assert!(
        text(&served).1.contains("did you mean `listen`?"),
        "{served:?}"
    );
    let missing = output(&["check", "/nowhere/a.toml"]);
    assert_eq!(missing.status.code(), Some(2));
}

#[test]
fn config_tells_where_each_value_comes_from() {
    let directory = Directory::new(SERVED);
    let file = directory.file();
    let mut config = command(&["config", &file, "--", "--loops", "3"]);
    let listed = config
        .env("GREENROOM_FIELDS_MAX", "9")
        .output()
        .expect("it runs");
    assert_eq!(listed.status.code(), Some(0), "{listed:?}");
    let (listed, _) = text(&listed);
    let origin = |key: &str, value: &str| {
        let line = listed
            .lines()
            .find(|line| line.starts_with(&format!("{key} = {value} ")));
        let line = line.unwrap_or_else(|| panic!("no {key} = {value} in\n{listed}"));
        line.rsplit("# ").next().unwrap_or_default().to_owned()
    };
    assert_eq!(origin("server.loops", "\"3\""), "--loops");
    assert_eq!(
        origin("server.listen", "[\"127.0.0.1:0\"]"),
        format!("{file}:3")
    );
    assert_eq!(
        origin("server.limits.fields_max", "\"9\""),
        "GREENROOM_FIELDS_MAX"
    );
    assert_eq!(
        origin("server.limits.head_timeout", "\"5s\""),
        format!("{file}:7")
    );
    assert_eq!(
        origin("server.limits.keep_alive_timeout", "\"1m 15s\"").as_str(),
        "default"
    );
    assert_eq!(
        origin("site[0].route[0].respond.body", "\"fine\""),
        format!("{file}:11")
    );
    assert_eq!(origin("site[0].route[0].respond.status", "200"), "default");
}

#[test]
fn flags_win_over_the_file_and_paths_are_the_file_s() {
    let directory = Directory::new(SERVED);
    let site = Site::serve(directory, &["--loops", "1"]);
    assert_eq!(site.get("/").text(), "fine");
    let log = site.directory.path("access.log");
    assert!(fs::metadata(log).is_ok(), "the log is beside the file");
}

#[test]
fn the_file_may_stand_behind_two_dashes() {
    let directory = Directory::new(SERVED);
    let file = directory.file();
    let server = Running::start(&mut command(&["serve", "--loops", "1", "--", &file]));
    let mut connection = begin(&server.address, "GET", "/", "Host: localhost\r\n");
    let mut bytes = Vec::new();
    connection.read_to_end(&mut bytes).expect("it ends");
    assert_eq!(Response::parse(&bytes).text(), "fine");
    assert!(directory.path("access.log").exists());
}

#[test]
fn all_paths_of_the_server_are_relative_to_the_file() {
    let directory = Directory::new(
        "[server]\ncert = \"a.pem,b.pem\"\nkey = [\"a.key\", \"b.key\"]\n\
         client_ca = \"/whole/ca.pem\"\npid = \"run/pid\"\n\
         otlp_ca_file = \"otlp/ca.pem\"\notlp_client_certificate = \"otlp.pem\"\n\
         otlp_client_key = \"otlp.key\"\n\
         [[site]]\n[[site.route]]\npath = \"/\"\nrespond = \"fine\"\n",
    );
    let listed = output(&["config", &directory.file()]);
    let (listed, said) = text(&listed);
    let here = |name: &str| format!("{:?}", directory.path(name).display().to_string());
    let both = |names: [&str; 2]| format!("[{}]", names.map(here).join(", "));
    for (key, value) in [
        ("cert", both(["a.pem", "b.pem"])),
        ("key", both(["a.key", "b.key"])),
        ("client_ca", "\"/whole/ca.pem\"".to_owned()),
        ("pid", here("run/pid")),
        ("otlp_ca_file", here("otlp/ca.pem")),
        ("otlp_client_certificate", here("otlp.pem")),
        ("otlp_client_key", here("otlp.key")),
    ] {
        let line = format!("server.{key} = {value} ");
        assert!(listed.contains(&line), "{line}\n{listed}{said}");
    }
    for key in ["otlp_ca_file", "access_log"] {
        directory.write("greenroom.toml", format!("[server]\n{key} = \"\"\n"));
        let checked = output(&["check", &directory.file()]);
        assert_eq!(checked.status.code(), Some(2));
        let (_, said) = text(&checked);
        assert!(said.contains("the value is empty"), "{key}: {said}");
    }
}

#[test]
fn the_schema_has_all_keys_and_the_examples_keep_it() {
    let printed = output(&["schema"]);
    let schema: serde_json::Value = serde_json::from_slice(&printed.stdout).expect("JSON");
    let server = &schema["properties"]["server"]["properties"];
    assert!(server["listen"].is_object(), "{server}");
    assert!(server["limits"]["properties"]["head_timeout"].is_object());
    let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/sites");
    let mut seen = 0;
    for entry in fs::read_dir(examples).expect("the examples are there") {
        let path = entry.expect("it can be listed").path();
        if path.extension().is_none_or(|end| end != "toml") {
            continue;
        }
        seen += 1;
        let file = path.display().to_string();
        let checked = output(&["check", &file]);
        assert_eq!(
            checked.status.code(),
            Some(0),
            "{file}: {}",
            text(&checked).1
        );
        let toml: toml::Value =
            toml::from_str(&fs::read_to_string(&path).expect("it can be read")).expect("TOML");
        let json = serde_json::to_value(toml).expect("JSON");
        assert_kept(&schema, &json, &file);
    }
    assert_eq!(seen, 4);
}

/// Asserts that a value keeps the parts of a schema that are used here.
fn assert_kept(schema: &serde_json::Value, value: &serde_json::Value, place: &str) {
    assert!(keeps(schema, value), "{place}: {value}\n{schema:#}");
}

fn keeps(schema: &serde_json::Value, value: &serde_json::Value) -> bool {
    if let Some(any) = schema["anyOf"].as_array() {
        return any.iter().any(|schema| keeps(schema, value));
    }
    if let Some(one) = schema.get("const") {
        return one == value;
    }
    if let Some(allowed) = schema["enum"].as_array() {
        return allowed.contains(value);
    }
    let is = |kind: &str| match kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_u64(),
        "boolean" => value.is_boolean(),
        _ => false,
    };
    let kinds = &schema["type"];
    let of_kind = kinds.as_str().is_some_and(is)
        || kinds
            .as_array()
            .is_some_and(|kinds| kinds.iter().filter_map(|kind| kind.as_str()).any(is));
    let items = value.as_array().into_iter().flatten();
    let (all, required) = (schema["items"].is_object(), schema["required"].as_array());
    let fields = value.as_object();
    of_kind
        && items
            .clone()
            .all(|item| !all || keeps(&schema["items"], item))
        && required
            .into_iter()
            .flatten()
            .filter_map(|name| name.as_str())
            .all(|name| fields.is_some_and(|fields| fields.contains_key(name)))
        && fields.into_iter().flatten().all(|(name, value)| {
            let known = &schema["properties"][name];
            let others = &schema["additionalProperties"];
            match (known.is_object(), others.is_object()) {
                (true, _) => keeps(known, value),
                (false, true) => keeps(others, value),
                (false, false) => false,
            }
        })
}
