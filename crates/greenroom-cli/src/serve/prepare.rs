//! The steps that need the rights with which the process was started. It has one thread until they
//! are done.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::path::PathBuf;

use anyhow::{Context, ensure};
use greenroom::{Address, AdminToken, InheritedSocket, Server, ServerBuilder, Tls, Upgrades};
use greenroom_acme::Acme;
use greenroom_sites::File;

use super::acme::{self, Names};
use super::confine::confine;
use super::identity::Identity;
use super::inherited::{self, Inherited};
use super::pid_file::PidFile;
use super::socket_files::SocketFiles;
use super::storage;
use crate::args::ServeArgs;
use crate::logging::LogFiles;
#[cfg(feature = "otlp")]
use crate::otlp::Traces;

const LISTEN: &str = "the sockets to listen on were passed on, in SERVER_STARTER_PORT or \
    LISTEN_FDS, and take the place of --listen, --host and --port: leave these out, or clear the \
    variables";

const HTTPS_PORT: u16 = 443;
const HTTP_PORT: u16 = 80;

pub(super) struct Prepared {
    pub(super) server: Server,
    pub(super) secured: Secured,
    pub(super) pid_file: Option<PidFile>,
    pub(super) logs: LogFiles,
    /// There if spans are sent.
    #[cfg(feature = "otlp")]
    pub(super) traces: Option<Traces>,
}

/// The certificates.
pub(super) struct Secured {
    pub(super) tls: Option<Tls>,
    /// There if certificates are to be obtained.
    pub(super) acme: Option<Acme>,
    /// There if the hosts of sites get some.
    pub(super) names: Option<Names>,
    /// The directory of certificates that are to be obtained.
    storage: Option<PathBuf>,
}

/// Reads the certificates, binds sockets, opens log files and creates the PID file, and then
/// changes user and group and gives up other privileges.
///
/// No code of the application runs before that. A fault of an address is reported before workers
/// are started.
pub(super) fn prepare(args: &ServeArgs, file: Option<&File>) -> anyhow::Result<Prepared> {
    // Before anything is opened, which could get the number of a descriptor that is not there.
    let Inherited { sockets, stored } = inherited::take()?;
    let upgrades = Upgrades::of_process().context("the version before hands nothing over")?;
    upgrades.store(stored)?;
    let mut inherited = sockets;
    inherited.extend(upgrades.take_inherited()?);
    if args.is_attached() {
        upgrades.refuse("plackup has loaded the application: restart plackup");
    }
    ensure!(inherited.is_empty() || !args.listen.is_said, LISTEN);
    let identity = Identity::find(&args.process)?;
    let secured = secure(args, file, identity.as_ref(), &upgrades)?;
    let builder = tell(args, Server::builder());
    #[cfg(feature = "otlp")]
    let traces = Traces::new(&args.otlp)?;
    #[cfg(feature = "otlp")]
    let builder = match &traces {
        Some(traces) => traces.observe(&args.otlp, builder),
        None => builder,
    };
    let builder = builder.upgrades(&upgrades);
    let socket_files = SocketFiles::before(args);
    let server = bind(args, builder, inherited, &secured)?;
    if let Some(identity) = &identity {
        socket_files.give(identity, upgrades.is_next_version())?;
    }
    let prepared = Prepared {
        server,
        secured,
        pid_file: args
            .process
            .pid
            .as_deref()
            .map(|path| PidFile::create(path, &upgrades))
            .transpose()?,
        logs: LogFiles::open(&args.log, identity.as_ref())?,
        #[cfg(feature = "otlp")]
        traces,
    };
    if let Some(identity) = identity {
        identity.assume()?;
        prepared
            .secured
            .storage
            .as_deref()
            .map_or(Ok(()), storage::check)?;
    }
    confine(&args.process, prepared.secured.tls.is_some())?;
    Ok(prepared)
}

