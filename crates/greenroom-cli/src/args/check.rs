//! Checks of the flags of `greenroom serve` that clap cannot make: some belong only to one kind of
//! application.
//!
//! Only arguments on the command line are refused. The environment may have been set for another
//! call, and a flag wins over it.

use clap::error::ErrorKind;
use clap::{Arg, ArgMatches, Command};

use super::serve::ServeArgs;
use super::{demo, is_said, psgi, sites, stage};

const DAEMONIZE: &str = "-D (--daemonize) is not offered: a service manager does better. \
    With systemd, Type=notify runs `greenroom serve app.psgi` in the foreground, restarts it and \
    keeps its log, and ExecReload=greenroom upgrade $MAINPID exchanges it";

const LISTEN: &str = "--port and --host name the one address to listen on, \
    --listen names addresses too: give either";

/// Returns a fault of `serve`, as read from `matches`, if it has any.
pub(super) fn fault(serve: &ServeArgs, matches: &ArgMatches, command: &Command) -> Option<Fault> {
    let is_said = |id: &str| is_said(matches, id);
    if serve.daemonize {
        return Some(Fault(ErrorKind::UnknownArgument, DAEMONIZE.to_owned()));
    }
    if is_said("listen") && (is_said("port") || is_said("host")) {
        return Some(Fault(ErrorKind::ArgumentConflict, LISTEN.to_owned()));
    }
    if let Some(text) = serve.tls.fault() {
        return Some(Fault(ErrorKind::ArgumentConflict, text));
    }
    if serve.tls.acme.automatic_certificates && serve.sites_file().is_none() {
        let text = "--automatic-certificates is for sites; name other hosts by --domain";
        return Some(Fault(ErrorKind::MissingRequiredArgument, text.to_owned()));
    }
    if let Some(prefix) = serve.repeated_prefix() {
        let text = format!("--mount names {prefix} twice: an application has a prefix of its own");
        return Some(Fault(ErrorKind::ArgumentConflict, text));
    }
    let mut said = command
        .get_arguments()
        .filter(|argument| is_said(argument.get_id().as_str()));
    let served = match serve.sites_file() {
        Some(_) => Served::Sites,
        None if serve.is_psgi() => Served::Psgi,
        None => Served::Demo,
    };
    said.find_map(|argument| misplaced(argument, served))
}

/// A message for the user of the command line, and its kind.
#[derive(Debug)]
pub(super) struct Fault(pub(super) ErrorKind, pub(super) String);

#[derive(Clone, Copy)]
enum Served {
    Demo,
    Psgi,
    Sites,
}

/// Returns the fault of a flag for another kind of application. The headings say what the flags
/// below them are for.
fn misplaced(argument: &Arg, served: Served) -> Option<Fault> {
    let heading = argument.get_help_heading()?;
    let flag = flag(argument);
    match (heading, served) {
        (psgi::HEADING, Served::Sites) => Some(Fault(
            ErrorKind::ArgumentConflict,
            format!(
                "{flag} is for one PSGI application; in a file of sites, each `psgi` has a key \
                 for it"
            ),
        )),
        (sites::HEADING, Served::Demo | Served::Psgi) => Some(Fault(
            ErrorKind::MissingRequiredArgument,
            format!("{flag} is for sites: name their file, as in `greenroom serve greenroom.toml`"),
        )),
        (demo::HEADING, Served::Sites) => Some(Fault(
            ErrorKind::ArgumentConflict,
            format!("{flag} is for the demo application, and sites are to be served"),
        )),
        (psgi::HEADING, Served::Demo) => Some(Fault(
            ErrorKind::MissingRequiredArgument,
            format!(
                "{flag} is for a PSGI application: name its file, as in `greenroom serve app.psgi`"
            ),
        )),
        (demo::HEADING | stage::HEADING, Served::Psgi) => Some(Fault(
            ErrorKind::ArgumentConflict,
            format!(
                "{flag} is for the demo application, and a PSGI application is to be served; \
                 its flags stand in --help under \"{}\"",
                psgi::HEADING
            ),
        )),
        _ => None,
    }
}

