//! The configuration of the sidecar: flags over environment over file, all checked before any port
//! is bound.

use crate::{
    cl, el,
    engine::{Horizon, Network, Schedule},
    jwt::Secret,
    telemetry,
};
use serde::Deserialize;
use std::{
    fmt::{self, Display},
    fs,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    str::FromStr,
    time::Duration,
};

/// Prefix of the environment variable of each flag.
pub const ENV_PREFIX: &str = "ENGINE_SSZ_PROXY_";

/// Where the sidecar listens unless told otherwise: loopback, the Engine API port.
pub const DEFAULT_LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8551);

/// Greatest genesis file that is read, in bytes; mainnet's is under 1 MiB.
const MAX_GENESIS_BYTES: u64 = 256 << 20;

/// What a flag, an environment variable or a key of the file can set. Names are the same in all
/// three but for case and separators.
#[derive(Clone, Debug, Default, clap::Args, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Settings {
    /// The EL's Engine API, for example http://127.0.0.1:8561 or unix:///run/el/engine.sock (the
    /// same as EXECUTION_ENDPOINT)
    #[arg(long, value_name = "URL", env = "ENGINE_SSZ_PROXY_EXECUTION_ENDPOINT")]
    pub execution_endpoint: Option<String>,

    /// Address to listen on for the CL [default: 127.0.0.1]
    #[arg(
        short = 'b',
        long,
        alias = "bind-address",
        value_name = "IP",
        env = "ENGINE_SSZ_PROXY_LISTEN_ADDRESS"
    )]
    pub listen_address: Option<String>,

    /// Port to listen on for the CL [default: 8551]
    #[arg(
        short = 'p',
        long,
        alias = "port",
        value_name = "PORT",
        env = "ENGINE_SSZ_PROXY_LISTEN_PORT"
    )]
    pub listen_port: Option<Number>,

    /// Socket file to listen on for the CL instead of the port
    #[arg(long, value_name = "PATH", env = "ENGINE_SSZ_PROXY_LISTEN_PATH")]
    pub listen_path: Option<PathBuf>,

    /// Secret shared by CL and EL, as a file or as 64 hex digits; without it the CL's token is
    /// forwarded as it came
    #[arg(
        long,
        value_name = "PATH|HEX",
        env = "ENGINE_SSZ_PROXY_JWT_SECRET",
        hide_env_values = true
    )]
    pub jwt_secret: Option<Hidden>,

    /// Genesis file with the fork schedule (geth, reth, ethrex, erigon, Besu or Nethermind form), or
    /// a CL's config.yaml; without it or --network the schedule is learned
    #[arg(long, value_name = "FILE", env = "ENGINE_SSZ_PROXY_GENESIS")]
    pub genesis: Option<PathBuf>,

    /// Public network whose fork schedule is built in: mainnet, sepolia or hoodi
    #[arg(long, value_name = "NAME", env = "ENGINE_SSZ_PROXY_NETWORK")]
    pub network: Option<String>,

    /// Carries Bogota and its inclusion lists over REST-SSZ where the EL offers them; their shapes
    /// may still change, so without this they are relayed
    #[arg(long, env = "ENGINE_SSZ_PROXY_EXPERIMENTAL_BOGOTA")]
    #[serde(default)]
    pub experimental_bogota: bool,

    /// How to reach the EL: auto, h2c, http1 or json (no REST-SSZ at all) [default: auto]
    #[arg(long, value_name = "NAME", env = "ENGINE_SSZ_PROXY_TRANSPORT")]
    pub transport: Option<String>,

    /// Path that REST-SSZ lives under at the EL, below the endpoint's own prefix
    /// [default: /engine/v1]
    #[arg(long, value_name = "PATH", env = "ENGINE_SSZ_PROXY_REST_BASE_PATH")]
    pub rest_base_path: Option<String>,

    /// Stretches the specification's timeouts towards the EL, for a CL that was told to wait longer;
    /// 1 to 100, also 1.5 [default: 1]
    #[arg(long, value_name = "FACTOR", env = "ENGINE_SSZ_PROXY_TIMEOUT_MULTIPLIER")]
    pub timeout_multiplier: Option<Number>,

    /// h2c connections to the EL that payloads and blobs share [default: 2]
    #[arg(long, value_name = "NUMBER", env = "ENGINE_SSZ_PROXY_BUILD_CONNECTIONS")]
    pub build_connections: Option<Number>,

    /// Bulk reads of old blocks that the EL gets at once [default: 2]
    #[arg(long, value_name = "NUMBER", env = "ENGINE_SSZ_PROXY_HISTORY_IN_FLIGHT")]
    pub history_in_flight: Option<Number>,

    /// Relayed calls such as eth_* that the EL gets at once, a connection each [default: 128]
    #[arg(long, value_name = "NUMBER", env = "ENGINE_SSZ_PROXY_RELAY_CONNECTIONS")]
    pub relay_connections: Option<Number>,

    /// Greatest request body taken from the CL, in bytes [default: 134217728]
    #[arg(long, value_name = "BYTES", env = "ENGINE_SSZ_PROXY_BODY_LIMIT")]
    pub body_limit: Option<Number>,

    /// Greatest number of connections from CLs, WebSockets among them [default: 256]
    #[arg(long, value_name = "NUMBER", env = "ENGINE_SSZ_PROXY_MAX_CONNECTIONS")]
    pub max_connections: Option<Number>,

    /// Greatest number of calls in flight over all connections [default: 512]
    #[arg(long, value_name = "NUMBER", env = "ENGINE_SSZ_PROXY_MAX_CALLS")]
    pub max_calls: Option<Number>,

    /// Seconds that calls in flight get to finish after SIGTERM [default: 10]
    #[arg(long, value_name = "SECONDS", env = "ENGINE_SSZ_PROXY_GRACE_PERIOD")]
    pub grace_period: Option<Number>,

    /// What to log: error, warn, info, debug, trace, or a filter such as info,hyper=debug
    /// [default: info]
    #[arg(long, value_name = "LEVEL", env = "ENGINE_SSZ_PROXY_LOG_LEVEL")]
    pub log_level: Option<String>,

    /// Form of the log lines: pretty, json or logfmt [default: pretty]
    #[arg(long, value_name = "FORMAT", env = "ENGINE_SSZ_PROXY_LOG_FORMAT")]
    pub log_format: Option<String>,
}

