//! The log: to standard error, in one of three forms. No body and no token is ever in it.

use std::io;
use std::str::FromStr;

use tracing_subscriber::filter::ParseError;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::{SubscriberInitExt as _, TryInitError};
use tracing_subscriber::{EnvFilter, Layer, Registry};

/// The form of a log line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// For people: coloured when standard error is a terminal.
    #[default]
    Pretty,
    /// One JSON object a line.
    Json,
    /// `key=value` pairs.
    Logfmt,
}

/// The text names no [`Format`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("log format is pretty, json or logfmt, not {0:?}")]
pub struct UnknownFormat(String);

impl FromStr for Format {
    type Err = UnknownFormat;

    /// Reads `pretty`, `json` or `logfmt`.
    fn from_str(name: &str) -> Result<Self, UnknownFormat> {
        match name {
            "pretty" => Ok(Self::Pretty),
            "json" => Ok(Self::Json),
            "logfmt" => Ok(Self::Logfmt),
            other => Err(UnknownFormat(other.to_owned())),
        }
    }
}

/// Why there is no log.
#[derive(Debug, thiserror::Error)]
pub enum InitError {
    /// The filter is no list of `target=level` directives.
    #[error("log filter: {0}")]
    Filter(#[from] ParseError),
    /// The process has a log already.
    #[error("log: {0}")]
    Taken(#[from] TryInitError),
}

/// Starts the log of this process.
///
/// `filter` is a level (`info`) or a list of directives as `tracing_subscriber`'s [`EnvFilter`]
/// takes them (`info,engine_ssz_proxy::cl=debug`). The environment is not read.
///
/// # Errors
///
/// When the filter cannot be read, or a log was started before.
pub fn init(filter: &str, format: Format) -> Result<(), InitError> {
    let filter = EnvFilter::builder().parse(filter)?;
    tracing_subscriber::registry()
        .with(layer(format, io::stderr).with_filter(filter))
        .try_init()?;
    Ok(())
}

/// Whether [`init`] would take that filter.
///
/// # Errors
///
/// When it cannot be read.
pub fn check_filter(filter: &str) -> Result<(), ParseError> {
    EnvFilter::builder().parse(filter).map(drop)
}

fn layer<W>(format: Format, writer: W) -> Box<dyn Layer<Registry> + Send + Sync>
where
    W: for<'a> tracing_subscriber::fmt::MakeWriter<'a> + Send + Sync + 'static,
{
    let lines = tracing_subscriber::fmt::layer().with_writer(writer);
    match format {
        Format::Pretty => lines.with_ansi(io::IsTerminal::is_terminal(&io::stderr())).boxed(),
        Format::Json => lines.json().flatten_event(true).boxed(),
        Format::Logfmt => lines
            .event_format(tracing_logfmt::EventsFormatter::default())
            .fmt_fields(tracing_logfmt::FieldsFormatter::default())
            .boxed(),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::{Arc, Mutex};

    use super::*;

    /// Where a test reads what was written.
    #[derive(Clone, Default)]
    struct Page(Arc<Mutex<Vec<u8>>>);

    impl Write for Page {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// What one event looks like.
    fn line(format: Format) -> String {
        let page = Page::default();
        let writer = page.clone();
        let log = tracing_subscriber::registry().with(layer(format, move || writer.clone()));
        tracing::subscriber::with_default(log, || tracing::warn!(lane = "relay", "EL is slow"));
        String::from_utf8(page.0.lock().unwrap().clone()).unwrap()
    }

    #[test]
    fn json_is_one_object_a_line() {
        let line = line(Format::Json);
        let event: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(event["level"], "WARN");
        assert_eq!(event["message"], "EL is slow");
        assert_eq!(event["lane"], "relay");
        assert_eq!(line.matches('\n').count(), 1);
    }

    #[test]
    fn logfmt_is_pairs() {
        let line = line(Format::Logfmt);
        assert!(line.contains("level=warn"), "{line}");
        assert!(line.contains(r#"message="EL is slow""#), "{line}");
        assert!(line.contains("lane=relay"), "{line}");
    }

    #[test]
    fn pretty_has_the_message_and_its_fields() {
        let line = line(Format::Pretty);
        assert!(line.contains("WARN") && line.contains("EL is slow") && line.contains("lane"));
    }

    #[test]
    fn a_format_is_read_by_its_name() {
        for (name, format) in
            [("pretty", Format::Pretty), ("json", Format::Json), ("logfmt", Format::Logfmt)]
        {
            assert_eq!(name.parse(), Ok(format));
        }
        assert!("JSON ".parse::<Format>().is_err());
    }

    #[test]
    fn a_filter_that_cannot_be_read_is_an_error() {
        assert!(matches!(init("a=b=c", Format::Json), Err(InitError::Filter(_))));
    }
}
