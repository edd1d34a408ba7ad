//! The run from its start to its report.

use super::{
    Arguments, Report, SoakError, Stand, Standing, commanders,
    draw::Draw,
    incidents::{Builds, Incidents},
    lap::{Lap, Session},
    line::Line,
    memory::{Mebibytes, Memory, Trend},
    order::Orders,
    reader,
    record::Kind,
    storm,
};
use crate::{
    mock_el::{
        Config, Genesis, Http, MockEl, Requests, Surface,
        faults::{self, Faults, FaultsHandle, Restart},
    },
    tools::{cl::Version, eras::SLOT},
};
use alloy_rpc_types_engine::JwtSecret;
use std::{
    hash::{BuildHasher, RandomState},
    io::{IsTerminal, Write},
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};
use tokio::task::JoinSet;

/// How long faults strike in a lap, at most.
const STORM: Duration = Duration::from_secs(5);

/// How long they leave it alone after that, at least.
const CALM: Duration = Duration::from_millis(1500);

/// How long REST-SSZ may take to come back when the EL offers it again and nothing strikes: a pause
/// of the longest kind between two questions, and then the question.
const COMEBACK: Duration = Duration::from_secs(10);

/// Average time between two faults.
const BETWEEN: Duration = Duration::from_millis(25);

/// Requests over REST-SSZ that show that it is back.
const SIGNS: u64 = 20;

/// Slots from one fork to the next, of which each lap draws one.
const PACES: [u64; 4] = [2, 5, 15, 30];

/// Runs a soak against the sidecar that `start` puts in front of the EL.
///
/// # Errors
/// When a port cannot be bound or the sidecar does not start; violations are no error.
pub async fn play(
    arguments: &Arguments,
    start: impl AsyncFnOnce(Stand) -> Result<Standing, SoakError>,
) -> Result<Report, SoakError> {
    let seed = arguments.seed.unwrap_or_else(|| RandomState::new().hash_one("soak"));
    let secret = JwtSecret::random();
    let secret_hex = const_hex::encode(secret.as_bytes());
    let faults = FaultsHandle::new(Faults::new(seed));
    let incidents = Incidents::new(faults.listen());
    let mut config = Config {
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        jwt_secret: Some(secret),
        genesis: Genesis::built_in(),
        surface: Surface::RestAndJson,
        http: Http::Both,
    };
    let mut el = MockEl::start_with(config.clone(), faults.clone()).await?;
    // Every lap has an EL of its own on this port.
    config.listen = el.addr();
    let standing = start(Stand { el: el.addr(), secret: secret_hex.clone() }).await?;
    let session = Session::new(standing.address, secret_hex.parse()?, seed, incidents);
    let session = Arc::new(session);
    let mut conductor = Conductor {
        arguments,
        faults,
        session: session.clone(),
        weather: Draw::new(seed, u64::MAX),
        memory: Arc::default(),
        begun: Instant::now(),
        progress: Instant::now(),
        requests: Requests::default(),
        blocks: 0,
        restarts: 0,
    };
    let gauge = Gauge::start(conductor.memory.clone(), standing.process);
    let mut laps = 0;
    loop {
        let pace = conductor.weather.one(&PACES).copied().unwrap_or(5);
        config.genesis = Genesis::built_in_every(pace * SLOT);
        session.incidents().outage_begins(Builds::Lost, config.http);
        el.stop().await;
        el = MockEl::start_with(config.clone(), conductor.faults.clone()).await?;
        session.incidents().outage_ends();
        let orders = Orders::new(el.processed());
        let reference = MockEl::start(Config {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            ..config.clone()
        })
        .await?;
        let lap = Lap::new(laps, session.clone(), reference, pace, orders);
        conductor.lap(&el, Arc::new(lap)).await?;
        laps += 1;
        if conductor.begun.elapsed() >= arguments.duration {
            break;
        }
    }
    el.stop().await;
    gauge.0.abort();
    let memory = conductor.memory.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let mut counts = session.record.snapshot();
    if let Trend::Grows { before, after } = memory.trend() {
        let (before, after) = (Mebibytes(before), Mebibytes(after));
        counts.add(Kind::Run, format!("run: seed {seed}: memory grows from {before} to {after}"));
    }
    Ok(Report {
        seed,
        took: conductor.begun.elapsed(),
        laps,
        blocks: conductor.blocks,
        counts,
        injected: conductor.faults.injected(),
        restarts: conductor.restarts,
        rest_requests: conductor.requests.rest,
        json_rpc_requests: conductor.requests.json_rpc,
        memory,
    })
}

/// Measures until it is dropped.
struct Gauge(tokio::task::JoinHandle<()>);

impl Drop for Gauge {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Gauge {
    fn start(memory: Arc<Mutex<Memory>>, process: Option<u32>) -> Self {
        Self(tokio::spawn(async move {
            let mut ticks = tokio::time::interval(Memory::INTERVAL);
            loop {
                ticks.tick().await;
                memory.lock().unwrap_or_else(PoisonError::into_inner).sample(process);
            }
        }))
    }
}

/// Decides what happens when.
struct Conductor<'a> {
    arguments: &'a Arguments,
    faults: FaultsHandle,
    session: Arc<Session>,
    weather: Draw,
    memory: Arc<Mutex<Memory>>,
    begun: Instant,
    progress: Instant,
    requests: Requests,
    blocks: u64,
    restarts: u64,
}