/// A text that may be a secret: never printed.
#[derive(Clone, Deserialize)]
#[serde(transparent)]
pub struct Hidden(String);

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hidden(…)")
    }
}

impl From<String> for Hidden {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl FromStr for Hidden {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self(text.to_owned()))
    }
}

/// A number as somebody wrote it: checked with the name of its field, whatever it came from.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Number {
    /// From a file.
    Integer(i64),
    /// From a file; no field but those that say so takes one.
    Decimal(f64),
    /// From a flag or the environment.
    Text(String),
}

impl FromStr for Number {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self::Text(text.to_owned()))
    }
}

impl Number {
    fn text(&self) -> String {
        match self {
            Self::Integer(number) => number.to_string(),
            Self::Decimal(number) => number.to_string(),
            Self::Text(text) => text.clone(),
        }
    }
}

/// A field that cannot be used, in one line.
#[derive(Debug, thiserror::Error)]
#[error("{field}: {why}")]
pub struct ConfigError {
    /// The flag's name without dashes, which is the key in the file.
    pub field: &'static str,
    /// Why, and what would do.
    pub why: String,
}

/// A configuration that can be run.
#[derive(Debug)]
pub struct Config {
    /// Where to listen for the CL.
    pub listen: cl::Place,
    /// Everything about the EL.
    pub el: el::Config,
    /// Everything about the door to the CL.
    pub cl: cl::Config,
    /// The fork schedule, when it is given.
    pub schedule: Option<Schedule>,
    /// Up to which fork calls are carried over REST-SSZ.
    pub horizon: Horizon,
    /// How to log.
    pub log: Log,
}

/// How to log.
#[derive(Clone, Debug)]
pub struct Log {
    /// A `tracing` filter.
    pub filter: String,
    /// The form of the lines.
    pub format: telemetry::Format,
}

