//! A handshake and one request on each connection.

use anyhow::{Context as _, ensure};
use bench_kit::process::{LOAD_CORE, pinned};
use bench_kit::rounds::{Row, find, interleave, samples};
use bench_kit::tools::run as run_program;
use bench_kit::{Report, Verdict, cell, table};
use clap::ValueEnum as _;
use http_bench_clients::{Handshakes, Offer};
use serde::Serialize;

use super::site::{GREENROOM, HYPER, Running, Site};
use crate::cases::Context;
use crate::cases::cost::Cost;
use crate::cases::entry::{Entry, entry_name};

const CLIENTS: u32 = 32;
const WARM_UP_SECONDS: u32 = 1;
const FULL_AES_128_US_MAX: f64 = 190.0;
const VERSUS_HYPER_MAX: f64 = 1.0;

struct Spec {
    case: &'static str,
    title: &'static str,
    offers: &'static [Offer],
    resume: bool,
}

#[derive(Debug, Serialize)]
struct Sample {
    handshakes: Handshakes,
    #[serde(flatten)]
    cost: Cost,
}

pub(crate) fn full(context: &Context) -> anyhow::Result<Report> {
    let spec = Spec {
        case: "tls-full",
        title: "a full handshake of TLS 1.3 (P-256) and one request",
        offers: &[Offer::Openssl, Offer::Aes128, Offer::Browser],
        resume: false,
    };
    let mut report = spec.run(context)?;
    report.notes.push(
        "ring has no X25519MLKEM768, so it is measured with AES-128 and X25519 alone".to_owned(),
    );
    Ok(report)
}

pub(crate) fn resumed(context: &Context) -> anyhow::Result<Report> {
    let spec = Spec {
        case: "tls-resumed",
        title: "a resumed handshake of TLS 1.3 and one request",
        offers: &[Offer::Openssl, Offer::Aes128],
        resume: true,
    };
    spec.run(context)
}

impl Spec {
    fn run(&self, context: &Context) -> anyhow::Result<Report> {
        let site = Site::new()?;
        let (entries, mut notes) = self.entries(&site, context)?;
        let rows = interleave(self.case, context.rounds, &entries, |entry| {
            self.measure(entry, context)
        })?;
        notes.extend(self.notes(context));
        Ok(Report {
            case: self.case,
            title: self.title.to_owned(),
            notes,
            table: Self::render(&entries, &rows),
            verdicts: self.verdicts(&rows),
            samples: samples(&rows),
        })
    }

    fn entries(
        &self,
        site: &Site,
        context: &Context,
    ) -> anyhow::Result<(Vec<Entry<Offer>>, Vec<String>)> {
        let (servers, notes) = site.servers(context)?;
        let mut entries = Vec::new();
        for offer in self.offers.iter().copied() {
            let entry = |server| Entry::new(server, offer, name(offer));
            entries.extend(servers.iter().map(entry));
            if !self.resume && offer == Offer::Aes128 {
                entries.extend(site.with_ring(context).iter().map(entry));
            }
            let peer = entry_name(HYPER, name(offer));
            let control = entries.iter().find(|entry| entry.name == peer);
            entries.extend(control.map(Entry::again));
        }
        Ok((entries, notes))
    }

    fn measure(&self, entry: &Entry<Offer>, context: &Context) -> anyhow::Result<Sample> {
        let server = Running::start(&entry.server, context)?;
        self.load(entry.load, &server, WARM_UP_SECONDS, context)?;
        let mut handshakes = Handshakes::default();
        let cost = Cost::of(server.pid(), || {
            handshakes = self.load(entry.load, &server, context.seconds, context)?;
            Ok(handshakes.answered())
        })?;
        Ok(Sample { handshakes, cost })
    }