impl Conductor<'_> {
    /// Drives one chain from its genesis on.
    async fn lap(&mut self, el: &MockEl, lap: Arc<Lap>) -> Result<(), SoakError> {
        let mut cls = self.cls(&lap);
        if self.arguments.faults.is_none() {
            let lap_ends = Instant::now() + STORM + CALM;
            while Instant::now() < lap_ends && !self.is_late() {
                self.rest_for(Duration::from_millis(50)).await;
            }
        } else {
            self.storm(el).await?;
        }
        self.calm(el).await;
        lap.stop();
        while let Some(ended) = cls.join_next().await {
            ended?;
        }
        let violations = lap.orders().violations();
        for why in violations {
            let seed = self.session.seed;
            let words = format!("{}: seed {seed}, lap {}: {why}", Kind::Order, lap.number);
            self.session.record.violation(Kind::Order, words);
        }
        let Requests { rest, json_rpc } = el.requests();
        self.requests.rest += rest;
        self.requests.json_rpc += json_rpc;
        self.blocks += lap.slots().len() as u64;
        Ok(())
    }

    /// The CLs: one proposes over HTTP/1.1, one follows over a WebSocket, the others ask, half of
    /// them over h2c.
    fn cls(&self, lap: &Arc<Lap>) -> JoinSet<()> {
        let (address, secret) = (self.session.address, self.session.secret.clone());
        let mut cls = JoinSet::new();
        for number in 0..self.arguments.cls {
            let (lap, draw) = (lap.clone(), lap.draw(number));
            let http = |version| Line::http(address, secret.clone(), version);
            match number {
                0 => cls.spawn(commanders::propose(lap, http(Version::Http1), draw)),
                1 => {
                    let line = Line::socket(address, secret.clone());
                    cls.spawn(commanders::follow(lap, line, draw))
                }
                _ if number.is_multiple_of(2) => {
                    cls.spawn(reader::read(lap, http(Version::Http1), draw))
                }
                _ => cls.spawn(reader::read(lap, http(Version::H2c), draw)),
            };
        }
        cls
    }

    /// Faults strike, and every second or so the EL restarts as another one.
    async fn storm(&mut self, el: &MockEl) -> Result<(), SoakError> {
        let ends = Instant::now() + STORM.min(self.arguments.duration / 2);
        let kinds = &self.arguments.faults;
        let restarts = kinds.has(faults::Kind::Restart) || kinds.has(faults::Kind::Silence);
        let mut next_restart = self.until_restart();
        while Instant::now() < ends && !self.is_late() {
            storm::strike(&self.arguments.faults, &mut self.weather, &self.faults);
            let between = u64::try_from(BETWEEN.as_millis()).unwrap_or(u64::MAX);
            let pause = Duration::from_millis(self.weather.below(2 * between));
            self.rest_for(pause).await;
            if restarts && Instant::now() >= next_restart {
                if self.arguments.faults.has(faults::Kind::Silence) && self.weather.once_in(2) {
                    storm::silence(&mut self.weather, &self.faults);
                    self.rest_for(Duration::from_millis(50)).await;
                }
                let restart = storm::restart(&mut self.weather);
                self.restart(el, restart).await?;
                next_restart = self.until_restart();
            }
        }
        self.faults.clear();
        self.restart(el, storm::recovery(faults::Memory::Kept)).await
    }

    fn until_restart(&mut self) -> Instant {
        Instant::now() + Duration::from_millis(1000 + self.weather.below(1500))
    }

    /// Rules that found nothing to strike on the old surface are not kept for the new one.
    async fn restart(&mut self, el: &MockEl, restart: Restart) -> Result<(), SoakError> {
        self.faults.clear();
        let builds = match restart.memory {
            faults::Memory::Kept => Builds::Kept,
            faults::Memory::ChainOnly | faults::Memory::Lost => Builds::Lost,
        };
        self.session.incidents().outage_begins(builds, restart.http.unwrap_or_default());
        self.restarts += 1;
        let restarted = el.restart(restart).await;
        self.session.incidents().outage_ends();
        Ok(restarted?)
    }

    /// Nothing strikes; REST-SSZ has to come back.
    async fn calm(&mut self, el: &MockEl) {
        let begun = Instant::now();
        let mut at_first = el.requests().rest;
        loop {
            self.rest_for(Duration::from_millis(50)).await;
            let so_far = begun.elapsed();
            // What was on its way before counts for nothing.
            if so_far < Duration::from_millis(300) {
                at_first = el.requests().rest;
            }
            let is_back = el.requests().rest >= at_first + SIGNS;
            if is_back && (so_far >= CALM || self.is_late()) {
                return;
            }
            if !is_back && so_far >= COMEBACK {
                let seed = self.session.seed;
                let words = format!(
                    "{}: seed {seed}: REST-SSZ did not come back within {} s of calm",
                    Kind::Run,
                    COMEBACK.as_secs()
                );
                self.session.record.violation(Kind::Run, words);
                return;
            }
        }
    }

    fn is_late(&self) -> bool {
        self.begun.elapsed() >= self.arguments.duration
    }

    /// Waits, and tells a terminal once a second how it goes.
    async fn rest_for(&mut self, pause: Duration) {
        tokio::time::sleep(pause).await;
        if self.progress.elapsed() < Duration::from_secs(1) || !std::io::stderr().is_terminal() {
            return;
        }
        self.progress = Instant::now();
        let counts = self.session.record.snapshot();
        let memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner).newest();
        let violations: u64 = counts.violations.values().sum();
        // A terminal that is gone shows nothing.
        let _ = writeln!(
            std::io::stderr(),
            "{:>4} s  {:>8} calls  {:>6} faults  {violations:>4} violations  {}",
            self.begun.elapsed().as_secs(),
            counts.total(),
            self.faults.injected().total(),
            memory.map(|bytes| Mebibytes(bytes).to_string()).unwrap_or_default()
        );
    }
}
