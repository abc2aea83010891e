//! The flags of `greenroom serve`.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use greenroom::{Address, ForwardedHeader, Limits, TrustedProxies, TrustedProxy};

use super::demo::DemoArgs;
use super::listen::ListenArgs;
use super::log::LogArgs;
#[cfg(feature = "otlp")]
use super::otlp::OtlpArgs;
use super::process::ProcessArgs;
use super::psgi::{Gateways, PsgiArgs};
use super::settings::SettingArgs;
use super::sites::SitesArgs;
use super::stage::StageArgs;
use super::tls::TlsArgs;
use super::{EXIT_STATUSES, value};

const EXAMPLES: &str = "\
Units:
  times are written 250ms, 10s, 1m 30s or 2h; sizes 512B, 64KiB (of 1,024) or 64kB (of 1,000)

Signals:
  SIGTERM or SIGINT drains: no new connections, what is under way is finished
  a second one cuts off what is still under way; under start_server, SIGINT alone does
  SIGHUP, with a PSGI application, starts its new code, and lets the old finish what it began;
  with a file of sites it takes over the new file, as a whole or not at all;
  with TLS it reads the certificates again
  SIGUSR2 starts the program anew, hands the sockets over, and drains once that serves: see
  greenroom upgrade
  SIGUSR1 opens the files of --access-log and --error-log anew, after they were moved away

Service managers:
  it stays in the foreground, and there is no -D: with systemd, Type=notify keeps it running,
  ExecReload=greenroom upgrade $MAINPID exchanges it, and KillMode=mixed lets workers finish
  sockets that systemd (LISTEN_FDS) or Perl's start_server (SERVER_STARTER_PORT) pass on are served

Examples:
  greenroom serve
  greenroom serve --workers 8 app.psgi
  greenroom serve greenroom.toml --watch
  greenroom serve -E production -I lib -l /run/app.sock --preload --workers 4 app.psgi
  greenroom serve -l :80 --user www-data --access-log /var/log/app/access.log app.psgi
  greenroom serve -MPlack::App::Directory -e 'Plack::App::Directory->new->to_app'
  start_server --port 5000 -- greenroom serve app.psgi
  greenroom serve app.psgi --mount '/blog=blog/app.psgi workers=4' --status-listen 127.0.0.1:5001
  greenroom serve --listen 127.0.0.1:8080 --listen '[::1]:8080' --listen unix:/run/greenroom.sock
  greenroom serve -l :443 --listen-redirecting :80 --cert a.pem --key a.key app.psgi
  greenroom serve --domain example.org --user www-data app.psgi
  greenroom serve --upstream http://127.0.0.1:9000/status --no-access-log
  greenroom serve --body-bytes-max 1GiB --log-format json
  GREENROOM_LISTEN=127.0.0.1:8080,127.0.0.2:8080 greenroom serve";

