//! Where the EL is: its authority and the path prefix both protocols live under, or its socket file.

use std::fmt;
use std::net::Ipv6Addr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use http::Uri;
use http::uri::Authority;

/// The engine port every EL listens on unless told otherwise.
const DEFAULT_PORT: u16 = 8551;

/// What an EL behind a socket file is called in `Host` and `:authority`: a name that the lists of
/// allowed hosts have.
const LOCAL: Authority = Authority::from_static("localhost");

/// The EL's engine endpoint, parsed from `http://host[:port][/prefix]` or `unix:///path/of/socket`.
///
/// The port defaults to 8551. IPv6 literals are bracketed. A prefix is kept for REST and JSON-RPC
/// alike and joined without doubled slashes. Behind a socket file the same HTTP is spoken, h2c or
/// HTTP/1.1, without a prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    authority: Authority,
    /// Empty, or `/some/prefix` without a slash at the end.
    prefix: String,
    socket: Option<PathBuf>,
}

impl Endpoint {
    /// `host:port` as it goes into `Host` and `:authority`, IPv6 bracketed.
    pub fn authority(&self) -> &Authority {
        &self.authority
    }

    /// The TCP port. Of no use behind a socket file.
    pub(super) fn port(&self) -> u16 {
        self.authority.port_u16().unwrap_or(DEFAULT_PORT)
    }

    /// The socket file, if the EL is not reached over TCP.
    pub fn socket(&self) -> Option<&Path> {
        self.socket.as_deref()
    }

    /// The path JSON-RPC is posted to: the prefix, or `/`.
    pub fn json_rpc_path(&self) -> &str {
        if self.prefix.is_empty() { "/" } else { &self.prefix }
    }

    /// The absolute URI of the JSON-RPC path.
    pub(super) fn json_rpc_uri(&self) -> Result<Uri, http::Error> {
        self.uri(self.json_rpc_path())
    }

    /// The absolute URI of `path_and_query` under `base` under the prefix.
    pub(super) fn rest_uri(
        &self,
        base: &RestBase,
        path_and_query: &str,
    ) -> Result<Uri, http::Error> {
        let relative = path_and_query.trim_start_matches('/');
        self.uri(&format!("{}{}/{relative}", self.prefix, base.0))
    }

    /// The absolute URI of `path_and_query` as it stands under the prefix.
    pub(super) fn passing_uri(&self, path_and_query: &str) -> Result<Uri, http::Error> {
        self.uri(&format!("{}{path_and_query}", self.prefix))
    }

    fn behind(path: &str) -> Result<Self, EndpointError> {
        if !path.starts_with('/') || path.ends_with('/') {
            return Err(EndpointError::Socket(path.to_owned()));
        }
        Ok(Self { authority: LOCAL, prefix: String::new(), socket: Some(PathBuf::from(path)) })
    }

    fn uri(&self, path_and_query: &str) -> Result<Uri, http::Error> {
        Uri::builder()
            .scheme(http::uri::Scheme::HTTP)
            .authority(self.authority.clone())
            .path_and_query(path_and_query)
            .build()
    }
}

impl FromStr for Endpoint {
    type Err = EndpointError;