fn flag(argument: &Arg) -> String {
    match (argument.get_long(), argument.get_short()) {
        (Some(long), _) => format!("--{long}"),
        (None, Some(short)) => format!("-{short}"),
        (None, None) => argument.get_id().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use crate::args::Args;

    fn read(line: &str) -> Result<Args, String> {
        let words = line.split(' ');
        Args::read(words).map_err(|error| error.to_string())
    }

    #[test]
    fn what_belongs_to_the_application_is_taken_with_it() {
        for line in [
            "greenroom serve",
            "greenroom serve --upstream http://127.0.0.1/ --queue-max 3",
            "greenroom serve --trusted-proxy 10.0.0.0/8 --trusted-proxy fd00::/8,::1/128,::1,unix",
            "greenroom serve --forwarded-header Forwarded --trusted-proxy 10.0.0.1",
            "greenroom serve --proxy-protocol -l :8080 -l /run/a.sock app.psgi",
            "greenroom serve app.psgi",
            "greenroom serve greenroom.toml --watch --stage-threads 2",
            "greenroom serve --workers 3 app.psgi",
            "greenroom serve -a app.psgi --preload-app -Ilib -MPlack::Util -Etest -r",
            "greenroom serve --mount /blog=app.psgi --max-rss 1GiB",
            "greenroom serve --attach /run/directory --host :: -p 80",
            "greenroom serve app.psgi -l :8080 --loops 1 --status-listen [::1]:81",
            "greenroom serve -e sub{} -MPlack::Util --user www-data --group 33 --pid a.pid",
            "greenroom serve -e enable app.psgi --access-log a.log --error-log b.log",
            "greenroom serve -l localhost:80 -l [::1]:81 --backlog 128",
        ] {
            if let Err(error) = read(line) {
                panic!("{line}: {error}");
            }
        }
    }

    #[test]
    fn a_network_that_is_none_is_refused() {
        let error = read("greenroom serve --trusted-proxy 10.0.0.0/33").expect_err("33 bits");
        assert!(
            error.contains("'10.0.0.0/33' for '--trusted-proxy <NETWORK>'"),
            "{error}"
        );
        assert!(error.contains("such as 10.0.0.0/8"), "{error}");
    }

    #[test]
    fn what_does_not_belong_together_is_refused_by_name() {
        for (line, expected) in [
            ("greenroom serve --workers 3", "--workers is for a PSGI"),
            ("greenroom serve -I lib", "-I is for a PSGI"),
            ("greenroom serve --workers 3 a.toml", "is for one PSGI"),
            (
                "greenroom serve --upstream http://[::1]/ a.toml",
                "the demo",
            ),
            ("greenroom serve --watch a.psgi", "--watch is for sites"),
            (
                "greenroom serve --automatic-certificates a.psgi",
                "--automatic-certificates is for sites",
            ),
            ("greenroom serve --reload", "--reload is for a PSGI"),
            (
                "greenroom serve a.psgi --queue-max 3",
                "--queue-max is for the demo",
            ),
            (
                "greenroom serve -a a.psgi --upstream http://[::1]/",
                "--upstream is for the demo",
            ),
            ("greenroom serve a.psgi -l :80 -p 80", "--port and --host"),
            ("greenroom serve -l :80 -o ::", "--port and --host"),
            ("greenroom serve --mount /a=b --mount /a=c", "/a twice"),
            ("greenroom serve a.psgi -D", "systemd"),
            ("greenroom serve a.psgi -a b.psgi", "cannot be used with"),
            ("greenroom serve a.psgi --attach b", "cannot be used with"),
            ("greenroom serve -e a --attach b", "cannot be used with"),
            (
                "greenroom serve --access-log a --no-access-log",
                "cannot be used with",
            ),
            (
                "greenroom serve --cert a --key a --cert b",
                "there are 2 and 1",
            ),
            ("greenroom serve --listen-plain :80", "is for TLS"),
            ("greenroom serve --client-ca a", "is for TLS"),
            #[cfg(feature = "http3")]
            ("greenroom serve --http3", "--http3 is for TLS"),
            ("greenroom serve --cert a", "there are 1 and 0"),
            (
                "greenroom serve --cert a --key a --tls-self-signed",
                "give either",
            ),
            ("greenroom serve --ssl-cert a a.psgi", "use --cert"),
            ("greenroom serve --max-workers 3 a.psgi", "use --workers"),
            ("greenroom serve -S a.sock a.psgi", "use --listen"),
        ] {
            let error = read(line).expect_err(line);
            assert!(error.contains(expected), "{line}: {error}");
            assert!(error.contains("greenroom serve"), "{line}: {error}");
        }
    }
}
