//! `docs/command-line.md` and the tables of `docs/limits.md`, made of the definitions of flags and
//! of settings, and the check that the commands which the documents name are understood.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs};

use clap::CommandFactory;
use clap::error::ErrorKind;
use greenroom::psgi::GatewaySettings;
use greenroom::{Limits, StageSettings, Unit};

use super::Args;
use super::settings::Flags;

const PAGE: &str = "docs/command-line.md";
/// If this is set, the files made of the flags are written before they are compared.
const WRITE: &str = "GREENROOM_WRITE_PAGE";
const COLUMNS: usize = 100;
const HEAD: &str = "\
# Command line

<!-- Made of the definition of the flags by `make pages`. -->

The help of each command, as `--help` prints it. A value's default stands behind it, and so does the
environment variable that sets it; a flag wins over its variable.
";

const LIMITS_PAGE: &str = "docs/limits.md";
/// Of the page of limits, the text above it and below the end is written by hand.
const LIMITS_BEGIN: &str = "<!-- Made of the definitions of the settings by `make pages`. -->\n";
const LIMITS_END: &str = "<!-- End of what is made. -->\n";
const STAGES: &str = "
## Stages

The fields of `greenroom::StageSettings`, and setters of `Stage::builder`. The threads that may
compute at a time, by default one for each core, are set by `threads` and `--stage-threads`.
";
const PERL_APPLICATIONS: &str = "
## Perl applications

The fields of `greenroom::psgi::GatewaySettings`, and setters of `Gateway::builder`. `greenroom
serve` takes two of them from the server's: `body_bytes_max` and `drain_deadline`.
";

/// Returns the root of the project.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Asserts that the file at this path below the root is what the flags make it.
#[track_caller]
pub(super) fn assert_made(file: &str, made: &str) {
    let path = root().join(file);
    if env::var_os(WRITE).is_some() {
        fs::write(&path, made).expect("the file can be written");
    }
    let written = fs::read_to_string(&path).expect("the file is there");
    assert!(
        written == made,
        "{file} is not what the definitions make it: run `make pages`"
    );
}

/// Returns the page: a section for each command, the ones below it included.
fn page() -> String {
    let mut command = Args::command().term_width(COLUMNS);
    command.build();
    let mut page = HEAD.to_owned();
    add(&command, "greenroom", &mut page);
    page
}

fn add(command: &clap::Command, name: &str, page: &mut String) {
    let help = command.clone().render_long_help().to_string();
    let lines: Vec<&str> = help.lines().map(str::trim_end).collect();
    let text = lines.join("\n");
    let text = text.trim_end();
    // Writing to a string cannot fail.
    let _written = writeln!(page, "\n## {name}\n\n```text\n{text}\n```");
    for below in command.get_subcommands() {
        if below.get_name() != "help" && !below.is_hide_set() {
            add(below, &format!("{name} {}", below.get_name()), page);
        }
    }
}

/// Returns the page of limits, with the text of it that is written by hand.
fn limits_page() -> String {
    let page = fs::read_to_string(root().join(LIMITS_PAGE)).expect("the page can be read");
    let (before, rest) = page
        .split_once(LIMITS_BEGIN)
        .expect("the page has its mark");
    let (_, after) = rest.split_once(LIMITS_END).expect("the tables have an end");
    let mut page = format!("{before}{LIMITS_BEGIN}");
    add_settings::<Limits>("", &mut page);
    add_settings::<StageSettings>(STAGES, &mut page);
    add_settings::<GatewaySettings>(PERL_APPLICATIONS, &mut page);
    page + "\n" + LIMITS_END + after
}

/// Adds the table of some settings, and the names of their flags where those differ.
fn add_settings<T: Flags>(head: &str, page: &mut String) {
    *page += head;
    *page += "\n| setting | default | allowed | |\n|---|---|---|---|\n";
    for setting in T::settings() {
        let name = setting.name();
        let (default, allowed) = (setting.default_text(), setting.allowed());
        let unit = match setting.unit() {
            Unit::Number => "",
            Unit::Size => " (a size)",
            Unit::Time => " (a time)",
        };
        let flag = T::flag_of(name).filter(|flag| *flag != name);
        let flag = flag.map(|flag| format!("; `--{}`", flag.replace('_', "-")));
        let details: Vec<&str> = setting.details().collect();
        let text = format!("**{}**{unit}. {}", setting.summary(), details.join(" "));
        // Writing to a string cannot fail.
        let _written = writeln!(
            page,
            "| `{name}`{} | {default} | {allowed} | {} |",
            flag.unwrap_or_default(),
            text.trim_end()
        );
    }
}

/// Returns the documents that users read.
fn documents() -> Vec<PathBuf> {
    let mut documents = vec![root().join("README.md")];
    for folder in [
        "docs",
        "examples",
        "crates/greenroom-cli",
        "crates/greenroom-load",
    ] {
        let entries = fs::read_dir(root().join(folder)).expect("the folder is there");
        let paths = entries.map(|entry| entry.expect("it can be listed").path());
        documents.extend(paths.filter(|path| path.extension().is_some_and(|end| end == "md")));
    }
    documents
}

/// Returns the commands of `greenroom` within blocks of code, one line each, without those that
/// leave something out.
fn commands(document: &str) -> Vec<String> {
    let mut is_code = false;
    let mut commands = Vec::new();
    for line in document.replace("\\\n", " ").lines() {
        if line.starts_with("```") {
            is_code = !is_code;
        }
        let line = line.trim_start();
        let is_command = [
            "serve",
            "bench",
            "check",
            "completions",
            "config",
            "reload",
            "schema",
            "upgrade",
        ]
        .iter()
        .any(|name| line.starts_with(&format!("greenroom {name} ")));
        let is_whole = ![" <", "…"].iter().any(|gap| line.contains(gap));
        if is_code && is_command && is_whole {
            commands.push(line.to_owned());
        }
    }
    commands
}

/// Returns the words of a command for `greenroom`, up to a pipe or the like.
fn words(command: &str) -> Vec<String> {
    let words = shlex::split(command).unwrap_or_default();
    let is_of_shell = |word: &String| ["|", "&", "&&", ";", ">", "2>"].contains(&word.as_str());
    words
        .into_iter()
        .take_while(|word| !is_of_shell(word))
        .collect()
}

#[test]
fn the_page_tells_the_flags() {
    assert_made(PAGE, &page());
}

#[test]
fn the_page_tells_the_limits() {
    assert_made(LIMITS_PAGE, &limits_page());
}

#[test]
fn commands_in_the_documents_are_understood() {
    let mut seen = 0;
    for document in documents() {
        let text = fs::read_to_string(&document).expect("the document can be read");
        for command in commands(&text) {
            seen += 1;
            let Err(error) = Args::read(words(&command)) else {
                continue;
            };
            let is_help = matches!(error.kind(), ErrorKind::DisplayHelp);
            assert!(is_help, "{}: {command}\n{error}", document.display());
        }
    }
    assert!(seen >= 20, "{seen} commands were found");
}
