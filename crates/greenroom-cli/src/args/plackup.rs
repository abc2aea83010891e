//! The flags that `plackup -s Greenroom` passes on: those of `greenroom serve`, but for those that
//! plackup handles itself. The handler has them in a Perl file, which is compared with their
//! definition here.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use clap::{Arg, ArgAction, CommandFactory};

use super::page::assert_made;
use super::{Args, demo, sites, stage};

const FILE: &str = "crates/greenroom-psgi/perl/lib/Plack/Handler/Greenroom/Flags.pm";

/// Flags that are not passed on. The handler derives addresses and the access log from plackup's
/// options of that name, and plackup loads the application, with the rights of its process.
const NOT_PASSED_ON: &[&str] = &[
    "access-log",
    "access-log-format",
    "allow-new-privileges",
    "app",
    "automatic-certificates",
    "env",
    "group",
    "help",
    "host",
    "listen",
    "mount",
    "no-access-log",
    "perl",
    "port",
    "preload",
    "reload",
    "start-timeout",
    "user",
];

const HEAD: &str = "\
# Flags of `greenroom serve` that plackup -s Greenroom passes on, with what they take; a switch \
takes nothing.
# Made from their definition by `make pages`.
package Plack::Handler::Greenroom::Flags;

use strict;
use warnings;

our %VALUE = (
";

/// The flags, each with the name of its value, as Perl.
fn flags() -> String {
    let command = Args::command();
    let serve = command.find_subcommand("serve").expect("it serves");
    let flags: BTreeMap<_, _> = serve.get_arguments().filter_map(passed_on).collect();
    let mut perl = HEAD.to_owned();
    for (flag, value) in flags {
        writeln!(perl, "    {:<27} => '{value}',", format!("'{flag}'")).expect("a string grows");
    }
    perl + ");\n\n1;\n"
}

fn passed_on(flag: &Arg) -> Option<(&str, &str)> {
    let long = flag.get_long()?;
    let heading = flag.get_help_heading();
    let of_others = [demo::HEADING, sites::HEADING, stage::HEADING].map(Some);
    if flag.is_hide_set() || of_others.contains(&heading) || NOT_PASSED_ON.contains(&long) {
        return None;
    }
    if matches!(flag.get_action(), ArgAction::SetTrue) {
        return Some((long, ""));
    }
    let value = flag.get_value_names().and_then(|names| names.first());
    Some((long, value.map_or("VALUE", |name| name.as_str())))
}

#[test]
fn the_handler_knows_all_flags() {
    assert_made(FILE, &flags());
}