/// Serve a PSGI application (Perl), the sites of a file, or the demo application
///
/// A PSGI application runs unchanged in worker processes behind this server, be it blocking or
/// driven by events. A file of sites (FILE.toml) says what responds at which host and path: files,
/// PSGI applications, upstreams. The page of the demo application lists what it can do. Each is at
/// port 5000 of this machine unless --listen says otherwise. Many flags can also be given by the
/// environment variable that stands beside them; a flag wins.
#[derive(Debug, clap::Args)]
#[expect(clippy::doc_markdown, reason = "the text is shown on a terminal")]
#[command(after_help = format!("{EXAMPLES}\n\n{EXIT_STATUSES}"))]
pub(crate) struct ServeArgs {
    /// The PSGI application, or the file of sites (.toml), to serve; without one, the demo
    /// application
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) listen: ListenArgs,

    /// Address of the admin server, apart from the application: a page for operators at /,
    /// /greenroom/status, /greenroom/metrics, /health and /ready
    ///
    /// Written as for --listen. It is best one that only operators reach: the page names routes,
    /// their load and their clients. `greenroom status` prints it.
    #[arg(
        long,
        env = "GREENROOM_STATUS_LISTEN",
        value_name = "ADDRESS",
        value_parser = value::address
    )]
    pub(crate) status_listen: Option<Address>,

    /// File of the token that operators need for actions at --status-listen, such as to drain;
    /// without one there are none
    ///
    /// The token has 16 to 1,024 visible characters of ASCII, such as `openssl rand -hex 32`
    /// prints. The file is read before --user is assumed.
    #[arg(
        long,
        env = "GREENROOM_ADMIN_TOKEN_FILE",
        value_name = "FILE",
        requires = "status_listen"
    )]
    pub(crate) admin_token_file: Option<PathBuf>,

    /// Threads that serve connections (default: one for each core)
    #[arg(long, env = "GREENROOM_LOOPS", value_name = "NUMBER")]
    pub(crate) loops: Option<NonZeroUsize>,

    /// Proxies whose X-Forwarded-For tells who the client is (repeatable)
    ///
    /// A network, such as 10.0.0.0/8, an address, or unix for all clients of a Unix socket.
    /// Without this flag a client is the address that is connected. The address taken is the
    /// last in X-Forwarded-For that is none of these proxies': in the access log, as
    /// REMOTE_ADDR of a PSGI application, and for queues, which are fair between clients.
    #[arg(
        long = "trusted-proxy",
        env = "GREENROOM_TRUSTED_PROXY",
        value_name = "NETWORK",
        value_delimiter = ','
    )]
    trusted_proxies: Vec<TrustedProxy>,

    /// The header field in which trusted proxies tell who the client is; the other one is not read
    #[arg(
        long,
        env = "GREENROOM_FORWARDED_HEADER",
        value_name = "NAME",
        default_value = "x-forwarded-for",
        value_parser = ["x-forwarded-for", "forwarded"],
        ignore_case = true
    )]
    forwarded_header: String,

    #[command(flatten)]
    pub(crate) tls: TlsArgs,

    #[command(flatten)]
    pub(crate) sites: SitesArgs,

    #[command(flatten)]
    psgi: PsgiArgs,

    #[command(flatten)]
    pub(crate) demo: DemoArgs,

    #[command(flatten)]
    pub(crate) stage: StageArgs,

    #[command(flatten)]
    pub(crate) limits: SettingArgs<Limits>,

    #[command(flatten)]
    pub(crate) log: LogArgs,

    #[cfg(feature = "otlp")]
    #[command(flatten)]
    pub(crate) otlp: OtlpArgs,

    #[command(flatten)]
    pub(crate) process: ProcessArgs,

    /// Asked for by those who are used to it; see [`check`](super::check)
    #[arg(short = 'D', long, hide = true)]
    pub(super) daemonize: bool,
}

impl ServeArgs {
    /// Returns true if a PSGI application is served, and not the demo application.
    pub(crate) fn is_psgi(&self) -> bool {
        self.file.is_some() && self.sites_file().is_none() || self.psgi.names_application()
    }

    /// Returns true if plackup has loaded the application.
    pub(crate) fn is_attached(&self) -> bool {
        self.psgi.is_attached()
    }

    /// Returns `true` if the demo application is served.
    pub(crate) fn is_demo(&self) -> bool {
        self.sites_file().is_none() && !self.is_psgi()
    }

    /// Returns the file of sites that is served, if one is.
    pub(crate) fn sites_file(&self) -> Option<&Path> {
        let file = self.file.as_deref();
        file.filter(|file| file.extension().is_some_and(|end| end == "toml"))
    }

    /// Returns true if certificates are obtained, and nothing says where it listens.
    pub(crate) fn is_everywhere(&self) -> bool {
        self.tls.obtains() && !self.listen.is_given
    }

    /// Returns the number of addresses without TLS.
    pub(crate) fn without_tls(&self) -> usize {
        let redirects = self.is_everywhere() && self.tls.listen_redirecting.is_empty();
        self.tls.without_tls().count() + usize::from(redirects)
    }

    /// Returns the proxies that are trusted to name a request's client.
    pub(crate) fn trusted_proxies(&self) -> TrustedProxies {
        let proxies: TrustedProxies = self.trusted_proxies.iter().copied().collect();
        if self.forwarded_header.eq_ignore_ascii_case("forwarded") {
            return proxies.header(ForwardedHeader::Forwarded);
        }
        proxies
    }

    /// Returns a prefix that two mounts have.
    pub(super) fn repeated_prefix(&self) -> Option<&str> {
        self.psgi.repeated_prefix()
    }

    /// Returns the application of -e, as the text of a file, if there is one.
    pub(crate) fn code(&self) -> Option<String> {
        self.psgi.code(self.file.as_deref())
    }

    /// Returns the gateways to start for the PSGI applications; `code` is the file that holds the
    /// code of -e.
    pub(crate) fn gateways(&self, code: Option<&Path>) -> Gateways {
        self.psgi
            .gateways(code, self.file.as_deref(), &self.limits.0)
    }
}
