//! Replacements for flags of other servers of Perl applications.

/// Flags of plackup, Starman, Starlet, Twiggy, Feersum and `start_server`, grouped by their hint.
const HINTS: &[(&[&str], &str)] = &[
    (&["--max-workers", "--pre-fork"], "use --workers NUMBER"),
    (
        &["--max-reqs-per-child", "--min-reqs-per-child"],
        "use --max-requests NUMBER; each worker gets up to a tenth fewer, by chance",
    ),
    (
        &["--keepalive-timeout"],
        "use --keep-alive-timeout TIME, such as 15s; an idle connection costs no worker",
    ),
    (
        &[
            "--disable-keepalive",
            "--keepalive",
            "--max-keepalive-reqs",
            "--max-connection-reqs",
        ],
        "it is not needed: connections are kept, cost no worker, and end after \
            --keep-alive-timeout",
    ),
    (
        &["--read-timeout", "--header-timeout"],
        "use --head-timeout TIME for a request's head, and --body-grace and --body-rate-min for \
            its body",
    ),
    (&["-S", "--socket"], "use --listen /path/to.sock"),
    (
        &["-s", "--server"],
        "it is not needed: greenroom is the server",
    ),
    (
        &["-R", "--Reload"],
        "use --reload, which watches the application's directory and those of -I",
    ),
    (
        &["-L", "--loader"],
        "--reload starts new workers when files change, and --preload loads before workers are \
            forked; else each loads the application itself",
    ),
    (&["--path"], "use --mount '/path=app.psgi'"),
    (
        &["--default-middleware", "--no-default-middleware"],
        "it is not needed: only -E development wraps anything around the application",
    ),
    (&["--pid-file", "--pidfile"], "use --pid FILE"),
    (
        &["--log-file"],
        "use --error-log FILE, and --access-log FILE for a line for each request",
    ),
    (
        &["--ssl-cert", "--ssl-cert-file", "--tls-cert"],
        "use --cert FILE, and --key FILE",
    ),
    (
        &["--ssl-key", "--ssl-key-file", "--tls-key"],
        "use --key FILE, and --cert FILE",
    ),
    (
        &["--enable-ssl", "--disable-ssl", "--ssl"],
        "TLS is spoken if there is a certificate: use --cert FILE and --key FILE",
    ),
    (
        &["--disable-proctitle", "--proctitle"],
        "processes are always named, in ps as greenroom worker",
    ),
    (
        &["--spawn-interval", "--interval", "--err-respawn-interval"],
        "it is not needed: workers that end in a row are replaced after growing rests, and a \
            reload fails no request",
    ),
    (
        &[
            "--reuseport",
            "--max-readahead",
            "--disable-sendfile",
            "--read-chunk-size",
        ],
        "it is not needed here",
    ),
    (
        &["--setsid", "--background"],
        "a service manager starts it in the background, and keeps its log",
    ),
    (&["-v", "--version"], "use greenroom --version"),
];

/// Returns the hint for `flag`, if another server has it.
pub(super) fn instead_of(flag: &str) -> Option<&'static str> {
    if flag.starts_with("--net_server_") || flag.starts_with("--net-server-") {
        return Some(
            "options of Net::Server are Starman's own; greenroom serve --help lists what there is \
                here",
        );
    }
    let said = HINTS.iter().find(|(flags, _)| flags.contains(&flag));
    said.map(|(_, hint)| *hint)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::args::Args;

    #[test]
    fn hints_name_flags_that_there_are_for_flags_that_there_are_not() {
        let command = Args::command();
        let serve = command.find_subcommand("serve").expect("it serves");
        let has = |flag: &str| {
            serve.get_arguments().any(|argument| {
                let (long, short) = (
                    argument.get_long_and_visible_aliases(),
                    argument.get_short(),
                );
                let long = long.unwrap_or_default();
                long.iter().any(|long| flag == format!("--{long}"))
                    || short.is_some_and(|short| flag == format!("-{short}"))
            })
        };
        for (flags, hint) in HINTS {
            for flag in *flags {
                assert!(!has(flag), "{flag}");
            }
            let words = hint
                .split([' ', ',', ';'])
                .filter(|word| word.starts_with('-') && *word != "--version");
            for word in words {
                assert!(has(word), "{word} in: {hint}");
            }
        }
    }
}
