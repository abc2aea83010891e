//! The files in `cluster/` do not contradict each other, and work with the real programs.

mod kit;
mod deployment {
    pub(crate) mod balancer;
    pub(crate) mod names;
}

use std::collections::HashMap;
use std::ffi::OsString;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use clap::Parser;
use deployment::balancer::{self, Balancer, Replica};
use deployment::names::Names;
use greenroom::bus::{Bus, RedisSettings};
use ipnet::IpNet;
use kit::program::Program;
use social::config::{Args, Role, Settings, StoreSettings};
use url::Url;

/// A time far longer than anything here takes.
const DEADLINE: Duration = Duration::from_mins(2);

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("cluster")
        .join(name)
}

fn read(name: &str) -> String {
    std::fs::read_to_string(path(name)).expect("it is there")
}

/// Returns the variables of a file for systemd.
fn variables(name: &str) -> HashMap<String, String> {
    let text = read(name);
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let pairs = lines.filter_map(|line| line.split_once('='));
    pairs
        .map(|(key, value)| (key.to_owned(), value.trim_matches('"').to_owned()))
        .collect()
}

/// Returns the values of a key of the compose file, without comments and quotes.
fn compose(key: &str) -> Vec<String> {
    let text = read("compose.yaml");
    let lines = text.lines().map(str::trim);
    let values = lines.filter_map(|line| line.strip_prefix(key)?.strip_prefix(": "));
    values
        .map(|value| value.trim_matches(['"', '\'']).to_owned())
        .collect()
}

fn only<T: std::fmt::Debug>(values: Vec<T>) -> T {
    let [value] = <[T; 1]>::try_from(values).expect("there is one");
    value
}

fn has_login(url: &str) -> bool {
    let url = Url::parse(url).expect("a URL");
    !url.username().is_empty() && url.password().is_some_and(|password| !password.is_empty())
}

fn settings_of_the_unit() -> Settings {
    let file = path("systemd/social.toml").display().to_string();
    let args = Args::parse_from(["social", "--config", &file]);
    args.settings().expect("they are settings")
}

#[test]
fn the_unit_listens_where_the_balancer_asks_and_believes_the_balancer_only() {
    let address = &variables("systemd/host.env")["ADDRESS"];
    let here: IpAddr = address.parse().expect("an address");
    assert!(!here.is_loopback(), "the balancer is on another host");
    let unit = read("systemd/social@.service");
    assert!(unit.contains("--listen ${ADDRESS}:500%i "), "{unit}");
    assert!(read("systemd/social.target").contains("Wants=social@1.service"));
    let asked: Vec<SocketAddr> = variables("systemd/haproxy.env")
        .iter()
        .filter(|(name, _)| name.starts_with("REPLICA"))
        .map(|(_, replica)| replica.parse().expect("an address and a port"))
        .collect();
    assert_eq!(asked.len(), 3);
    assert!(asked.contains(&SocketAddr::new(here, 5001)), "{asked:?}");

    let trusted = only(settings_of_the_unit().trusted_proxies);
    assert_eq!(trusted, IpNet::from(trusted.addr()), "one address");
    let balancer = format!("on the balancer's host, {}:", trusted.addr());
    assert!(
        read("systemd/haproxy.env").contains(&balancer),
        "{balancer}"
    );
    assert!(!asked.iter().any(|replica| trusted.contains(&replica.ip())));
}

#[test]
fn the_units_secrets_are_required_and_log_in_everywhere() {
    let unit = read("systemd/social@.service");
    assert!(unit.contains("\nEnvironmentFile=/etc/social/secrets.env\n"));
    let secrets = variables("systemd/secrets.env");
    assert!(has_login(&secrets["SOCIAL_STORE"]), "storage");
    assert!(has_login(&secrets["SOCIAL_REDIS"]), "Redis");
    let store: Result<StoreSettings, _> = secrets["SOCIAL_STORE"].parse();
    store.expect("a storage");
    RedisSettings::new(&secrets["SOCIAL_REDIS"]).expect("an address");
    let settings = settings_of_the_unit();
    assert_eq!(settings.store, StoreSettings::default(), "no secret");
    assert_eq!(settings.redis, None, "no secret");
}

