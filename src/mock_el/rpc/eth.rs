//! What a CL asks an EL beside the Engine API (common.md, "Underlying protocol"), and a little more.
//! There is no state: calls return nothing, accounts have only their genesis code.

use alloy_primitives::{Address, B256, Bytes, U64, keccak256};
use alloy_rlp::{Encodable, length_of_length};
use serde_json::{Value, json};

use super::{
    super::{block::Block, chain::Chain},
    RpcError,
    params::Params,
};

pub(super) fn run(method: &str, chain: &Chain, params: &Params<'_>) -> Result<String, RpcError> {
    let result = match method {
        "eth_chainId" => json!(U64::from(chain.genesis().chain_id())),
        "eth_syncing" => json!(false),
        "eth_blockNumber" => json!(U64::from(chain.head().header.number)),
        "eth_getBlockByHash" => {
            let hash: B256 = params.required(0, "block hash")?;
            chain.block(&hash).map_or(Value::Null, block_object)
        }
        "eth_getBlockByNumber" => {
            let tag: String = params.required(0, "block number")?;
            tagged(chain, &tag)?.map_or(Value::Null, block_object)
        }
        "eth_getLogs" => json!([]),
        "eth_getCode" => {
            let address: Address = params.required(0, "address")?;
            json!(chain.genesis().code(&address))
        }
        "eth_call" => json!("0x"),
        "eth_sendRawTransaction" => {
            let transaction: Bytes = params.required(0, "transaction")?;
            json!(keccak256(transaction))
        }
        "net_version" => json!(chain.genesis().chain_id().to_string()),
        "web3_clientVersion" => json!(concat!("mock-el/v", env!("CARGO_PKG_VERSION"))),
        _ => return Err(RpcError::unknown_method(method)),
    };
    Ok(result.to_string())
}

/// The block of a number or tag; a tag nothing is known for is no block.
fn tagged<'a>(chain: &'a Chain, tag: &str) -> Result<Option<&'a Block>, RpcError> {
    Ok(match tag {
        "latest" | "pending" => Some(chain.head()),
        "earliest" => chain.block(&chain.genesis_hash()),
        "safe" => chain.safe(),
        "finalized" => chain.finalized(),
        number => {
            let number = number
                .strip_prefix("0x")
                .and_then(|digits| u64::from_str_radix(digits, 16).ok())
                .ok_or_else(|| RpcError::invalid_params("no block number or tag"))?;
            chain.block_at(number)
        }
    })
}

/// A block object with the transactions as hashes. Members of later forks are there only from those
/// forks on.
fn block_object(block: &Block) -> Value {
    let header = &block.header;
    let mut object = json!({
        "number": U64::from(header.number),
        "hash": block.hash,
        "parentHash": header.parent_hash,
        "nonce": header.nonce,
        "sha3Uncles": header.ommers_hash,
        "logsBloom": header.logs_bloom,
        "transactionsRoot": header.transactions_root,
        "stateRoot": header.state_root,
        "receiptsRoot": header.receipts_root,
        "miner": header.beneficiary,
        "difficulty": header.difficulty,
        "extraData": header.extra_data,
        "mixHash": header.mix_hash,
        "gasLimit": U64::from(header.gas_limit),
        "gasUsed": U64::from(header.gas_used),
        "timestamp": U64::from(header.timestamp),
        "baseFeePerGas": header.base_fee_per_gas.map(U64::from),
        "size": U64::from(size(block)),
        "transactions": block.transactions.iter().map(keccak256).collect::<Vec<_>>(),
        "uncles": [],
    });
    let later = [
        ("withdrawals", block.withdrawals.as_ref().map(|list| json!(list))),
        ("withdrawalsRoot", header.withdrawals_root.map(|root| json!(root))),
        ("blobGasUsed", header.blob_gas_used.map(|gas| json!(U64::from(gas)))),
        ("excessBlobGas", header.excess_blob_gas.map(|gas| json!(U64::from(gas)))),
        ("parentBeaconBlockRoot", header.parent_beacon_block_root.map(|root| json!(root))),
        ("requestsHash", header.requests_hash.map(|hash| json!(hash))),
        ("blockAccessListHash", header.block_access_list_hash.map(|hash| json!(hash))),
        ("slotNumber", header.slot_number.map(|slot| json!(U64::from(slot)))),
    ];
    if let Some(members) = object.as_object_mut() {
        members
            .extend(later.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
    }
    object
}

/// The length of the block's RLP, in bytes.
fn size(block: &Block) -> u64 {
    // In a block a typed transaction is a string, a legacy one is the list it is.
    let transactions = block.transactions.iter().map(|encoded| match encoded.first() {
        Some(0xc0..) => encoded.len(),
        _ => encoded.length(),
    });
    let parts = [
        block.header.length(),
        list_length(transactions.sum()),
        list_length(0), // uncles
        block.withdrawals.as_ref().map_or(0, Encodable::length),
    ];
    list_length(parts.iter().sum()) as u64
}

fn list_length(payload: usize) -> usize {
    length_of_length(payload) + payload
}
