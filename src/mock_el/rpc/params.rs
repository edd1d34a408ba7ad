//! Positional parameters.

use alloy_primitives::U64;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::RpcError;

/// The parameters of a call. The Engine API has no parameters by name.
pub(super) struct Params<'a>(Vec<&'a RawValue>);

impl<'a> Params<'a> {
    pub(super) fn parse(params: Option<&'a RawValue>) -> Result<Self, RpcError> {
        let Some(params) = params else { return Ok(Self(Vec::new())) };
        serde_json::from_str(params.get())
            .map(Self)
            .map_err(|_| RpcError::invalid_params("params must be an array"))
    }

    /// Refuses anything but null beyond the first `most` parameters.
    pub(super) fn at_most(&self, most: usize) -> Result<(), RpcError> {
        match self.0.iter().skip(most).any(|extra| extra.get() != "null") {
            true => Err(RpcError::invalid_params(format_args!("more than {most} parameters"))),
            false => Ok(()),
        }
    }

    /// A parameter as it came; null counts as absent (cancun.md, engine_newPayloadV3, point 1).
    pub(super) fn raw(&self, index: usize) -> Option<&'a RawValue> {
        self.0.get(index).copied().filter(|param| param.get() != "null")
    }

    pub(super) fn optional<T: DeserializeOwned>(
        &self,
        index: usize,
        name: &str,
    ) -> Result<Option<T>, RpcError> {
        self.raw(index).map(|param| read(param, name)).transpose()
    }

    pub(super) fn required<T: DeserializeOwned>(
        &self,
        index: usize,
        name: &str,
    ) -> Result<T, RpcError> {
        self.optional(index, name)?
            .ok_or_else(|| RpcError::invalid_params(format_args!("{name} is missing")))
    }

    /// A QUANTITY of 64 bits.
    pub(super) fn quantity(&self, index: usize, name: &str) -> Result<u64, RpcError> {
        self.required::<U64>(index, name).map(|number| number.to())
    }
}

/// Reads a parameter, or a part of one.
pub(super) fn read<T: DeserializeOwned>(text: &RawValue, name: &str) -> Result<T, RpcError> {
    serde_json::from_str(text.get())
        .map_err(|error| RpcError::invalid_params(format_args!("{name}: {error}")))
}