#[test]
fn systemd_understands_the_unit() {
    let directory = tempfile::tempdir().expect("there is room");
    let unit = read("systemd/social@.service");
    let unit = unit.replace("/usr/local/bin/social", env!("CARGO_BIN_EXE_social"));
    let file = directory.path().join("social@1.service");
    std::fs::write(&file, unit).expect("there is room");
    let target = directory.path().join("social.target");
    std::fs::write(&target, read("systemd/social.target")).expect("there is room");
    let output = Command::new("systemd-analyze")
        .arg("verify")
        .args([&file, &target])
        .output()
        .expect("systemd is installed: run `cargo xtask tools`");
    let said = String::from_utf8_lossy(&output.stderr);
    let about_us: Vec<_> = said
        .lines()
        .filter(|line| line.contains("social"))
        .collect();
    assert!(about_us.is_empty(), "{said}");
}

#[test]
fn composed_replicas_believe_their_own_network_only() {
    let text = read("compose.yaml");
    let network = "    name: social\n    external: true\n";
    assert!(text.contains(network), "it has a subnet that is known");
    let trusted = only(compose("SOCIAL_TRUSTED_PROXIES"));
    let trusted = trusted.trim_matches(['[', ']', '"']);
    let trusted: IpNet = trusted.parse().expect("a network");
    for file in ["compose.yaml", "README.md"] {
        let made = format!(" network create --subnet {trusted} social");
        assert!(read(file).contains(&made), "{file} says `{made}`");
    }
    let published = only(compose("ports"));
    assert!(published.contains(":-127.0.0.1:5001}"), "{published}");
}

#[test]
fn composed_services_ask_for_a_password_and_have_none_by_default() {
    for key in ["SOCIAL_STORE", "SOCIAL_REDIS", "SOCIAL_NATS"] {
        let url = only(compose(key));
        assert!(
            url.contains("://social:${") && url.contains(":?set "),
            "{url}"
        );
    }
    let text = read("compose.yaml");
    for asks in [
        r#""default", "off", "resetpass""#,
        r#""social", "on", ">${REDIS_PASSWORD:?"#,
        "--keyFile /tmp/key",
    ] {
        assert!(text.contains(asks), "{asks}");
    }
    let examples = variables("secrets.env.example");
    for secret in text.split("${").skip(1) {
        let (name, rest) = secret.split_once(':').expect("a default, or none");
        if name.ends_with("PASSWORD") || name.ends_with("KEY") {
            assert!(rest.starts_with("?set "), "{name} is required");
            assert_eq!(
                examples[name], "",
                "{name} is in the example, without a value"
            );
        }
    }
}

#[test]
fn composed_processes_do_everything_together() {
    let roles = compose("SOCIAL_ROLE");
    let roles = roles.iter().flat_map(|roles| roles.split(','));
    let roles: Vec<Role> = roles.map(|role| role.parse().expect("a role")).collect();
    for role in Role::ALL {
        assert!(roles.contains(&role), "nobody does {role}");
    }
}

#[test]
fn a_host_for_pictures_needs_what_is_commented_out_in_the_files_and_no_more() {
    let commented = |name: &str| {
        let text = read(name);
        let setting = text.lines().find_map(|line| line.strip_prefix("#SOCIAL_"));
        let (_, value) = setting
            .and_then(|setting| setting.split_once('='))
            .expect("there is one");
        value.trim_matches('\'').to_owned()
    };
    let directory = tempfile::tempdir().expect("there is room");
    let file = directory.path().join("social.toml");
    let nats = commented("systemd/secrets.env");
    std::fs::write(&file, format!("nats = {nats}\n")).expect("there is room");
    let file = file.display().to_string();
    let role = commented("systemd/host.env");
    let args = Args::parse_from(["social", "--config", &file, "--role", &role]);
    let settings = args.settings().expect("they are settings");
    assert_eq!(settings.role, [Role::Images]);
    let nats = settings.nats.expect("it is set");
    assert!(nats.servers.iter().all(|url| has_login(url.as_str())));
    nats.cluster().expect("addresses");
}