/// Reads the certificates; those that are to be obtained are those of the user to serve as.
fn secure(
    args: &ServeArgs,
    file: Option<&File>,
    identity: Option<&Identity>,
    upgrades: &Upgrades,
) -> anyhow::Result<Secured> {
    let storage = acme::storage(&args.tls.acme, args.process.user.as_deref())?;
    if let (Some(_), Some(storage)) = (identity, &storage) {
        storage::look(storage)?;
    }
    let acme = storage.as_ref();
    let acme = acme.map(|storage| acme::open(&args.tls.acme, storage, upgrades));
    let acme = acme.transpose()?;
    let obtained = acme.as_ref().map(|acme| acme.certificates() as _);
    let tls = args.tls.tls(obtained)?;
    let names = Names::of(&args.tls.acme, acme.as_ref(), tls.as_ref());
    if let (Some(names), Some(file)) = (&names, file) {
        names.begin(file)?;
    }
    if let (Some(identity), Some(storage)) = (identity, &storage) {
        storage::give(identity, storage)?;
    }
    Ok(Secured {
        tls,
        acme,
        names,
        storage,
    })
}

fn bind(
    args: &ServeArgs,
    builder: ServerBuilder,
    inherited: Vec<InheritedSocket>,
    secured: &Secured,
) -> anyhow::Result<Server> {
    let addresses = match (inherited.is_empty(), args.is_everywhere()) {
        (true, true) => vec![everywhere(HTTPS_PORT)],
        (true, false) => args.listen.addresses(),
        (false, _) => Vec::new(),
    };
    let mut redirecting = args.tls.listen_redirecting.clone();
    if args.is_everywhere() && redirecting.is_empty() {
        redirecting.push(everywhere(HTTP_PORT));
    }
    let mut builder = builder
        .limits(args.limits.0.clone())
        .trusted_proxies(args.trusted_proxies());
    if let Some(tls) = &secured.tls {
        builder = builder.tls(tls.clone());
    }
    #[cfg(feature = "http3")]
    {
        builder = builder.http3(args.tls.http3);
    }
    if let Some(loops) = args.loops {
        builder = builder.loops(loops);
    }
    let is_proxied = args.listen.proxy_protocol;
    for socket in inherited {
        builder = if is_proxied {
            builder.inherited_proxied(socket)
        } else {
            builder.inherited(socket)
        };
    }
    for address in &addresses {
        builder = if is_proxied {
            builder.listen_proxied(address.clone())
        } else {
            builder.listen(address.clone())
        };
    }
    for address in &args.tls.listen_plain {
        builder = builder.listen_plain(address.clone());
    }
    if let Some(acme) = &secured.acme {
        let http01 = acme.http01();
        builder = builder.challenges(move |host, path| http01.key_authorization(host, path));
        let status = acme.status();
        builder = builder.certificate_status(move || acme::shown(&status.borrow()));
    }
    for address in &redirecting {
        builder = builder.listen_redirecting(address.clone());
    }
    Ok(with_admin(builder, args)?.bind()?)
}

fn with_admin(mut builder: ServerBuilder, args: &ServeArgs) -> anyhow::Result<ServerBuilder> {
    if let Some(address) = &args.status_listen {
        builder = builder.admin(address.clone());
    }
    if let Some(file) = &args.admin_token_file {
        let token = AdminToken::read(file).context("--admin-token-file")?;
        builder = builder.admin_token(token);
    }
    Ok(builder)
}

/// Sets what is told of requests.
fn tell(args: &ServeArgs, builder: ServerBuilder) -> ServerBuilder {
    let log = &args.log;
    builder
        .access_log(!log.no_access_log)
        .access_log_sample(log.access_log_sample.0)
        .request_ids(log.request_id)
        .slow_log(log.slow_log_min)
        .server_timing(log.server_timing.into())
        // The demo application shows them itself.
        .request_metrics(args.is_demo())
}

/// Returns the address that stands for all of this machine, of IPv6 too where there is IPv6.
fn everywhere(port: u16) -> Address {
    let has_v6 = TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_ok();
    let all: IpAddr = if has_v6 {
        Ipv6Addr::UNSPECIFIED.into()
    } else {
        Ipv4Addr::UNSPECIFIED.into()
    };
    SocketAddr::new(all, port).into()
}
