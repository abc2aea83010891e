//! Pictures of runs of all kinds.

use super::examples::{
    Outcome, good, measurement, nothing, open, phase, ramp, refused, shedding, stall, steady, tiny,
};
use super::*;
use crate::run::{Measurement, StreamMeasurement};

const HOSTILE: &str = "</svg><script>alert(1)</script>\"'&\u{0}\u{1b}[31m";
const FIGURES: [fn(&[Series]) -> String; 4] = [
    response_time_against_rate,
    against_time,
    percentile_curve,
    svg,
];

fn four() -> Vec<Series> {
    let runs = [
        ramp("greenroom", 1.0, 900.0),
        ramp("another server", 2.0, 600.0),
        ramp("third", 4.0, 1500.0),
        ramp("fourth, with forked processes", 9.0, 300.0),
    ];
    runs.iter().map(Series::of).collect()
}

fn page(measurement: &Measurement, command: &str) -> String {
    html(measurement, command, &[("Machine", "2 cores, 4 GiB")]).expect("a page")
}

/// Walks over all tags; panics where they do not nest, or a text holds a forbidden character.
fn assert_well_formed(svg: &str) {
    let mut open = Vec::new();
    for piece in svg.split('<').skip(1) {
        let (tag, text) = piece.split_once('>').expect("each tag ends");
        assert!(
            !text.contains(char::is_control) || text.trim().is_empty(),
            "{text:?}"
        );
        let name = tag.split([' ', '/']).find(|name| !name.is_empty());
        let name = name.expect("each tag has a name");
        assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
        if let Some(closed) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(closed));
        } else if !tag.ends_with('/') {
            open.push(name);
        }
        for entity in text.split('&').skip(1) {
            let (entity, _) = entity.split_once(';').expect("an entity ends");
            assert!(
                ["amp", "lt", "gt", "quot", "#39"].contains(&entity),
                "{entity}"
            );
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

/// Asserts that every number of the drawing is finite.
fn assert_finite(svg: &str) {
    for word in ["NaN", "inf", "-2147483648", "2147483647"] {
        assert!(!svg.contains(word), "{word}");
    }
}

#[test]
fn every_figure_of_every_run_is_a_picture() {
    let runs: [fn() -> StreamMeasurement; 6] = [stall, tiny, nothing, refused, shedding, || {
        steady("steady", 200.0, 5, 0.8)
    }];
    for run in runs {
        let series = [Series::of(&run())];
        for figure in FIGURES {
            let svg = figure(&series);
            assert_well_formed(&svg);
            assert_finite(&svg);
            assert!(svg.starts_with("<svg ") && svg.contains(" role=\"img\""));
            assert!(svg.contains("<title>") && svg.contains("(ms)"));
        }
    }
}

#[test]
fn no_series_and_no_request_say_so() {
    for figure in FIGURES {
        assert!(figure(&[]).contains(">no data</text>"));
        let svg = figure(&[Series::of(&nothing())]);
        assert!(svg.contains(">no data</text>"), "{svg}");
    }
    assert!(!against_time(&[Series::of(&stall())]).contains("no data"));
}

#[test]
fn all_series_are_in_the_legend() {
    let series = four();
    for figure in FIGURES {
        let svg = figure(&series);
        for one in &series {
            assert!(
                svg.contains(&format!(">{}</text>", one.name)),
                "{}",
                one.name
            );
        }
    }
    let alone = Series::of(&stall());
    assert!(against_time(&[alone]).contains(">stalling server</text>"));
}

#[test]
fn a_series_is_reported_by_its_colour_and_its_percentile_by_its_dash() {
    let svg = response_time_against_rate(&four());
    let lines: Vec<_> = svg
        .lines()
        .filter(|line| line.starts_with("<polyline"))
        .collect();
    let of = |title: &str| {
        let title = format!("<title>{title}</title>");
        let line = lines.iter().find(|line| line.contains(&title));
        line.unwrap_or_else(|| panic!("{title}")).to_owned()
    };
    assert!(of("greenroom p50").contains("#0072b2"));
    assert!(!of("greenroom p50").contains("dasharray"));
    assert!(of("greenroom p99").contains("#0072b2"));
    assert!(of("greenroom p99").contains("dasharray"));
    assert!(of("third p50").contains("#009e73"));
}

#[test]
fn the_rate_is_drawn_only_where_it_varies() {
    let title = ">Response time against request rate</text>";
    let steady_at = |rate| Series::of(&steady("steady", rate, 3, 1.0));
    assert!(!svg(&[steady_at(200.0)]).contains(title));
    assert!(!svg(&[Series::of(&tiny())]).contains(title));
    assert!(svg(&[steady_at(200.0), steady_at(400.0)]).contains(title));
    let steps = open(
        "steps",
        vec![phase(50.0, 50.0, 3), phase(90.0, 90.0, 3)],
        |_| good(1_000_000),
    );
    assert!(svg(&[Series::of(&steps)]).contains(title));
    assert_eq!(Series::of(&steps).rates.len(), 2);
}

#[test]
fn a_ramp_shows_response_times_at_the_rates_that_were_asked_for() {
    let series = Series::of(&ramp("ramp", 1.0, 900.0));
    let rates: Vec<_> = series.rates.iter().map(|at| at.rate).collect();
    assert!(rates.is_sorted() && rates.len() >= 25, "{rates:?}");
    assert!(
        rates[0] < 50.0 && rates[rates.len() - 1] > 950.0,
        "{rates:?}"
    );
    let p50 = |at: &AtRate| at.latency.expect("responses").p50;
    let slowest = p50(series.rates.last().expect("a rate"));
    assert!(slowest > p50(&series.rates[0]) * 10.0, "{slowest}");
}

/// Shows a response that comes 20 s after the schedule's end: it belongs to the rate of its
/// intended time.
#[test]
fn responses_after_a_ramp_are_no_cliff_at_its_end() {
    let second = 1_000_000_000;
    let late = open("late", vec![phase(0.0, 100.0, 10)], |due| {
        let is_late = (5 * second..6 * second).contains(&due);
        good(if is_late { 20 * second } else { 1_000_000 })
    });
    let rates = Series::of(&late).rates;
    let longest = |at: &AtRate| at.latency.expect("responses").max;
    let slow = rates.iter().filter(|at| longest(at) > 1_000.0);
    assert!(slow.clone().count() > 0);
    assert!(slow.clone().all(|at| (49.0..=61.0).contains(&at.rate)));
    assert!(longest(rates.last().expect("a rate")) < 2.0);
}

#[test]
fn rejections_are_no_response_times_but_requests_that_were_not_served() {
    let served = "Requests served against request rate";
    let ramp_of = |limit: u64| {
        open("bounded", vec![phase(0.0, 100.0, 10)], move |due| {
            let is_over = due >= limit * 1_000_000_000;
            Outcome::Responded {
                status: if is_over { 503 } else { 200 },
                service: 1_000_000,
                latency: if is_over { 1_000_000 } else { 9_000_000 },
            }
        })
    };
    let series = Series::of(&ramp_of(5));
    let last = series.rates.last().expect("a rate");
    assert_eq!((last.served.to_bits(), last.latency), (0, None));
    let first = series.rates[0].latency.expect("responses");
    assert!((8.9..9.1).contains(&first.p50), "{first:?}");
    assert!(response_time_against_rate(&[series]).contains(served));
    let whole = response_time_against_rate(&[Series::of(&ramp_of(10))]);
    assert!(!whole.contains(served));
}

#[test]
fn rounds_are_put_together() {
    let round = steady("round", 100.0, 4, 1.0);
    let one = Series::of(&round);
    let both = Series::of_rounds("both", &[&round, &round]);
    assert_eq!(both.name, "both");
    assert_eq!(both.moments, one.moments);
    let longest = |series: &Series| series.latency.last().map(|point| point.nines);
    let twice = longest(&both)
        .zip(longest(&one))
        .map(|(both, one)| both - one);
    assert!(twice.is_some_and(|nines| (nines - 2_f64.log10()).abs() < 1e-9));
}

#[test]
fn a_stall_shows_in_latency_and_not_in_service_time() {
    let series = Series::of(&stall());
    let at = |points: &[PercentilePoint], nines: f64| {
        let point = points.iter().find(|point| point.nines >= nines - 1e-9);
        point.expect("a point").milliseconds
    };
    assert!((at(&series.latency, 2.0) / 950.0 - 1.0).abs() < 0.02);
    assert!(at(&series.service, 2.0) < 1.0);
    let silent = series
        .moments
        .iter()
        .filter(|moment| moment.latency.is_none());
    assert!(silent.count() >= 3);
}

#[test]
fn failures_are_marked() {
    let svg = against_time(&[Series::of(&shedding())]);
    assert!(svg.contains(">failed, or status 400 and above</text>"));
    let moments = Series::of(&shedding()).moments;
    assert!(
        (moments[5].failed / 300.0 - 1.0).abs() < 0.05,
        "{:?}",
        moments[5]
    );
    assert!(moments[2].failed < 1e-9);
    assert!(!against_time(&[Series::of(&stall())]).contains("failed"));
}

#[test]
fn a_name_cannot_leave_its_place() {
    let series = [Series::of(&steady(HOSTILE, 20.0, 2, 1.0))];
    for figure in FIGURES {
        let svg = figure(&series);
        assert_well_formed(&svg);
        assert!(!svg.contains("<script"));
    }
    let run = measurement(vec![steady(HOSTILE, 20.0, 2, 1.0)]);
    let page = page(&run, &format!("greenroom bench '{HOSTILE}'"));
    assert!(!page.contains("<script"));
    assert!(page.contains("script&#62;") || page.contains("script&gt;"));
}

#[test]
fn a_page_loads_nothing() {
    let page = page(
        &measurement(vec![tiny(), stall()]),
        "greenroom bench http://127.0.0.1:5000/",
    );
    for (before, _) in page.match_indices("http") {
        let attribute = page[..before].rsplit(' ').next().unwrap_or_default();
        let is_reference = ["src=", "href=", "url("]
            .iter()
            .any(|one| attribute.contains(one));
        assert!(!is_reference, "{}", &page[before - 20..before + 40]);
    }
    assert!(!page.contains("<script") && !page.contains("@import"));
}

#[test]
fn a_page_tells_what_was_measured() {
    let mut run = measurement(vec![stall(), refused()]);
    run.interrupted = true;
    let page = page(&run, "greenroom bench --rate 1000 --duration 20s");
    for text in [
        "greenroom bench --rate 1000 --duration 20s",
        "2 cores, 4 GiB",
        "The run was interrupted",
        "20,000",
        "<th scope=\"row\">refused</th><td>400</td>",
        "is the server running?",
        "Connection refused (os error 111)",
        "CPU time per request, both (µs)</th><td>26.96</td><td>49.02</td>",
        "Resident memory, most (MiB)</th><td>–</td><td>25</td>",
        "<th scope=\"row\">99.9 %</th>",
    ] {
        assert!(page.contains(text), "{text}");
    }
    assert_eq!(page.matches("<figure>").count(), 2);
}

#[test]
#[ignore = "writes pictures and pages to look at"]
fn pictures_to_look_at() {
    let folder = std::env::temp_dir().join("greenroom-plots");
    std::fs::create_dir_all(&folder).expect("a folder");
    let long = "https://a-very-long-host-name.example.org:8443/an/even/longer/path\
        ?with=a&query=that&never=ends&and=goes-on";
    let mut mixed = measurement(vec![
        ramp("greenroom", 1.0, 900.0),
        steady("/hello", 100.0, 30, 0.3),
    ]);
    mixed.interrupted = true;
    let pages = [
        ("ramp", measurement(vec![ramp("greenroom", 1.0, 900.0)])),
        (
            "steady",
            measurement(vec![steady("steady", 500.0, 20, 0.8)]),
        ),
        ("stall", measurement(vec![stall()])),
        ("tiny", measurement(vec![tiny()])),
        ("nothing", measurement(vec![nothing()])),
        ("refused", measurement(vec![refused()])),
        ("shedding", measurement(vec![shedding()])),
        (
            "long",
            measurement(vec![
                steady(long, 100.0, 4, 3.0),
                steady(&format!("{long}/second"), 50.0, 4, 30.0),
            ]),
        ),
        ("mixed", mixed),
    ];
    for (name, run) in pages {
        let page = page(
            &run,
            &format!("greenroom bench --ramp 0..1000 --duration 30s --html {name}.html {long}"),
        );
        std::fs::write(folder.join(format!("{name}.html")), page).expect("a file");
        let series: Vec<_> = run.streams.iter().map(Series::of).collect();
        std::fs::write(folder.join(format!("{name}.svg")), svg(&series)).expect("a file");
    }
    std::fs::write(folder.join("compare.svg"), svg(&four())).expect("a file");
}