impl Settings {
    /// Reads a file of settings in TOML.
    ///
    /// # Errors
    /// When it cannot be read, is not TOML, or has a key that means nothing.
    pub fn from_file(path: &Path) -> Result<Self, ConfigError> {
        let text = fs::read_to_string(path)
            .map_err(|error| invalid("config", format_args!("{}: {error}", path.display())))?;
        toml::from_str(&text).map_err(|error: toml::de::Error| {
            let line = error
                .span()
                .map(|span| 1 + text.get(..span.start).unwrap_or_default().matches('\n').count());
            let place = line.map(|line| format!(" line {line}")).unwrap_or_default();
            let message = error.message().replace('\n', " ");
            invalid("config", format_args!("{}{place}: {message}", path.display()))
        })
    }

    /// These settings, and where they are silent those of `below`.
    pub fn over(self, below: Self) -> Self {
        Self {
            execution_endpoint: self.execution_endpoint.or(below.execution_endpoint),
            listen_address: self.listen_address.or(below.listen_address),
            listen_port: self.listen_port.or(below.listen_port),
            listen_path: self.listen_path.or(below.listen_path),
            jwt_secret: self.jwt_secret.or(below.jwt_secret),
            genesis: self.genesis.or(below.genesis),
            network: self.network.or(below.network),
            experimental_bogota: self.experimental_bogota || below.experimental_bogota,
            transport: self.transport.or(below.transport),
            rest_base_path: self.rest_base_path.or(below.rest_base_path),
            timeout_multiplier: self.timeout_multiplier.or(below.timeout_multiplier),
            build_connections: self.build_connections.or(below.build_connections),
            history_in_flight: self.history_in_flight.or(below.history_in_flight),
            relay_connections: self.relay_connections.or(below.relay_connections),
            body_limit: self.body_limit.or(below.body_limit),
            max_connections: self.max_connections.or(below.max_connections),
            max_calls: self.max_calls.or(below.max_calls),
            grace_period: self.grace_period.or(below.grace_period),
            log_level: self.log_level.or(below.log_level),
            log_format: self.log_format.or(below.log_format),
        }
    }

    /// Checks everything.
    ///
    /// # Errors
    /// The first field that cannot be used.
    pub fn check(self) -> Result<Config, ConfigError> {
        let endpoint = self.execution_endpoint.as_deref().ok_or_else(|| {
            invalid("execution-endpoint", "is missing; give the EL's URL, such as http://el:8551")
        })?;
        let secret = self.jwt_secret.as_ref().map(|secret| read_secret(&secret.0)).transpose()?;
        // Not shown when it is refused: people put user names, or the secret itself, in its place.
        let endpoint = endpoint.parse().map_err(|error| invalid("execution-endpoint", error))?;
        let mut el = el::Config::new(endpoint);
        if let Some(transport) = &self.transport {
            el.transport = parsed("transport", transport)?;
        }
        if let Some(base) = &self.rest_base_path {
            el.rest_base = parsed("rest-base-path", base)?;
        }
        if let Some(factor) = &self.timeout_multiplier {
            el.timeout_multiplier = parsed("timeout-multiplier", &factor.text())?;
        }
        if let Some(number) = &self.build_connections {
            el.lanes.build_connections = parsed("build-connections", &number.text())?;
        }
        if let Some(number) = &self.history_in_flight {
            el.lanes.history_in_flight = parsed("history-in-flight", &number.text())?;
        }
        if let Some(number) = &self.relay_connections {
            el.lanes.relay_connections = parsed("relay-connections", &number.text())?;
        }
        if let Some(secret) = &secret {
            el.tokens = el::Tokens::Mint(secret.clone());
        }
        let mut cl = cl::Config::new(secret.map_or(cl::Auth::Forward, cl::Auth::Check));
        if let Some(limit) = &self.body_limit {
            cl.body_limit = parsed("body-limit", &limit.text())?;
            cl.bounds = cl::Bounds::new(cl.body_limit);
        }
        if let Some(number) = &self.max_connections {
            cl.bounds.connections = count("max-connections", number)?;
        }
        if let Some(number) = &self.max_calls {
            cl.bounds.calls = count("max-calls", number)?;
        }
        if let Some(seconds) = &self.grace_period {
            cl.grace = Duration::from_secs(parsed("grace-period", &seconds.text())?);
        }
        let log = Log {
            filter: log_filter(self.log_level.as_deref().unwrap_or("info")),
            format: match &self.log_format {
                Some(format) => parsed("log-format", format)?,
                None => telemetry::Format::Pretty,
            },
        };
        telemetry::check_filter(&log.filter)
            .map_err(|error| invalid("log-level", format_args!("{:?}: {error}", log.filter)))?;
        let horizon = if self.experimental_bogota { Horizon::Bogota } else { Horizon::Specified };
        Ok(Config { listen: self.listen()?, el, cl, schedule: self.schedule()?, horizon, log })
    }