    /// # Errors
    ///
    /// When the text is no `http://` URL of a host, or carries user info, a query or a fragment:
    /// nothing of these would reach the EL, so they are refused and not dropped. When it is no
    /// `unix://` and an absolute path, which is taken to the letter.
    fn from_str(text: &str) -> Result<Self, EndpointError> {
        let text = text.trim();
        if let Some(path) = text.strip_prefix("unix://") {
            return Self::behind(path);
        }
        // The parser of `http` drops fragments without a word.
        if text.contains('#') {
            return Err(EndpointError::QueryOrFragment);
        }
        let (scheme, rest) = text.split_once("://").ok_or(EndpointError::NoScheme)?;
        if !scheme.eq_ignore_ascii_case("http") {
            // A scheme is short; whatever is longer may be a secret put in the wrong place.
            return Err(EndpointError::Scheme(scheme.chars().take(16).collect()));
        }
        let authority_text = rest.split(['/', '?']).next().unwrap_or_default();
        if authority_text.contains('@') {
            return Err(EndpointError::UserInfo);
        }
        let uri =
            Uri::from_str(text).map_err(|source| EndpointError::Malformed(source.to_string()))?;
        if uri.query().is_some() {
            return Err(EndpointError::QueryOrFragment);
        }
        let host = uri.host().filter(|host| !host.is_empty()).ok_or(EndpointError::NoHost)?;
        if let Some(literal) = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
            // A zone (RFC 6874) would have to be kept out of `Host`; no EL is reached that way.
            literal
                .parse::<Ipv6Addr>()
                .map_err(|_| EndpointError::Literal(literal.chars().take(64).collect()))?;
        }
        let written_port = authority_text.get(host.len()..).unwrap_or_default();
        let port = match written_port.strip_prefix(':') {
            None if written_port.is_empty() => DEFAULT_PORT,
            Some(digits) => match digits.parse::<u16>() {
                Ok(port) if port != 0 => port,
                _ => return Err(EndpointError::Port(digits.to_owned())),
            },
            None => return Err(EndpointError::Malformed("unreadable host".to_owned())),
        };
        let authority = Authority::try_from(format!("{host}:{port}"))
            .map_err(|source| EndpointError::Malformed(source.to_string()))?;
        Ok(Self { authority, prefix: normal_path(uri.path()), socket: None })
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.socket {
            Some(path) => write!(f, "unix://{}", path.display()),
            None => write!(f, "http://{}{}", self.authority, self.prefix),
        }
    }
}

/// Why a text is no [`Endpoint`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// No `scheme://` in front.
    #[error("the EL endpoint must be written as http://host:port or unix:///path/of/socket")]
    NoScheme,
    /// A scheme other than `http`: the engine port is cleartext, and `https` would be a promise
    /// not kept.
    #[error("the EL endpoint must be http://…, not {0}://…: the Engine API is spoken in cleartext")]
    Scheme(String),
    /// No absolute path of a file after `unix://`.
    #[error(
        "the EL endpoint must be unix:// and an absolute path, such as unix:///run/el/engine.sock, not unix://{0}"
    )]
    Socket(String),
    /// `user:password@` in front of the host.
    #[error("the EL endpoint must not carry user info; the Engine API is authenticated by a JWT")]
    UserInfo,
    /// Nothing between `http://` and the path.
    #[error("the EL endpoint names no host")]
    NoHost,
    /// A port that is no number from 1 to 65535.
    #[error("the EL endpoint's port must be a number from 1 to 65535, not `{0}`")]
    Port(String),
    /// Something other than an IPv6 address without a zone in brackets.
    #[error("the EL endpoint's host [{0}] is no IPv6 address without a zone")]
    Literal(String),
    /// A `?query` or `#fragment`.
    #[error("the EL endpoint must not carry a query or a fragment")]
    QueryOrFragment,
    /// Something else a URL cannot hold.
    #[error("the EL endpoint is no URL: {0}")]
    Malformed(String),
}

/// The path REST-SSZ lives under, `/engine/v1` unless told otherwise (`refactor.md`, *Endpoints*).
///
/// Drafts have lived under other paths, hence it can be set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestBase(String);

impl Default for RestBase {
    fn default() -> Self {
        Self("/engine/v1".to_owned())
    }
}

impl FromStr for RestBase {
    type Err = RestBaseError;

    /// # Errors
    ///
    /// When the text is no absolute path.
    fn from_str(text: &str) -> Result<Self, RestBaseError> {
        let text = text.trim();
        if !text.starts_with('/') || text.contains(['?', '#']) || Uri::from_str(text).is_err() {
            return Err(RestBaseError(text.to_owned()));
        }
        Ok(Self(normal_path(text)))
    }
}

impl fmt::Display for RestBase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A text that is no [`RestBase`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the REST base must be an absolute path such as /engine/v1, not `{0}`")]
pub struct RestBaseError(String);

/// One slash in front of every segment, none at the end; the root is empty.
fn normal_path(path: &str) -> String {
    path.split('/').filter(|segment| !segment.is_empty()).fold(
        String::new(),
        |mut path, segment| {
            path.push('/');
            path.push_str(segment);
            path
        },
    )
}