#[test]
fn images_are_of_one_version() {
    let dockerfile = read("Dockerfile");
    let bases = dockerfile
        .lines()
        .filter_map(|line| line.strip_prefix("FROM "));
    let bases = bases.map(|base| base.split(' ').next().unwrap_or(base).to_owned());
    for image in compose("image").into_iter().chain(bases) {
        let (repository, tag) = image.rsplit_once(':').expect("a tag");
        let registry = repository.split('/').next().unwrap_or_default();
        let is_full = registry.contains('.') || registry == "localhost";
        assert!(is_full, "{image}: which registry?");
        let numbers = tag
            .split(['.', '-', 'T'])
            .filter(|part| !part.is_empty() && part.chars().all(|letter| letter.is_ascii_digit()));
        let is_dated = tag
            .split('-')
            .any(|part| part.len() == 8 && part.parse::<u32>().is_ok());
        assert!(is_dated || numbers.count() >= 3, "{image}: which version?");
    }
}

#[tokio::test]
async fn the_composed_redis_lets_in_whom_it_should() {
    let commands = compose("command").into_iter();
    let command = only(
        commands
            .filter(|command| command.contains("redis-server"))
            .collect(),
    );
    let words: Vec<String> = serde_json::from_str(&command).expect("a list");
    let options = words.into_iter().skip(1).map(|word| {
        let is_secret = word.starts_with(">${REDIS_PASSWORD:?");
        OsString::from(if is_secret {
            ">secret".to_owned()
        } else {
            word
        })
    });
    let options: Vec<_> = options.collect();
    let own = |port: u16, _: &Path| {
        let port = ["--bind", "127.0.0.1", "--port", &port.to_string()].map(OsString::from);
        port.into_iter().chain(options).collect()
    };
    let redis = Program::start(PathBuf::from("redis-server"), own).await;
    let settings = RedisSettings::new(&format!("redis://127.0.0.1:{}", redis.port()));
    let settings = settings.expect("an address");
    let within = |future| tokio::time::timeout(DEADLINE, future);
    let bus = Bus::redis(settings.clone().login("social", "secret")).expect("a thread");
    let mut subscription = bus.subscribe("/a/*").expect("a pattern");
    within(subscription.established())
        .await
        .expect("in time")
        .expect("allowed");
    bus.publish("/a/b", "in").await.expect("allowed");
    assert!(subscription.recv().await.is_some());

    let url = format!("redis://127.0.0.1:{}", redis.port());
    let stranger = redis::Client::open(url).expect("an address");
    let mut stranger = stranger.get_connection().expect("it listens");
    let refused = redis::cmd("SET").arg("a").arg(1).exec(&mut stranger);
    assert!(
        refused
            .expect_err("no password")
            .to_string()
            .contains("NOAUTH")
    );
}

#[test]
fn haproxy_understands_its_file_with_every_environment() {
    let here = variables("systemd/haproxy.env");
    balancer::check(&path("haproxy.cfg"), |name| here[name].clone());
    let composed = only(
        compose("environment")
            .into_iter()
            .filter(|value| value.contains("REPLICA1"))
            .collect(),
    );
    balancer::check(&path("haproxy.cfg"), |name| {
        let (_, value) = composed
            .split_once(&format!("{name}: \""))
            .expect("it is set");
        value.split('"').next().unwrap_or_default().to_owned()
    });
}

#[tokio::test]
async fn a_replica_that_comes_back_at_another_address_is_found() {
    let names = Names::start().await;
    let old = Replica::start("127.0.0.2:0", "old").await;
    let port = old.address.port();
    names.set("replica.test", old.address.ip());
    let balancer = Balancer::start(
        &read("haproxy.cfg"),
        &names,
        &format!("replica.test:{port}"),
    );
    balancer.until_response("old", DEADLINE).await;
    drop(old);
    balancer
        .until_response("no replica responds", DEADLINE)
        .await;
    let new = Replica::start(&format!("127.0.0.3:{port}"), "new").await;
    names.set("replica.test", new.address.ip());
    balancer.until_response("new", DEADLINE).await;
}