    /// What is said of the port is checked also when it is not used: a default of the container's
    /// image must not stand in the way, a mistake must not go unseen.
    fn listen(&self) -> Result<cl::Place, ConfigError> {
        let mut listen = DEFAULT_LISTEN;
        if let Some(address) = &self.listen_address {
            listen.set_ip(parsed("listen-address", address)?);
        }
        if let Some(port) = &self.listen_port {
            listen.set_port(parsed("listen-port", &port.text())?);
        }
        match &self.listen_path {
            None => Ok(cl::Place::Tcp(listen)),
            Some(path) if path.as_os_str().is_empty() => {
                Err(invalid("listen-path", "is empty; give the path of a socket file"))
            }
            Some(path) => Ok(cl::Place::SocketFile(path.clone())),
        }
    }

    fn schedule(&self) -> Result<Option<Schedule>, ConfigError> {
        match (&self.genesis, &self.network) {
            (Some(_), Some(_)) => Err(invalid(
                "network",
                "cannot be given together with genesis: they would disagree",
            )),
            (Some(path), None) => read_schedule(path).map(Some),
            (None, Some(name)) => {
                let network = <Network as clap::ValueEnum>::from_str(name, true).map_err(|_| {
                    invalid("network", format_args!("{name:?} is not mainnet, sepolia or hoodi"))
                })?;
                Ok(Some(Schedule::of_network(network)))
            }
            (None, None) => Ok(None),
        }
    }
}

/// A bare level is meant for the sidecar's own lines; what its libraries say matters from warn on.
fn log_filter(level: &str) -> String {
    match level.chars().all(|letter| letter.is_ascii_alphabetic()) {
        true if level != "off" => format!("warn,engine_ssz_proxy={level}"),
        _ => level.to_owned(),
    }
}

/// Reads the fork schedule of a genesis file.
///
/// # Errors
/// When the file cannot be read or gives no schedule.
pub fn read_schedule(path: &Path) -> Result<Schedule, ConfigError> {
    let why = |error: &dyn Display| invalid("genesis", format_args!("{}: {error}", path.display()));
    let size = fs::metadata(path).map_err(|error| why(&error))?.len();
    if size > MAX_GENESIS_BYTES {
        return Err(why(&format_args!("{size} bytes are too many for a genesis file")));
    }
    let text = fs::read_to_string(path).map_err(|error| why(&error))?;
    Schedule::from_genesis(&text).map_err(|error| why(&error))
}

/// A secret given as 64 hex digits, with or without 0x, or as the path of a file that has them.
///
/// # Errors
/// When it is neither. The value is shown only when it looks like a path and not like a secret with
/// a slip in it.
pub fn read_secret(value: &str) -> Result<Secret, ConfigError> {
    const LIKE_A_SECRET: usize = 32;
    let path = Path::new(value);
    match value.parse() {
        Ok(secret) => Ok(secret),
        Err(error)
            if !path.exists() && !value.contains('/') && value.trim().len() >= LIKE_A_SECRET =>
        {
            Err(invalid("jwt-secret", error))
        }
        Err(_) => Secret::from_file(path).map_err(|error| invalid("jwt-secret", error)),
    }
}

/// A number of things of which there must be room for one.
fn count(field: &'static str, number: &Number) -> Result<usize, ConfigError> {
    match parsed(field, &number.text())? {
        0 => Err(invalid(field, "0 would let nothing in; give 1 or more")),
        count => Ok(count),
    }
}

fn parsed<T: FromStr<Err: Display>>(field: &'static str, text: &str) -> Result<T, ConfigError> {
    text.parse().map_err(|error| invalid(field, format_args!("{text:?}: {error}")))
}

fn invalid(field: &'static str, why: impl Display) -> ConfigError {
    ConfigError { field, why: why.to_string() }
}