    fn load(
        &self,
        offer: Offer,
        server: &Running,
        seconds: u32,
        context: &Context,
    ) -> anyhow::Result<Handshakes> {
        let mut client = pinned(LOAD_CORE, context.binaries.path("handshakes")?);
        client.args(["--url", &server.https(), "--offer", &flag(offer)?]);
        client.args(["--clients", &CLIENTS.to_string()]);
        client.args(["--seconds", &seconds.to_string()]);
        if self.resume {
            client.arg("--resume");
        }
        let told = run_program(&mut client)?.stdout;
        let handshakes: Handshakes = serde_json::from_str(&told).context("handshakes' output")?;
        ensure!(
            handshakes.failed == 0,
            "{} of {} handshakes failed; the first: {}",
            handshakes.failed,
            handshakes.failed + handshakes.answered(),
            handshakes.first_failure.as_deref().unwrap_or_default()
        );
        let full_max = if self.resume {
            CLIENTS.into()
        } else {
            u64::MAX
        };
        ensure!(
            handshakes.full <= full_max,
            "only {} of {} handshakes were resumed",
            handshakes.resumed,
            handshakes.answered()
        );
        Ok(handshakes)
    }

    fn notes(&self, context: &Context) -> Vec<String> {
        let mut notes = vec![
            format!(
                "medians of {} rounds (least–most) of {CLIENTS} clients in closed loops, each with \
                 one connection after the other, which the server ends after its response; CPU \
                 time is of all processes of the server; x: times {HYPER} with the same offer, \
                 within the round; waited: time without the core, of time on it",
                context.rounds
            ),
            "what the client offers: AES-256 first: AES-256, ChaCha20, AES-128 in this order, as \
             OpenSSL 3.0, and AES-128: it alone, both with X25519; browser's: AES-128, ChaCha20, \
             AES-256, X25519MLKEM768 before X25519; agreed: what came of it"
                .to_owned(),
        ];
        if self.resume {
            notes.push(format!(
                "the first handshake of each of the {CLIENTS} clients is a full one, and counts"
            ));
        }
        notes
    }

    fn render(entries: &[Entry<Offer>], rows: &[Row<Sample>]) -> String {
        let mut out = table([
            "server, offer",
            "agreed",
            "CPU us/connection",
            "x",
            "waited %",
        ]);
        for (entry, row) in entries.iter().zip(rows) {
            let last = row.samples.last();
            let agreed = last.and_then(|sample| sample.handshakes.agreed.clone());
            out.add_row([
                row.name.clone(),
                agreed.unwrap_or_default(),
                cell(row.spread(|sample| sample.cost.total_us), 1),
                cell(versus_hyper(row, rows, entry.load), 2),
                Cost::waited(row, |sample| &sample.cost),
            ]);
        }
        out.to_string()
    }

    fn verdicts(&self, rows: &[Row<Sample>]) -> Vec<Verdict> {
        let ours = |offer| find(rows, &entry_name(GREENROOM, name(offer)));
        let mut verdicts: Vec<Verdict> = self
            .offers
            .iter()
            .map(|offer| {
                let ratio = ours(*offer).and_then(|row| versus_hyper(row, rows, *offer));
                Verdict::at_most(
                    format!("{GREENROOM} CPU / {HYPER}, {}", name(*offer)),
                    ratio.map(|spread| spread.median),
                    VERSUS_HYPER_MAX,
                    " x",
                )
            })
            .collect();
        if !self.resume {
            let spread =
                ours(Offer::Aes128).and_then(|row| row.spread(|sample| sample.cost.total_us));
            verdicts.push(Verdict::at_most(
                format!("{GREENROOM} CPU, {}", name(Offer::Aes128)),
                spread.map(|spread| spread.median),
                FULL_AES_128_US_MAX,
                " us",
            ));
        }
        verdicts
    }
}

fn versus_hyper(
    row: &Row<Sample>,
    rows: &[Row<Sample>],
    offer: Offer,
) -> Option<bench_kit::Spread> {
    let peer = find(rows, &entry_name(HYPER, name(offer)))?;
    row.ratio(peer, |sample| sample.cost.total_us)
}

fn name(offer: Offer) -> &'static str {
    match offer {
        Offer::Aes128 => "AES-128",
        Offer::Browser => "browser's",
        Offer::Openssl => "AES-256 first",
    }
}

fn flag(offer: Offer) -> anyhow::Result<String> {
    let value = offer.to_possible_value().context("an offer has a name")?;
    Ok(value.get_name().to_owned())
}
